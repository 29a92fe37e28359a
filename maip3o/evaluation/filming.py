"""The films of an evaluation: the telling episodes, driven again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from maip3o.config.schema import Config, ScenarioConfig
from maip3o.envs.registry import find_world
from maip3o.errors import UserError
from maip3o.evaluation.procedure import Evaluation, progress_bar
from maip3o.policy import Policy
from maip3o.runners.evaluation import evaluation_job
from maip3o.runners.pool import Pool
from maip3o.runners.worker import Job
from maip3o.video.clips import outcome_seeds, reel_frames, telling_seeds, worst_seeds
from maip3o.video.encode import write_gif, write_mp4
from maip3o.video.filming import make_footage
from maip3o.video.footage import Footage
from maip3o.video.frames import FPS, HEIGHT, WIDTH, clip_frames, versus_frames
from maip3o.video.recording import record_episode
from maip3o.video.replay import replay_page
from maip3o.video.robot_film import make_robot_footage, robot_frames
from maip3o.video.robot_recording import check_camera, record_robot
from maip3o.video.text import Image


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
    wanted, reel = (outcome_seeds(table), worst_seeds(table)) if camera.view == "map" else (telling_seeds(table), [])
    folder.mkdir(parents=True, exist_ok=True)
    clips = _videos(camera, policy, rival, wanted, reel, folder) if video else []
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

        def write(name: str, frames: Iterator[Image], who: str, what: str, seeds: list[int], fps: int = FPS) -> None:
            write_mp4(folder / name, frames, fps)
            clips.append(_clip(folder / name, who, what, seeds))
            progress.advance(bar)

        for outcome, seed in wanted.items():
            frames, fps = camera.clip(policy, seed)
            write(f"{outcome}.mp4", frames, policy.name, outcome.replace("_", " "), [seed], fps)
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
    """Drives chosen episodes again and writes down what films need; each of cars once, however often it is shown."""

    def __init__(self, pool: Pool, evaluation: Evaluation, protocol: str) -> None:
        self.pool, self.evaluation, self.protocol = pool, evaluation, protocol
        self.view = find_world(evaluation.config.scenario).view
        self._rolls: dict[tuple[str, int], Footage] = {}

    def clip(self, policy: Policy, seed: int) -> tuple[Iterator[Image], int]:
        """The frames of one episode, and how many to show in a second."""
        if self.view == "map":
            return clip_frames(self.footage(policy, seed)), FPS
        recording = self.pool.ask(record_robot, (self._job(policy), seed))
        footage = make_robot_footage(policy, self.evaluation.config.scenario, recording)
        return robot_frames(footage), footage.fps

    def footage(self, policy: Policy, seed: int) -> Footage:
        """Of cars, on their map."""
        key = (str(policy.path), seed)
        if key not in self._rolls:
            recording = self.pool.ask(record_episode, (self._job(policy), seed))
            self._rolls[key] = make_footage(policy, self._scenario(policy), recording)
        return self._rolls[key]

    def _job(self, policy: Policy) -> Job:
        config = replace(policy.config, scenario=self._scenario(policy))
        return evaluation_job(config, policy.weights, self.protocol, self.evaluation.deterministic)

    def _scenario(self, policy: Policy) -> ScenarioConfig:
        return policy.seeing(self.evaluation.config.scenario)


def require_view(scenario: ScenarioConfig, *, page: bool = False) -> None:
    """Refuse films of a world that has no view, and a page or two policies side by side if it has no map."""
    view = find_world(scenario).view
    if not view:
        raise UserError(f"scenario.world={scenario.world}: its episodes cannot be filmed")
    if page and view != "map":
        raise UserError(f"scenario.world={scenario.world}: replays and versus= show cars on their map; use video=true")


def require_camera(pool: Pool, config: Config) -> None:
    """Find out before the evaluation whether this machine can draw robots."""
    if find_world(config.scenario).view == "camera":
        pool.ask(check_camera, (config.scenario, tuple(config.constraints)))
