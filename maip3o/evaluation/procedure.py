"""An evaluation, step by step: drive the held-out episodes and sum them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from maip3o.config.schema import Config
from maip3o.data.episode import Episode
from maip3o.data.statistics import EpisodeTable, tabulate
from maip3o.errors import UserError
from maip3o.evaluation.calibration import Calibration, Pairs, calibrate, pairs
from maip3o.evaluation.card import make_card
from maip3o.policy import Policy
from maip3o.runners.evaluation import evaluate_policy
from maip3o.runners.pool import Pool
from maip3o.runners.worker import world_spec

CHUNK = 32  # episodes held in memory at once, while their figures are taken


@dataclass(slots=True)
class Evaluation:
    """One policy in one setting."""

    config: Config
    deterministic: bool
    tables: dict[str, EpisodeTable] = field(default_factory=dict)  # protocol -> rows
    cards: dict[str, dict[str, Any]] = field(default_factory=dict)  # protocol -> figures
    calibrations: dict[str, Calibration] = field(default_factory=dict)  # constraint -> of the cost critic


def evaluate(
    pool: Pool, policy: Policy, config: Config, seeds: Sequence[int], protocols: Sequence[str], deterministic: bool
) -> Evaluation:
    """Drive the episodes of `seeds` under each protocol."""
    evaluation = Evaluation(config, deterministic)
    with progress_bar() as progress:
        for protocol in protocols:
            bar = progress.add_task(f"{config.scenario.num_agents} agents, {protocol}", total=len(seeds))
            tables, observed = [], []
            for start in range(0, len(seeds), CHUNK):
                part = seeds[start : start + CHUNK]
                driven = evaluate_policy(pool, config, policy.weights, part, protocol, deterministic)
                tables.append(tabulate(driven))
                # Only whole lives show what became of them; the other protocol cuts nearly all.
                if protocol == protocols[-1]:
                    observed.append(_observations(policy, driven))
                progress.advance(bar, len(part))
            evaluation.tables[protocol] = EpisodeTable.joined(tables)
            evaluation.cards[protocol] = make_card(evaluation.tables[protocol], config, protocol)
    for name in config.constraints:
        calibration = calibrate(Pairs.joined([part[name] for part in observed]))
        if calibration is not None:
            evaluation.calibrations[name] = calibration
    return evaluation


def _observations(policy: Policy, episodes: list[Episode]) -> dict[str, Pairs]:
    gamma = policy.config.algo.cost_gamma
    return {
        name: pairs(episodes, [policy.predicted_costs(episode, name) for episode in episodes], column, gamma)
        for column, name in enumerate(policy.config.constraints)
    }


def require_fitting_observation(pool: Pool, policy: Policy, config: Config) -> None:
    """A policy reads the vector that it was trained on, and no other."""
    world = pool.ask(world_spec, (config.scenario, tuple(config.constraints)))
    if (world.observation_size, world.action_size) != (policy.observation_size, policy.action_size):
        raise UserError(
            f"checkpoint {policy.path}: trained on observations of size {policy.observation_size} and actions of size "
            f"{policy.action_size}, but scenario {config.scenario.name} has {world.observation_size} and "
            f"{world.action_size}"
        )


def progress_bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
