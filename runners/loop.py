"""Centralised training: sample episodes, update, log, evaluate, save; again until the budget is spent."""

from __future__ import annotations

import itertools
import logging
import math
import time
from pathlib import Path
from typing import Any

import torch

from maip3o.algo.learner import Learner, NonFiniteError
from maip3o.config.budget import budget_of
from maip3o.config.schema import Config
from maip3o.data.episode import Episode
from maip3o.data.statistics import EpisodeTable, means, tabulate
from maip3o.envs.contract import WorldSpec
from maip3o.envs.registry import find_world
from maip3o.errors import RunError, UserError
from maip3o.runners import checkpoint
from maip3o.runners.checkpoint import Checkpoint
from maip3o.runners.evaluation import evaluate_policy
from maip3o.runners.log import RunLog
from maip3o.runners.pool import Pool, make_pool
from maip3o.runners.seeds import evaluation_seeds, training_seeds
from maip3o.runners.worker import Job, world_spec

log = logging.getLogger(__name__)

INITIAL_COUNTERS: dict[str, Any] = {
    "iteration": 0,
    "episodes": 0,
    "env_steps": 0,  # steps of the world
    "agent_steps": 0,  # actions of living cars
    "seconds": 0.0,  # of sampling, updating and evaluating, over all interruptions
    "result": float("nan"),  # the figure for sweepers
    "metrics_bytes": 0,  # length of metrics.jsonl: a resumed run drops what follows
}
"""Of a run that has not begun."""


def train(config: Config, directory: Path, start: Checkpoint | None) -> float:
    """Train in `directory` from `start` (None: from nothing) to the end of its budget; the figure to optimise.

    The state on disk is that of the last whole iteration, so an end at any moment costs at most one iteration.
    """
    torch.set_num_threads(int(config.torch_threads))
    if config.device != "cpu":  # the operators that the update uses are deterministic on a CPU anyway
        torch.use_deterministic_algorithms(True, warn_only=True)
    last = directory / "checkpoints" / "last.pt"
    counters = dict(start.counters) if start is not None else INITIAL_COUNTERS
    with RunLog(directory, config, counters) as run_log, make_pool(config.runner, int(config.num_workers)) as pool:
        learner = _learner(config, pool, start)
        if start is None:
            checkpoint.save(last, Checkpoint(config, learner.state_dict(), counters))
        try:
            while not budget_of(config).finished(counters):
                before = counters
                counters = _iterate(config, pool, learner, counters, run_log)
                keep = last.with_name(f"episode_{counters['episodes']}.pt")
                due = _due(before, counters, config.checkpoint_every_episodes, config)
                checkpoint.save(last, Checkpoint(config, learner.state_dict(), counters), keep if due else None)
                run_log.saved(counters)
        except KeyboardInterrupt:  # it may have fallen between the saving of a state and the note of it
            run_log.saved(checkpoint.load(last).counters)
            raise
    return float(counters["result"])


def _learner(config: Config, pool: Pool, start: Checkpoint | None) -> Learner:
    world: WorldSpec = pool.ask(world_spec, (config.scenario, tuple(config.constraints)))
    learner = Learner(config, world, torch.device(config.device))
    if start is not None:
        if "actor_optimiser" not in start.learner:
            raise UserError(
                "checkpoints/last.pt holds networks but no optimisers (a shipped policy?): begin with init="
            )
        learner.load_state_dict(start.learner)
    elif config.init is not None:
        try:
            learner.load_networks(checkpoint.load(checkpoint.find_checkpoint(config.init)).learner)
        except RuntimeError:
            raise UserError(
                f"init={config.init}: its networks do not read the {world.observation_size} numbers of "
                f"scenario {config.scenario.name}"
            ) from None
    return learner


