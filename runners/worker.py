"""What runs inside a worker process: one policy, and as many environments as episodes at a time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from maip3o.config.schema import ModelConfig, ScenarioConfig
from maip3o.data.episode import Episode
from maip3o.envs.contract import ArrayEnv, FloatArray, WorldSpec
from maip3o.envs.driving.staggered import StaggeredStart
from maip3o.envs.driving.views import DrivingEnv
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.rollout import rollouts

SINGLE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
}
"""Environment of a worker: the pool already fills the cores."""


@dataclass(frozen=True, eq=False)
class Job:
    """Everything an episode depends on besides its seed. Sent to each worker once per map."""

    scenario: ScenarioConfig
    cost_names: tuple[str, ...]
    model: ModelConfig
    weights: dict[str, FloatArray]
    deterministic: bool = False
    start_spread: int = 0  # steps within which the cars start


class WorkerLost(Exception):
    """The worker died, or was silent for longer than runner.episode_timeout."""


class NoJob(Exception):
    """This process has no job: it is younger than the pool thinks."""


_job: Job | None = None
_actor: NumpyActor | None = None
_envs: list[ArrayEnv] = []
_env_key: tuple[ScenarioConfig, tuple[str, ...]] | None = None


def start() -> None:
    """First call in a worker process on this machine."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the trainer ends its workers
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """A trainer killed with -9 cannot end its workers."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def set_job(job: Job) -> None:
    """Take over scenario and weights."""
    global _job, _actor
    environment(job.scenario, job.cost_names)
    _actor = NumpyActor(job.weights, job.model)
    _job = job


def environment(scenario: ScenarioConfig, cost_names: tuple[str, ...]) -> ArrayEnv:
    """The first of this process's environments."""
    return environments(scenario, cost_names, 1)[0]


def environments(scenario: ScenarioConfig, cost_names: tuple[str, ...], count: int) -> list[ArrayEnv]:
    """So many environments of this process. Another scenario replaces them all: MetaDrive allows one engine."""
    global _env_key
    from maip3o.envs import make_array_env

    key = (replace(scenario, end_rule="all"), cost_names)  # the end rule alone needs no new engine
    if _env_key != key:
        while _envs:
            _envs.pop().close()
        _env_key = key
    while len(_envs) < count:
        _envs.append(make_array_env(scenario, cost_names))
    for env in _envs:
        env.end_rule = scenario.end_rule
    return _envs[:count]


def run_episodes(seeds: Sequence[int]) -> list[Episode]:
    """The job's episodes of these seeds, side by side."""
    if _job is None or _actor is None:
        raise NoJob
    envs = environments(_job.scenario, _job.cost_names, len(seeds))
    if spread := _job.start_spread:
        envs = [StaggeredStart(cast(DrivingEnv, env), spread) for env in envs]
    return rollouts(envs, _actor, seeds, _job.deterministic)


def world_spec(what: tuple[ScenarioConfig, tuple[str, ...]]) -> WorldSpec:
    """What the world declares. The environment stays for the episodes to come."""
    return environment(*what).spec
