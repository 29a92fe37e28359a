"""An episode driven again with every car's position written down: episodes are pure functions of their seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from maip3o.data.episode import Episode
from maip3o.envs.contract import FloatArray, StepResult
from maip3o.envs.driving.views import CarStates, DrivingEnv, RoadMap
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.rollout import rollout
from maip3o.runners.worker import Job, environment
from maip3o.video.footage import Route, Tracks


@dataclass(slots=True)
class Recording:
    """An episode and where its cars were."""

    episode: Episode
    tracks: Tracks


class RecordingEnv:
    """A DrivingEnv that notes the cars' states around every step of the one inside it."""

    def __init__(self, inner: DrivingEnv) -> None:
        self.inner = inner
        self.num_slots, self.spec, self.end_rule = inner.num_slots, inner.spec, inner.end_rule
        self._states: list[CarStates] = []
        self._routes: list[Route] = []

    def reset(self, seed: int) -> StepResult:
        self._states, self._routes = [], []
        return self._note(self.inner.reset(seed))

    def step(self, action: FloatArray) -> StepResult:
        return self._note(self.inner.step(action))

    def _note(self, result: StepResult) -> StepResult:
        if result.fresh.any():
            lines = self.inner.routes()
            born = np.flatnonzero(result.fresh).tolist()
            self._routes += [Route(slot, len(self._states), lines[slot]) for slot in born]
        self._states.append(self.inner.car_states())
        return result

    def tracks(self) -> Tracks:
        return Tracks(
            road=self.inner.road_map(),
            routes=self._routes,
            present=np.stack([states.present for states in self._states]),
            position=np.stack([states.position for states in self._states]),
            heading=np.stack([states.heading for states in self._states]),
            speed=np.stack([states.speed for states in self._states]),
        )

    def car_states(self) -> CarStates:
        return self.inner.car_states()

    def road_map(self) -> RoadMap:
        return self.inner.road_map()

    def routes(self) -> list[FloatArray]:
        return self.inner.routes()

    def close(self) -> None:
        self.inner.close()


def record_episode(what: tuple[Job, int]) -> Recording:
    """Runs inside a worker process: drive the job's episode of that seed and keep where its cars were."""
    job, seed = what
    recorder = RecordingEnv(cast(DrivingEnv, environment(job.scenario, job.cost_names)))
    episode = rollout(recorder, NumpyActor(job.weights, job.model), seed, job.deterministic)
    return Recording(episode, recorder.tracks())