def _iterate(config: Config, pool: Pool, learner: Learner, before: dict[str, Any], run_log: RunLog) -> dict[str, Any]:
    """One iteration; returns the counters after it."""
    started = time.perf_counter()
    budget = budget_of(config)
    progress = budget.progress(before)
    job = _job(config, learner, progress)
    episodes = _sample(config, pool, job, before["episodes"])
    sampled = time.perf_counter()
    try:
        learnt = learner.update(episodes, progress)
    except NonFiniteError as error:
        error.iteration = before["iteration"] + 1  # as metrics.jsonl counts them
        where = run_log.directory / "not_finite.pt"
        kept = f", and {where} holds what went in" if checkpoint.save_dump(where, error.dump) else ""
        raise RunError(f"{error}; last.pt is from before it{kept}") from error
    except RuntimeError as error:  # of torch, or episodes that are not those of this policy
        reason = " ".join(str(error).split())
        raise RunError(f"iteration {before['iteration'] + 1}: {reason}; last.pt is from before it") from error
    updated = time.perf_counter()

    counters = {
        **before,
        "iteration": before["iteration"] + 1,
        "episodes": before["episodes"] + len(episodes),
        "env_steps": before["env_steps"] + sum(episode.length for episode in episodes),
        "agent_steps": before["agent_steps"] + sum(int(episode.active.sum()) for episode in episodes),
        "seconds": before["seconds"] + updated - started,
    }
    rollouts = {f"rollout/{name}": value for name, value in means(tabulate(episodes)).items()}
    if config.start_spread is not None:
        rollouts["rollout/start_spread"] = job.start_spread
    numbers = {**rollouts, **learnt, **_speeds(episodes, sampled - started, updated - sampled)}
    run_log.iteration(counters, numbers)
    counters["result"] = rollouts["rollout/return"]
    if _due(before, counters, config.evaluation.every_episodes, config):
        numbers, table = _evaluate(config, pool, learner)
        counters["result"] = numbers["evaluation/full/return"]
        _warn_of_standing_still(numbers)
        counters["seconds"] += time.perf_counter() - updated
        run_log.evaluation(counters, numbers, table)
    counters["metrics_bytes"] = run_log.metrics_bytes
    return counters


def _warn_of_standing_still(numbers: dict[str, float]) -> None:
    arrived, time_out = (numbers.get(f"evaluation/full/{name}") for name in ("arrived", "time_out"))
    if arrived is not None and time_out is not None and arrived < 0.05 and time_out > 0.4:
        log.warning(
            f"the policy stands still ({100 * time_out:.0f} % timed out, {100 * arrived:.0f} % arrived): "
            "the penalty may be too strong; use algo.penalty.growth=odds, or a smaller algo.penalty.eta"
        )


def _sample(config: Config, pool: Pool, job: Job, first: int) -> list[Episode]:
    """The episodes of an iteration, from the run's `first` one on, whichever worker drives them."""
    budget = budget_of(config)
    if budget.unit == "episode":
        return pool.map(job, training_seeds(config.seed, first, budget.each))
    episodes: list[Episode] = []
    # At first as many as are needed for certain, for none is longer than the horizon; then as many as seem to be.
    length = float(config.scenario.horizon)
    while (missing := budget.each - sum(episode.length for episode in episodes)) > 0:
        episodes += pool.map(job, training_seeds(config.seed, first + len(episodes), math.ceil(missing / length)))
        length = sum(episode.length for episode in episodes) / len(episodes)
    steps = itertools.accumulate(episode.length for episode in episodes)
    enough = next(count for count, sum_so_far in enumerate(steps, 1) if sum_so_far >= budget.each)
    return episodes[:enough]  # whatever was driven: the first that reach it


def _due(before: dict[str, Any], after: dict[str, Any], every: int, config: Config) -> bool:
    """Whether this iteration passed a multiple of `every` episodes (0: never), or is the last one."""
    passed = every > 0 and after["episodes"] // every > before["episodes"] // every
    return passed or (every > 0 and budget_of(config).finished(after))


def _job(config: Config, learner: Learner, progress: float) -> Job:
    spread = round((config.start_spread or 0) * max(0.0, 1.0 - 2.0 * progress))  # gone at half of the training
    weights = learner.actor_weights()
    return Job(config.scenario, tuple(config.constraints), config.model, weights, start_spread=spread)


def _evaluate(config: Config, pool: Pool, learner: Learner) -> tuple[dict[str, float], EpisodeTable]:
    """Held-out episodes under both end rules; the figures, and the episodes under the rule that tells more."""
    seeds = evaluation_seeds(config.evaluation.episodes)
    numbers = {}
    for protocol in find_world(config.scenario).protocols:
        weights, deterministic = learner.actor_weights(), config.evaluation.deterministic
        table = tabulate(evaluate_policy(pool, config, weights, seeds, protocol, deterministic))
        numbers.update({f"evaluation/{protocol}/{name}": value for name, value in means(table).items()})
    return numbers, table


def _speeds(episodes: list[Episode], sample_seconds: float, update_seconds: float) -> dict[str, float]:
    """Simulation and inference in seconds of all workers together, sampling and update in seconds of the clock."""
    seconds = sample_seconds + update_seconds
    return {
        "speed/env_steps_per_second": sum(episode.length for episode in episodes) / seconds,
        "speed/agent_steps_per_second": sum(int(episode.active.sum()) for episode in episodes) / seconds,
        "speed/sample_seconds": sample_seconds,
        "speed/simulate_seconds": sum(episode.seconds_simulate for episode in episodes),
        "speed/infer_seconds": sum(episode.seconds_infer for episode in episodes),
        "speed/update_seconds": update_seconds,
    }
