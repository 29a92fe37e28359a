"""Worlds of a single agent: one slot, no respawn, the same time-out. A robot only says what one step did to it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray, StepResult, WorldSpec, blank_result
from maip3o.errors import UserError


class Robot(Protocol):
    """What AloneEnv asks of a robot. `step` says all but the observation, which is asked for afterwards."""

    def reset(self, seed: int) -> None:
        """Start the episode that `seed` stands for, whatever came before it."""

    def step(self, action: FloatArray) -> tuple[float, Any, int, Any]:
        """action [U] -> reward, costs [K], outcome (0: it goes on), measurements [P]."""

    def observe(self, out: FloatArray) -> None:
        """Write the observation into out [O] float32."""

    def close(self) -> None: ...


class AloneEnv:
    """Implements envs.contract.ArrayEnv with A = 1. One StepResult serves all steps: copy what must last."""

    num_slots = 1

    def __init__(self, robot: Robot, spec: WorldSpec, scenario: ScenarioConfig) -> None:
        self.spec, self.end_rule = spec, scenario.end_rule  # every rule ends the episode with the only life
        self.robot, self._horizon = robot, scenario.horizon
        self._time_out = spec.indices("timeout")[0]
        self._action_shape = (1, spec.action_size)
        self._time = 0
        self._now = blank_result(self.spec, 1)

    def reset(self, seed: int) -> StepResult:
        self.robot.reset(seed)
        self._time = 0
        now = self._now = blank_result(self.spec, 1)
        now.alive[0] = now.fresh[0] = True
        self.robot.observe(now.observation[0])
        return now

    def step(self, action: FloatArray) -> StepResult:
        now = self._now
        if now.over:
            raise UserError("step() after the end of the episode: call reset(seed) first")
        if action.shape != self._action_shape:
            raise UserError(f"action has shape {action.shape}: must be {self._action_shape}")
        reward, costs, outcome, measurements = self.robot.step(action[0])
        self._time += 1
        now.fresh[0] = False
        now.reward[0] = reward
        now.cost[0] = costs
        now.measurements[0] = measurements
        self.robot.observe(now.observation[0])
        if outcome or self._time == self._horizon:
            self._end(now, outcome)
        return now

    def _end(self, now: StepResult, outcome: int) -> None:
        """An end of the robot's own outranks the time-out that falls on the same step."""
        now.outcome[0] = outcome or self._time_out
        kind = self.spec.outcomes[now.outcome[0]].kind
        now.truncated[0] = kind in ("timeout", "cut")
        now.terminated[0] = not now.truncated[0]
        now.final_observation[0] = now.observation[0]
        now.observation[0] = 0.0
        now.alive[0] = False
        now.over = True

    def close(self) -> None:
        self.robot.close()


def require_alone(scenario: ScenarioConfig) -> None:
    """Refuse what a world of one agent has no use for."""
    if scenario.num_agents != 1:
        raise UserError(f"scenario.num_agents={scenario.num_agents}: world {scenario.world} has one robot; must be 1")
    if scenario.respawn:
        raise UserError(f"scenario.respawn=true: world {scenario.world} has one robot, and its end is the episode's")
    if scenario.horizon < 1:
        raise UserError(f"scenario.horizon={scenario.horizon}: must be at least 1")


def linear_map(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(middle, half width) that take [-1, 1] to [low, high]: middle + half width * action."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return (low + high) / 2.0, (high - low) / 2.0
