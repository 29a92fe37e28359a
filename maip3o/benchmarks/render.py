"""Frames per second of drawing and encoding a video, on one core.

An episode is driven once by scripted cars; then its clip is drawn, and drawn and encoded, with this
process and ffmpeg bound to a single core. `per_cpu_second` counts the processor time of both and so does not depend
on what else the machine does.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from maip3o.data.episode import Episode
from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.views import DrivingEnv
from maip3o.runners.rollout import rollout
from maip3o.video.encode import write_mp4
from maip3o.video.footage import Footage
from maip3o.video.frames import HEIGHT, WIDTH, clip_frames
from maip3o.video.recording import RecordingEnv

LIDAR_RAYS, LIDAR_RANGE = 72, 40.0  # MetaDrive's multi-agent defaults, last in the observation


def run(
    scenario: str = "intersection", num_agents: int = 10, width: int = WIDTH, height: int = HEIGHT, repeat: int = 3
) -> dict[str, Any]:
    """Best of `repeat` measurements."""
    footage = drive(scenario, num_agents)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        drawn = [_measure(lambda: sum(1 for _ in clip_frames(footage, width, height))) for _ in range(repeat)]
        encoded = [_measure(lambda: write_mp4(path, clip_frames(footage, width, height))) for _ in range(repeat)]
        size = path.stat().st_size
    return {
        "scenario": scenario,
        "cars": num_agents,
        "size": f"{width}x{height}",
        "frames": drawn[0]["frames"],
        "draw": _best(drawn),
        "draw_and_encode": _best(encoded),
        "mp4_kilobytes": size // 1024,
    }


class _Scripted:
    """Stands in for a policy: steers at the next checkpoint and brakes for what the lidar sees ahead."""

    memory_size = 0

    def initial_memory(self, agents: int) -> FloatArray:
        return np.zeros((agents, 0), np.float32)

    def act(self, observation: FloatArray, memory: FloatArray, noise: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        ahead, aside = (2.0 * observation[:, column] - 1.0 for column in (9, 10))
        rays = observation[:, -LIDAR_RAYS:]
        gap = np.minimum(rays[:, :7].min(axis=1), rays[:, -6:].min(axis=1))
        steering = 1.5 * np.arctan2(aside, np.maximum(ahead, 1e-3))
        throttle = np.where(gap < 0.3, -0.6, np.where(observation[:, 3] < 0.3, 0.5, -0.1))
        return np.stack([steering, throttle], axis=-1).astype(np.float32), np.zeros(len(rays), np.float32), memory


def drive(scenario: str, num_agents: int, seed: int = 0) -> Footage:
    """Footage of one scripted episode; the predicted costs are made up, but drawn like real ones."""
    env = RecordingEnv(
        cast(
            DrivingEnv, make_array_env(load_scenario(scenario, num_agents=num_agents, end_rule="all"), ("termination",))
        )
    )
    episode: Episode = rollout(env, _Scripted(), seed, True)  # type: ignore[arg-type]
    tracks = env.tracks()
    env.close()
    risk = np.random.default_rng(0).uniform(0.0, 0.4, episode.active.shape)
    return Footage(
        policy="benchmark",
        scenario=scenario,
        seed=seed,
        tracks=tracks,
        active=episode.active,
        cause=episode.outcome,
        reward=np.where(episode.active, episode.reward, 0.0),
        cost=episode.cost[..., 0],
        constraint="termination",
        limit=0.1,
        risk=np.where(episode.active, risk, np.nan),
        value=np.where(episode.active, 0.0, np.nan),
        lidar=episode.observation[..., -LIDAR_RAYS:],
        lidar_range=LIDAR_RANGE,
    )


def _measure(action: Callable[[], int]) -> dict[str, float]:
    before, started = os.times(), time.perf_counter()
    frames = action()
    seconds, after = time.perf_counter() - started, os.times()
    processor = sum(after[:4]) - sum(before[:4])  # this process and the children it has waited for
    return {"frames": frames, "per_second": frames / seconds, "per_cpu_second": frames / processor}


def _best(results: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(max(result[name] for result in results), 1) for name in ("per_second", "per_cpu_second")}
