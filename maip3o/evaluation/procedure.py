"""An evaluation, step by step: drive the held-out episodes, sum them up, film the telling ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
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
from maip3o.runners.evaluation import evaluate_policy, evaluation_job
from maip3o.runners.pool import Pool
from maip3o.runners.worker import world_spec
from maip3o.video.clips import outcome_seeds, reel_frames, worst_seeds
from maip3o.video.encode import write_gif, write_mp4
from maip3o.video.filming import make_footage
from maip3o.video.footage import Footage
from maip3o.video.frames import HEIGHT, WIDTH, clip_frames, versus_frames
from maip3o.video.recording import record_episode
from maip3o.video.replay import replay_page
from maip3o.video.text import Image

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


def film(
    pool: Pool,
    policy: Policy,
    rival: Policy | None,
    evaluation: Evaluation,
    folder: Path,
    *,
    video: bool,
    gif: bool,
    replay: bool,
) -> list[dict[str, Any]]:
    """Videos and replay page of an evaluation; returns what each file shows."""
    protocol, table = list(evaluation.tables.items())[-1]
    camera = Cameraman(pool, evaluation, protocol)
    wanted = outcome_seeds(table)
    folder.mkdir(parents=True, exist_ok=True)
    clips = _videos(camera, policy, rival, wanted, worst_seeds(table), folder) if video else []
    for clip in list(clips) if gif else []:
        path = clip["file"].with_suffix(".gif")
        write_gif(clip["file"], path)
        clips.append({**clip, "file": path})
    if replay:
        path = folder / "replay.html"
        shown = [(outcome.replace("_", " "), camera.footage(policy, seed)) for outcome, seed in wanted.items()]
        path.write_text(replay_page(shown, f"{policy.name}: replays"), encoding="utf-8")
        clips.append(_clip(path, policy.name, "interactive replay", list(wanted.values())))
    return clips


def _videos(
    camera: Cameraman, policy: Policy, rival: Policy | None, wanted: dict[str, int], reel: list[int], folder: Path
) -> list[dict[str, Any]]:
    clips: list[dict[str, Any]] = []
    with progress_bar() as progress:
        bar = progress.add_task("filming", total=len(wanted) + bool(reel) + bool(rival))

        def write(name: str, frames: Iterator[Image], who: str, what: str, seeds: list[int]) -> None:
            write_mp4(folder / name, frames)
            clips.append(_clip(folder / name, who, what, seeds))
            progress.advance(bar)

        for outcome, seed in wanted.items():
            frames = clip_frames(camera.footage(policy, seed))
            write(f"{outcome}.mp4", frames, policy.name, outcome.replace("_", " "), [seed])
        if reel:
            frames = reel_frames([camera.footage(policy, seed) for seed in reel], WIDTH, HEIGHT)
            write("failure_reel.mp4", frames, policy.name, "failure reel", reel)
        if rival is not None:
            frames = versus_frames(camera.footage(policy, 0), camera.footage(rival, 0))
            write(f"versus_{rival.name}.mp4", frames, f"{policy.name}, {rival.name}", "side by side", [0])
    return clips


def _clip(path: Path, policy: str, what: str, seeds: list[int]) -> dict[str, Any]:
    return {"file": path, "policy": policy, "what": what, "seeds": seeds}


class Cameraman:
    """Drives chosen episodes again with every car's way written down; each once, however often it is shown."""

    def __init__(self, pool: Pool, evaluation: Evaluation, protocol: str) -> None:
        self.pool, self.evaluation, self.protocol = pool, evaluation, protocol
        self._rolls: dict[tuple[str, int], Footage] = {}

    def footage(self, policy: Policy, seed: int) -> Footage:
        key = (str(policy.path), seed)
        if key not in self._rolls:
            scenario = policy.seeing(self.evaluation.config.scenario)
            config = replace(policy.config, scenario=scenario)
            job = evaluation_job(config, policy.weights, self.protocol, self.evaluation.deterministic)
            recording = self.pool.ask(record_episode, (job, seed))
            self._rolls[key] = make_footage(policy, scenario, recording)
        return self._rolls[key]
