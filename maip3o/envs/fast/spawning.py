"""Where cars start and where they go: the draws of MetaDrive's spawn managers, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from metadrive.manager.spawn_manager import SpawnManager
from metadrive.utils.random_utils import get_np_random

LONGITUDINAL_SPREAD = SpawnManager.RESPAWN_REGION_LONGITUDE - SpawnManager.MAX_VEHICLE_LENGTH
LATERAL_SPREAD = SpawnManager.RESPAWN_REGION_LATERAL - SpawnManager.MAX_VEHICLE_WIDTH

LaneIndex = tuple[str, str, int]


@dataclass(frozen=True)
class Place:
    """Where a car starts, and the node that it is sent to."""

    lane: LaneIndex
    longitudinal: float
    lateral: float
    destination: str


class Spawner:
    """SpawnManager.reset with the destinations of MAIntersectionSpawnManager."""

    def __init__(self, spawn_manager: Any) -> None:
        self._num_agents = spawn_manager.num_agents
        self._slots = [
            (c["config"]["spawn_lane_index"], c["config"]["spawn_longitude"], c["config"]["spawn_lateral"])
            for c in spawn_manager.available_agent_configs
        ]
        self._ends = self._end_nodes(spawn_manager)
        self._random = np.random.RandomState()

    def _end_nodes(self, spawn_manager: Any) -> list[str]:
        return [(-road).end_node for road in spawn_manager.engine.global_config["spawn_roads"]]

    def reset(self, seed: int) -> list[Place]:
        """One place per agent."""
        self._random = get_np_random(seed)
        chosen = self._random.choice(len(self._slots), self._num_agents, replace=False)
        if len(chosen) == 1:
            chosen = [0]  # as MetaDrive does
        starts = [self._spread(*self._slots[index]) for index in chosen]
        return [Place(*start, self._destination(agent, start[0])) for agent, start in enumerate(starts)]

    def _spread(self, lane: LaneIndex, longitudinal: float, lateral: float) -> tuple[LaneIndex, float, float]:
        """SpawnManager._randomize_position_in_slot"""
        longitudinal += self._random.uniform(-LONGITUDINAL_SPREAD / 2, LONGITUDINAL_SPREAD / 2)
        lateral += self._random.uniform(-LATERAL_SPREAD / 2, LATERAL_SPREAD / 2)
        return lane, longitudinal, lateral

    def _destination(self, agent: int, lane: LaneIndex) -> str:
        return self._ends[self._random.choice(len(self._ends))]


class ParkingSpawner(Spawner):
    """maip3o.envs.corrected.OrderedParkingSpawnManager: cars from outside get a space of their own."""

    def __init__(self, spawn_manager: Any) -> None:
        super().__init__(spawn_manager)
        entries = spawn_manager.engine.global_config["in_spawn_roads"]
        self._entries = {(road.start_node, road.end_node) for road in entries}
        self._spaces = [space.end_node for space in spawn_manager.engine.current_map.parking_space]
        self._free = list(self._spaces)

    def _end_nodes(self, spawn_manager: Any) -> list[str]:
        return [(-road).end_node for road in spawn_manager.engine.global_config["in_spawn_roads"]]

    def reset(self, seed: int) -> list[Place]:
        self._free = list(self._spaces)
        return super().reset(seed)

    def _destination(self, agent: int, lane: LaneIndex) -> str:
        if lane[:2] not in self._entries:
            return super()._destination(agent, lane)
        return self._free.pop(self._random.choice(len(self._free)))
