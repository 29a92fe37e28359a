"""Any parallel environment of PettingZoo whose agents are alike and act by numbers, as a world with one cost.

`scenario.id` is the module that has `parallel_env`, `scenario.settings` are its arguments. `scenario.cost` is a key of
each agent's info, or `package.module:function`: after each step function(env, agent, info) returns its cost. The
env is the one inside all wrappers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import RUNNING, BoolArray, Cost, FloatArray, Outcome, StepResult, WorldSpec, blank_result
from maip3o.envs.registry import World
from maip3o.envs.robots.alone import linear_map
from maip3o.envs.robots.foreign import cost_function, costs_of
from maip3o.errors import UserError

ENDED, TIME_OUT = 1, 2
OUTCOMES = (RUNNING, Outcome("ended", "end"), Outcome("time_out", "timeout", "timed out"))


class PettingZooEnv:
    """Implements envs.contract.ArrayEnv; slot i is the i-th of the possible agents."""

    def __init__(self, scenario: ScenarioConfig, cost_names: tuple[str, ...]) -> None:
        self._env = _make_parallel_env(scenario)
        self._names: list[str] = list(self._env.possible_agents)
        self.num_slots, self.end_rule, self._horizon = len(self._names), scenario.end_rule, scenario.horizon
        self._id = scenario.id
        if scenario.num_agents != self.num_slots:
            raise UserError(f"scenario.num_agents={scenario.num_agents}: {self._id} has {self.num_slots} agents")
        observations = self._boxes("observation", self._env.observation_space)
        actions = self._boxes("action", self._env.action_space)
        low, high = (np.stack([getattr(box, end).ravel() for box in actions]) for end in ("low", "high"))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise UserError(f"scenario.id={self._id}: its actions have no bounds; they must have")
        self._middle, self._half_range = linear_map(low, high)  # [A, U] each
        self._action_shape = actions[0].shape
        self._cost = cost_function(scenario) if cost_names else None
        costs = tuple(Cost(name, "count") for name in cost_names)
        self.spec = WorldSpec(int(np.prod(observations[0].shape)), low.shape[1], OUTCOMES, (), costs)
        self._alive = np.zeros(self.num_slots, np.bool_)

    def reset(self, seed: int) -> StepResult:
        self._time = 0
        seen, _ = self._env.reset(seed=int(seed))
        self._alive = np.isin(self._names, self._env.agents)
        now = blank_result(self.spec, self.num_slots)
        now.alive[:] = now.fresh[:] = self._alive
        self._fill(now.observation, seen, self._alive)
        return now

    def step(self, action: FloatArray) -> StepResult:
        if not self._alive.any():
            raise UserError("step() after the end of the episode: call reset(seed) first")
        if np.shape(action) != (self.num_slots, self.spec.action_size):
            expected = (self.num_slots, self.spec.action_size)
            raise UserError(f"action has shape {np.shape(action)}: must be {expected}, one row per agent")
        # Clipped: many environments refuse what lies beyond their bounds.
        rows = self._middle + self._half_range * np.clip(action, -1.0, 1.0)
        acting = {
            name: rows[slot].astype(np.float32).reshape(self._action_shape)
            for slot, name in enumerate(self._names)
            if self._alive[slot]
        }
        seen, rewards, terminated, truncated, infos = self._env.step(acting)
        self._time += 1
        now, acted = blank_result(self.spec, self.num_slots), self._alive
        for slot in np.flatnonzero(acted).tolist():
            name = self._names[slot]
            now.reward[slot] = rewards[name]
            now.terminated[slot] = bool(terminated[name])
            now.truncated[slot] = bool(truncated[name]) and not terminated[name]
            if self._cost is not None:
                now.cost[slot] = self._cost(self._env.unwrapped, name, infos[name])
        self._end_lives(now, seen, acted)
        self._require_finite(now)
        return now

    def _end_lives(self, now: StepResult, seen: Mapping[str, Any], acted: BoolArray) -> None:
        living = np.isin(self._names, self._env.agents) & ~now.terminated & ~now.truncated
        if self._time == self._horizon:
            living[:] = False
        now.truncated[:] = acted & ~living & ~now.terminated  # by the environment, or by our horizon
        now.outcome[now.terminated], now.outcome[now.truncated] = ENDED, TIME_OUT
        self._fill(now.final_observation, seen, now.terminated | now.truncated)
        self._alive = living
        now.alive[:] = self._alive
        now.fresh[:] = self._alive & ~acted
        now.over = not self._alive.any()
        self._fill(now.observation, seen, self._alive)

    def _fill(self, rows: FloatArray, seen: Mapping[str, Any], slots: BoolArray) -> None:
        for slot in np.flatnonzero(slots).tolist():
            rows[slot] = np.ravel(seen[self._names[slot]])

    def _require_finite(self, now: StepResult) -> None:
        parts = {"observation": now.observation + now.final_observation, "reward": now.reward, "cost": now.cost}
        for what, values in parts.items():
            bad = ~np.isfinite(values.reshape(self.num_slots, -1)).all(axis=1)
            if bad.any():
                name = self._names[int(bad.argmax())]
                raise UserError(f"scenario.id={self._id}: the {what} of {name} is not finite in step {self._time}")

    def _boxes(self, what: str, space_of: Callable[[str], Any]) -> list[Any]:
        """The Box of each agent, of one shape."""
        from gymnasium.spaces import Box

        spaces = [space_of(name) for name in self._names]
        if not all(isinstance(space, Box) for space in spaces):
            kinds = ", ".join(sorted({type(space).__name__ for space in spaces}))
            raise UserError(f"scenario.id={self._id}: the {what}s must be numbers (Box), not {kinds}")
        if len({space.shape for space in spaces}) > 1:
            shapes = ", ".join(str(space.shape) for space in spaces)
            raise UserError(f"scenario.id={self._id}: the agents must have {what}s of one shape, not {shapes}")
        return spaces

    def close(self) -> None:
        self._env.close()


def _make_parallel_env(scenario: ScenarioConfig) -> Any:
    try:
        make = import_module(scenario.id).parallel_env
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"scenario.id={scenario.id}: must be a module that has parallel_env ({error})") from None
    try:
        return make(**scenario.settings)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UserError(f"scenario.settings={scenario.settings}: {scenario.id} refuses them ({reason})") from None


def _check(scenario: ScenarioConfig) -> None:
    if not scenario.id:
        raise UserError("scenario.id: name the module that has parallel_env, such as mpe2.simple_spread_v3")
    if scenario.respawn:
        raise UserError("scenario.respawn=true: in world pettingzoo the environment decides who comes back")
    for key in ("num_agents", "horizon"):
        if getattr(scenario, key) < 1:
            raise UserError(f"scenario.{key}={getattr(scenario, key)}: must be at least 1")


def _inspect(scenario: ScenarioConfig) -> None:
    """Whether the environment can be made, and its cost be found in a step."""
    env = PettingZooEnv(scenario, tuple(costs_of(scenario)))
    env.reset(0)
    env.step(np.zeros((env.num_slots, env.spec.action_size)))
    env.close()


WORLD = World(make=PettingZooEnv, costs=costs_of, check=_check, inspect=_inspect)
