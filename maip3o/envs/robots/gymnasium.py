"""Any environment of Gymnasium that acts and observes by numbers, as a world with one cost.

`scenario.id` is its id (`package:Name-v0` imports the package first), `scenario.settings` are arguments of
gymnasium.make. `scenario.cost` is a key of info, or `package.module:function`: after each step function(env, info)
returns its cost. The env is the one inside all wrappers. Actions in [-1, 1] are clipped, and mapped linearly to the
bounds. An episode is as much a function of its seed as the environment's reset(seed) makes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import RUNNING, Cost, FloatArray, Outcome, WorldSpec
from maip3o.envs.registry import World
from maip3o.envs.robots.alone import AloneEnv, linear_map, require_alone
from maip3o.envs.robots.foreign import cost_function, costs_of
from maip3o.errors import UserError

TIME_OUT, ENDED = 1, 2
OUTCOMES = (RUNNING, Outcome("time_out", "timeout", "timed out"), Outcome("ended", "end"))


class GymnasiumRobot:
    """A robots.alone.Robot over an environment as gymnasium.make wraps it."""

    def __init__(self, scenario: ScenarioConfig, charged: bool) -> None:
        self.id = scenario.id
        self.env = _make_env(scenario)
        self._cost = cost_function(scenario) if charged else None
        observation, action = self._box("observation"), self._box("action")
        if not (np.isfinite(action.low).all() and np.isfinite(action.high).all()):
            raise UserError(f"scenario.id={self.id}: its actions have no bounds; they must have")
        self._action_space = action
        self.middle, self.half_range = linear_map(action.low.ravel(), action.high.ravel())
        self.observation_size = int(np.prod(observation.shape))
        self._seen = np.zeros(self.observation_size)

    def _box(self, what: str) -> Any:
        from gymnasium.spaces import Box

        space = getattr(self.env, f"{what}_space")
        if not isinstance(space, Box):
            kind = type(space).__name__
            raise UserError(f"scenario.id={self.id}: its {what}s must be an array of numbers (Box), not {kind}")
        return space

    def reset(self, seed: int) -> None:
        self._seen = np.ravel(self.env.reset(seed=seed)[0])
        self._require_finite("observation", self._seen)

    def step(self, action: FloatArray) -> tuple[float, Any, int, Any]:
        values = self.middle + self.half_range * np.clip(action, -1.0, 1.0)
        space = self._action_space
        seen, reward, terminated, truncated, info = self.env.step(values.astype(space.dtype).reshape(space.shape))
        self._seen = np.ravel(seen)
        cost = () if self._cost is None else self._cost(self.env.unwrapped, info)
        for what, found in (("observation", self._seen), ("reward", reward), ("cost", cost)):
            self._require_finite(what, found)
        return float(reward), cost, ENDED if terminated else TIME_OUT if truncated else 0, ()

    def _require_finite(self, what: str, values: Any) -> None:
        if not np.isfinite(values).all():
            raise UserError(f"scenario.id={self.id}: its {what} is not finite; the physics may have broken down")

    def observe(self, out: FloatArray) -> None:
        out[:] = self._seen

    def close(self) -> None:
        self.env.close()


def _make_env(scenario: ScenarioConfig) -> Any:
    import gymnasium

    try:
        return gymnasium.make(scenario.id, disable_env_checker=True, **scenario.settings)
    except Exception as error:  # of any package
        reason = " ".join(str(error).split())
        raise UserError(f"scenario.id={scenario.id}: gymnasium cannot make it ({reason})") from None


def _make(scenario: ScenarioConfig, cost_names: tuple[str, ...]) -> AloneEnv:
    robot = GymnasiumRobot(scenario, bool(cost_names))
    costs = tuple(Cost(name, "count") for name in cost_names)
    return AloneEnv(robot, WorldSpec(robot.observation_size, len(robot.middle), OUTCOMES, (), costs), scenario)


def _check(scenario: ScenarioConfig) -> None:
    require_alone(scenario)
    if not scenario.id:
        raise UserError("scenario.id: name an environment of Gymnasium, such as Pendulum-v1")


def _inspect(scenario: ScenarioConfig) -> None:
    """Whether the environment can be made, and its cost be found in a step."""
    env = _make(scenario, tuple(costs_of(scenario)))
    env.reset(0)
    env.step(np.zeros((1, env.spec.action_size)))
    env.close()


WORLD = World(make=_make, costs=costs_of, check=_check, inspect=_inspect, side_by_side=16)
