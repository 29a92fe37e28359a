"""The PettingZoo face: a thin view on a DrivingEnv. Every car's life has a name of its own, agent0, agent1, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Box
from pettingzoo import ParallelEnv

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray, StepResult
from maip3o.envs.driving.outcomes import Cause
from maip3o.envs.driving.views import CarStates, DrivingEnv, RoadMap
from maip3o.errors import UserError

Observations = dict[str, FloatArray]
Infos = dict[str, dict[str, Any]]
DEFAULT_COSTS = ("termination",)


class ParallelDriving(ParallelEnv):
    """PettingZoo's ParallelEnv over slots.

    Without respawn, slot i is agent<i>. With respawn, a new car gets the next unused name: a name never comes back.
    """

    def __init__(self, scenario: ScenarioConfig, env: DrivingEnv) -> None:
        self.metadata = {"name": scenario.name, "render_modes": [], "is_parallelizable": True}
        self.render_mode = None
        self.array_env = env
        # MetaDrive seats at most one new car a step, and none after the horizon.
        lives = env.num_slots + (scenario.horizon if scenario.respawn else 0)
        self.possible_agents = [f"agent{index}" for index in range(lives)]
        self.agents: list[str] = []
        self._name_of_slot = [""] * env.num_slots
        self._lives = 0
        self._seeds = np.random.default_rng()
        self._observation_spaces: dict[str, Box] = {}
        self._action_spaces: dict[str, Box] = {}

    def observation_space(self, agent: str) -> Box:
        shape = (self.array_env.spec.observation_size,)
        return self._observation_spaces.setdefault(agent, Box(0.0, 1.0, shape, np.float32))

    def action_space(self, agent: str) -> Box:
        """Steering (left positive) and throttle (negative: brake, or reverse where enabled)."""
        shape = (self.array_env.spec.action_size,)
        return self._action_spaces.setdefault(agent, Box(-1.0, 1.0, shape, np.float32))

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        """Start the episode of `seed`. Without a seed: the next of the sequence that the last seed began."""
        if seed is None:
            seed = int(self._seeds.integers(2**31))
        result = self.array_env.reset(seed)
        self._seeds = np.random.default_rng(seed)
        self._lives = 0
        self._name_fresh_cars(result)
        self.agents = self._living(result)
        return self._observations(result), {name: self._info(result, slot) for slot, name in self._named(result.alive)}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        result = self.array_env.step(self._action_rows(actions))
        acted = np.isin(self._name_of_slot, self.agents)
        slots = list(self._named(acted))
        ended = result.outcome != 0
        observations = {
            name: (result.final_observation if ended[slot] else result.observation)[slot] for slot, name in slots
        }
        rewards = {name: float(result.reward[slot]) for slot, name in slots}
        terminated = {name: bool(result.terminated[slot]) for slot, name in slots}
        truncated = {name: bool(result.truncated[slot]) for slot, name in slots}
        infos = {name: self._info(result, slot) for slot, name in slots}
        self._name_fresh_cars(result)
        for slot, name in self._named(result.fresh):
            observations[name] = result.observation[slot]
            rewards[name], terminated[name], truncated[name] = 0.0, False, False
            infos[name] = self._birth_info(slot)
        self.agents = self._living(result)
        return observations, rewards, terminated, truncated, infos

    def car_states(self) -> CarStates:
        return self.array_env.car_states()

    def road_map(self) -> RoadMap:
        return self.array_env.road_map()

    def close(self) -> None:
        self.agents = []
        self.array_env.close()

    def _named(self, slots: Any) -> list[tuple[int, str]]:
        return [(int(slot), self._name_of_slot[slot]) for slot in np.flatnonzero(slots)]

    def _living(self, result: StepResult) -> list[str]:
        return [name for _, name in self._named(result.alive)]

    def _name_fresh_cars(self, result: StepResult) -> None:
        for slot in np.flatnonzero(result.fresh):
            self._name_of_slot[slot] = self.possible_agents[self._lives]
            self._lives += 1

    def _observations(self, result: StepResult) -> Observations:
        return {name: result.observation[slot] for slot, name in self._named(result.alive)}

    def _birth_info(self, slot: int) -> dict[str, Any]:
        costs = dict.fromkeys(self.array_env.spec.cost_names, 0.0)
        return {"cause": "none", "costs": costs, "arrived": False, "route_completion": 0.0, "slot": slot}

    def _info(self, result: StepResult, slot: int) -> dict[str, Any]:
        cause = Cause(int(result.outcome[slot]))
        costs = zip(self.array_env.spec.cost_names, result.cost[slot].tolist(), strict=True)
        return {
            "cause": cause.name.lower(),
            "costs": dict(costs),
            "arrived": cause == Cause.ARRIVED,
            "route_completion": float(result.measurements[slot, 0]),
            "slot": slot,
        }

    def _action_rows(self, actions: dict[str, Any]) -> FloatArray:
        """[A, action_size]; checked before anything moves."""
        if not self.agents:
            raise UserError("step() after the end of the episode: call reset() first")
        for name in actions:
            if name not in self.agents:
                raise UserError(f"action for {name!r}, which does not drive now: driving are {', '.join(self.agents)}")
        env = self.array_env
        rows = np.zeros((env.num_slots, env.spec.action_size), dtype=np.float32)
        for slot, name in enumerate(self._name_of_slot):
            if name in self.agents:
                rows[slot] = _checked_action(name, actions, env.spec.action_size)
        return rows


def _checked_action(name: str, actions: dict[str, Any], size: int) -> FloatArray:
    if name not in actions:
        raise UserError(f"no action for {name!r}, which is driving")
    try:
        action = np.asarray(actions[name], dtype=np.float32)
    except (TypeError, ValueError):
        raise UserError(f"action of {name!r} is not a list of numbers: {actions[name]!r}") from None
    if action.shape != (size,):
        raise UserError(f"action of {name!r} has shape {action.shape}: must be ({size},)")
    if not np.isfinite(action).all():
        raise UserError(f"action of {name!r} is not finite: {action.tolist()}")
    return action


def make_env(scenario: str, costs: Sequence[str] = DEFAULT_COSTS, **overrides: Any) -> ParallelDriving:
    """A PettingZoo ParallelEnv: make_env("intersection", num_agents=6, costs=["crash"], backend="stock").

    `overrides` are fields of ScenarioConfig (conf/scenario/*.yaml explains them), `costs` names of costs of the world.
    """
    from maip3o.envs import load_scenario, make_array_env, scenario_names

    config = load_scenario(scenario, **overrides)
    if config.world != "driving":
        raise UserError(f"make_env: {scenario} has no cars; those with cars are {', '.join(scenario_names('driving'))}")
    return ParallelDriving(config, cast(DrivingEnv, make_array_env(config, costs)))
