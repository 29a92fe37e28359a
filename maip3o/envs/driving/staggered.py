"""Cars that start one after another: an easier world to begin with, for crowded maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray, StepResult
from maip3o.envs.driving.views import CarStates, DrivingEnv, RoadMap


class StaggeredStart:
    """An ArrayEnv in which each car waits where it stands for up to `spread` steps, drawn from the episode's seed.

    A waiting car takes no part: it is not alive, is not rewarded and costs nothing; one that is hit has had no life
    (the half rule counts it all the same). What it waits counts towards its horizon. When nobody drives, the next one
    starts at once. Cars of a respawn do not wait.
    """

    def __init__(self, inner: DrivingEnv, spread: int) -> None:
        self._inner, self._spread = inner, spread
        self.num_slots, self.spec, self.end_rule = inner.num_slots, inner.spec, inner.end_rule
        self._steps = 0
        self._start = np.zeros(self.num_slots, dtype=np.int64)
        self._waiting = np.zeros(self.num_slots, dtype=np.bool_)

    def reset(self, seed: int) -> StepResult:
        now = self._inner.reset(seed)
        self._start = np.random.default_rng([seed, 2]).integers(self._spread + 1, size=self.num_slots)
        self._start -= self._start.min()
        self._steps = 0
        self._waiting = self._start > 0
        return self._seen(now, begins=np.zeros(self.num_slots, dtype=np.bool_))

    def step(self, action: FloatArray) -> StepResult:
        waiting = self._waiting
        if not waiting.any():
            return self._inner.step(action)
        now = self._inner.step(np.where(waiting[:, None], 0.0, action))
        self._steps += 1
        still = waiting & now.alive & ~(now.terminated | now.truncated)
        if still.any() and not (now.alive & ~still).any():
            self._steps = max(self._steps, int(self._start[still].min()))
        begins = still & (self._start <= self._steps)
        self._waiting = still & ~begins
        return self._seen(_without_outcomes(now, waiting), begins)

    def _seen(self, now: StepResult, begins: BoolArray) -> StepResult:
        """`now` with the cars that wait taken out and those that begin marked as fresh."""
        drives = ~self._waiting
        observation = np.where(drives[:, None], now.observation, np.float32(0))
        return replace(now, observation=observation, alive=now.alive & drives, fresh=(now.fresh & drives) | begins)

    def car_states(self) -> CarStates:
        return self._inner.car_states()

    def road_map(self) -> RoadMap:
        return self._inner.road_map()

    def routes(self) -> list[FloatArray]:
        return self._inner.routes()

    def close(self) -> None:
        self._inner.close()


def _without_outcomes(now: StepResult, slots: BoolArray) -> StepResult:
    """`now` with the rows of `slots` as if nothing had acted there."""
    rows = slots[:, None]
    return replace(
        now,
        reward=np.where(slots, 0.0, now.reward),
        cost=np.where(rows, np.float32(0), now.cost),
        terminated=now.terminated & ~slots,
        truncated=now.truncated & ~slots,
        outcome=np.where(slots, now.outcome.dtype.type(0), now.outcome),
        final_observation=np.where(rows, np.float32(0), now.final_observation),
        measurements=np.where(rows, 0.0, now.measurements),
    )
