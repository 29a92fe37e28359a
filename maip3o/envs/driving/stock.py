"""Stock MetaDrive behind the array protocol: its dictionaries become rows of slots here and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.backend import RawStep, empty_raw_step
from maip3o.envs.driving.geometry import road_map, route
from maip3o.envs.driving.simulator import make_metadrive
from maip3o.envs.driving.views import CarStates, RoadMap

FLAGS = {
    "arrived": ("arrive_dest",),
    "crash_vehicle": ("crash_vehicle",),
    "crash_object": ("crash_object", "crash_building", "crash_human"),
    "crash_sidewalk": ("crash_sidewalk",),
    "out_of_road": ("out_of_road",),
    "max_step": ("max_step",),
}


class StockBackend:
    """One MetaDrive environment. One per process: MetaDrive's engine is a singleton."""

    def __init__(self, scenario: ScenarioConfig) -> None:
        self._env = make_metadrive(scenario)
        space = next(iter(self._env.observation_space.spaces.values()))
        self.num_slots = scenario.num_agents
        self.observation_size = int(space.shape[0])
        self.action_size = 2
        self._agent_of_slot: list[str | None] = [None] * self.num_slots

    def reset(self, seed: int) -> RawStep:
        observations, _ = self._env.reset(seed=seed)
        self._agent_of_slot = [f"agent{slot}" for slot in range(self.num_slots)]
        raw = empty_raw_step(self.num_slots, self.observation_size)
        raw.fresh[:] = True
        for slot, agent in enumerate(self._agent_of_slot):
            raw.fresh_observation[slot] = observations[agent]
        return raw

    def step(self, action: FloatArray) -> RawStep:
        # MetaDrive computes in the precision of what it is given.
        action = np.asarray(action, dtype=np.float64)
        living = self._living_slots()
        observations, rewards, terminated, truncated, infos = self._env.step(
            {agent: action[slot] for agent, slot in living.items()}
        )
        raw = empty_raw_step(self.num_slots, self.observation_size)
        for agent, slot in living.items():
            info = infos[agent]
            raw.acted[slot] = True
            raw.observation[slot] = observations[agent]
            raw.reward[slot] = rewards[agent]
            raw.ended[slot] = terminated[agent] or truncated[agent]
            for name, keys in FLAGS.items():
                getattr(raw, name)[slot] = any(info[key] for key in keys)
            raw.route_completion[slot] = info["route_completion"]
            raw.speed[slot] = info["velocity"]
        self._seat_new_cars(raw, observations)
        return raw

    def _living_slots(self) -> dict[str, int]:
        living = self._env.agents
        return {agent: slot for slot, agent in enumerate(self._agent_of_slot) if agent is not None and agent in living}

    def _seat_new_cars(self, raw: RawStep, observations: dict[str, Any]) -> None:
        """A wreck keeps its slot until MetaDrive removes it; a new car takes the lowest free one."""
        manager = self._env.agent_manager
        in_world = manager.active_agents.keys() | manager.dying_agents.keys()
        self._agent_of_slot = [agent if agent in in_world else None for agent in self._agent_of_slot]
        for agent in manager.active_agents:
            if agent not in self._agent_of_slot:
                slot = self._agent_of_slot.index(None)
                self._agent_of_slot[slot] = agent
                raw.fresh[slot] = True
                raw.fresh_observation[slot] = observations[agent]

    def _cars(self) -> list[Any]:
        """Per slot the vehicle that stands in the world, living or wreck, or None."""
        manager = self._env.agent_manager
        cars = {**manager.active_agents, **manager.dying_agents}
        return [cars.get(agent) for agent in self._agent_of_slot]

    def car_states(self) -> CarStates:
        states = CarStates(
            present=np.zeros(self.num_slots, dtype=np.bool_),
            position=np.zeros((self.num_slots, 2)),
            heading=np.zeros(self.num_slots),
            speed=np.zeros(self.num_slots),
            route_completion=np.zeros(self.num_slots),
        )
        for slot, car in enumerate(self._cars()):
            if car is not None:
                states.present[slot] = True
                states.position[slot] = car.position
                states.heading[slot] = car.heading_theta
                states.speed[slot] = car.speed
                states.route_completion[slot] = car.navigation.route_completion
        return states

    def road_map(self) -> RoadMap:
        return road_map(self._env.current_map)

    def routes(self) -> list[FloatArray]:
        return [np.zeros((0, 2)) if car is None else route(car) for car in self._cars()]

    def close(self) -> None:
        self._env.close()
