"""A toy environment with known answers: cars on separate lanes choose how fast to drive, and speed kills.

Each step an agent chooses u = clip(action[-1], 0, 1), earns u, and crashes with probability hazard * u^2. It arrives
when it has driven `distance` in all, is timed out at the horizon, and is cut by the end rule of the other
environments. Everything is independent between agents, so the best policy under a limit on the share of crashes
follows from a one-dimensional dynamic programme (tests/test_algo_toy_task.py). An episode is a pure function of
(settings, actions, seed).
"""

from __future__ import annotations

import numpy as np

from maip3o.envs.contract import BoolArray, Cost, FloatArray, IntArray, StepResult, WorldSpec
from maip3o.envs.driving.outcomes import ELIMINATED, MEASUREMENTS, OUTCOMES, Cause
from maip3o.envs.driving.views import CarStates, RoadMap
from maip3o.envs.registry import World

IS_ELIMINATED = np.isin(np.arange(len(Cause)), ELIMINATED)
IS_CUT = np.isin(np.arange(len(Cause)), (Cause.TIME_OUT, Cause.CUT))

KINDS = {"termination": "event", "speed": "count"}


class ToyEnv:
    """Implements envs.contract.ArrayEnv. Observation: [1, age / horizon, a cue shown at age 0 only]."""

    def __init__(
        self,
        num_agents: int = 3,
        horizon: int = 8,
        hazard: float = 0.3,
        distance: float = float("inf"),
        end_rule: str = "all",
        respawn: bool = False,
        cost_names: tuple[str, ...] = ("termination",),
    ) -> None:
        self.num_slots = num_agents
        self.horizon = horizon
        self.hazard = hazard
        self.distance = distance
        self.end_rule = end_rule
        self.respawn = respawn
        costs = tuple(Cost(name, KINDS[name]) for name in cost_names)
        self.spec = WorldSpec(3, 2, OUTCOMES, MEASUREMENTS, costs, (0.0, 0.5), (0.6, 0.3), "car")

    def reset(self, seed: int) -> StepResult:
        rng = np.random.default_rng(seed)
        self._luck = rng.random((self.horizon, self.num_slots))
        self._cue = rng.normal(size=(self.horizon + 1, self.num_slots))
        self._time = 0
        self._alive = np.ones(self.num_slots, bool)
        self._born = np.zeros(self.num_slots, np.int64)
        self._driven = np.zeros(self.num_slots)
        self._speed = np.zeros(self.num_slots)
        self._eliminated = 0
        return self._result(np.zeros(self.num_slots), self._alive.copy(), np.zeros(self.num_slots, np.int8), False)

    def step(self, action: FloatArray) -> StepResult:
        acted = self._alive.copy()
        self._speed = np.where(acted, np.clip(action[:, -1], 0.0, 1.0), 0.0)
        self._driven += self._speed
        cause = np.zeros(self.num_slots, np.int8)
        cause[acted & (self._driven >= self.distance)] = Cause.ARRIVED
        cause[acted & (self._luck[self._time] < self.hazard * self._speed**2)] = Cause.CRASH_VEHICLE
        self._time += 1
        self._eliminated += int(IS_ELIMINATED[cause].sum())
        if self._time == self.horizon:
            cause[acted & (cause == Cause.NONE)] = Cause.TIME_OUT
        limit = {"half": self.num_slots / 2, "first": 0, "all": float("inf")}[self.end_rule]
        over = self._time == self.horizon or self._eliminated > limit
        if over:
            cause[acted & (cause == Cause.NONE)] = Cause.CUT
        self._alive = acted & (cause == Cause.NONE)
        fresh = np.zeros(self.num_slots, bool)
        if self.respawn and not over:
            fresh = ~self._alive
            self._alive = np.ones(self.num_slots, bool)
        return self._result(self._speed, fresh, cause, over or not self._alive.any())

    def _observe(self) -> FloatArray:
        age = self._time - self._born
        cue = np.where(age == 0, self._cue[self._time], 0.0)
        return np.stack([np.ones(self.num_slots), age / self.horizon, cue], -1).astype(np.float32)

    def _result(self, reward: FloatArray, fresh: BoolArray, cause: IntArray, over: bool) -> StepResult:
        truncated = IS_CUT[cause]
        ended = cause != Cause.NONE
        final = np.where(ended[:, None], self._observe(), 0.0).astype(np.float32)
        completion = np.clip(self._driven / self.distance, 0.0, 1.0)
        self._born[fresh] = self._time
        self._driven[fresh] = 0.0
        costs = {"termination": IS_ELIMINATED[cause], "speed": reward}
        cost = np.array([costs[name] for name in self.spec.cost_names], np.float32).reshape(-1, self.num_slots)
        return StepResult(
            observation=np.where(self._alive[:, None], self._observe(), 0.0).astype(np.float32),
            alive=self._alive.copy(),
            fresh=fresh,
            reward=reward.astype(np.float64),
            cost=cost.T,
            terminated=ended & ~truncated,
            truncated=truncated,
            outcome=cause,
            final_observation=final,
            measurements=np.stack([completion, reward.astype(np.float64)], axis=-1),
            over=over,
        )

    def car_states(self) -> CarStates:
        position = np.stack([self._driven, np.arange(self.num_slots) * 4.0], -1)
        heading = np.zeros(self.num_slots)
        completion = np.clip(self._driven / self.distance, 0.0, 1.0)
        return CarStates(self._alive.copy(), position, heading, self._speed.copy(), completion)

    def road_map(self) -> RoadMap:
        length, width = float(self.horizon), self.num_slots * 4.0
        corners = np.array([[0.0, -2.0], [length, -2.0], [length, width], [0.0, width]])
        return RoadMap([corners], [], (0.0, -2.0, length, width))

    def routes(self) -> list[FloatArray]:
        return [np.array([[0.0, 4.0 * a], [float(self.horizon), 4.0 * a]]) for a in range(self.num_slots)]

    def close(self) -> None:
        pass


WORLD = World(
    make=lambda scenario, costs: ToyEnv(scenario.num_agents, scenario.horizon, cost_names=costs, **scenario.settings),
    costs=lambda scenario: KINDS,
    observation_size=lambda scenario: 3,
    side_by_side=4,
)
