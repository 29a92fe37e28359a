"""Where cars start and where they go: the draws of MetaDrive's spawn managers, in their order.

"MetaDrive" here is MetaDrive with the corrections of maip3o.envs.corrected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from metadrive.base_class.randomizable import Randomizable
from metadrive.component.road_network import Road
from metadrive.manager.spawn_manager import SpawnManager
from metadrive.utils.random_utils import get_np_random

LONGITUDINAL_SPREAD = SpawnManager.RESPAWN_REGION_LONGITUDE - SpawnManager.MAX_VEHICLE_LENGTH
LATERAL_SPREAD = SpawnManager.RESPAWN_REGION_LATERAL - SpawnManager.MAX_VEHICLE_WIDTH

LaneIndex = tuple[str, str, int]
Start = tuple[LaneIndex, float, float]  # lane, longitudinal, lateral


@dataclass(frozen=True)
class Place:
    """Where a car starts, and the node that it is sent to."""

    lane: LaneIndex
    longitudinal: float
    lateral: float
    destination: str


class Spawner:
    """SpawnManager, with the destinations of MAIntersectionSpawnManager."""

    def __init__(self, spawn_manager: Any) -> None:
        self._num_agents = spawn_manager.num_agents
        self._starts = [_start(config) for config in spawn_manager.available_agent_configs]
        self._safe_starts = [_start(config) for config in spawn_manager.safe_spawn_places.values()]
        self._ends = [(-road).end_node for road in self._end_roads(spawn_manager.engine.global_config)]
        self._random = np.random.RandomState()

    def _end_roads(self, config: Any) -> list[Any]:
        roads: list[Any] = config["spawn_roads"]
        return roads

    def reset(self, seed: int) -> list[Place]:
        """SpawnManager.reset: one place per slot."""
        self._random = get_np_random(seed)
        chosen = self._random.choice(len(self._starts), self._num_agents, replace=False)
        if len(chosen) == 1:
            chosen = [0]  # as MetaDrive does
        starts = [self._spread(*self._starts[index]) for index in chosen]
        return [self._send(slot, start) for slot, start in enumerate(starts)]

    def _spread(self, lane: LaneIndex, longitudinal: float, lateral: float) -> Start:
        """SpawnManager._randomize_position_in_slot"""
        longitudinal += self._random.uniform(-LONGITUDINAL_SPREAD / 2, LONGITUDINAL_SPREAD / 2)
        lateral += self._random.uniform(-LATERAL_SPREAD / 2, LATERAL_SPREAD / 2)
        return lane, longitudinal, lateral

    def _send(self, slot: int, start: Start) -> Place:
        lane, longitudinal, lateral = start
        return Place(lane, longitudinal, lateral, self._destination(slot, lane))

    def _destination(self, slot: int, lane: LaneIndex) -> str:
        return self._ends[self._random.choice(len(self._ends))]

    def respawn(self, slot: int, is_free: Callable[[Start], bool]) -> Place | None:
        """MultiAgentMetaDrive._respawn_vehicles: a place for one more car, if there is one.

        At most one car comes per step: each place is looked at once, and a second look finds none.
        """
        seed = self._random.randint(0, Randomizable.MAX_RAND_INT)
        free = [start for start in self._safe_starts if self._is_open(start[0]) and is_free(start)]
        if not free:
            return None
        start = free[get_np_random(int(seed)).choice(len(free), 1)[0]]
        place = self._send(slot, start)
        self._random.randint(0, Randomizable.MAX_RAND_INT)  # drawn for the second look
        return place

    def _is_open(self, lane: LaneIndex) -> bool:
        return True

    def after_end(self, slot: int, done: bool) -> None:
        """A car has ended; `done`: not just by the horizon."""


class ParkingSpawner(Spawner):
    """maip3o.envs.driving.corrected.OrderedParkingSpawnManager: cars from outside get a space of their own."""

    def __init__(self, spawn_manager: Any) -> None:
        super().__init__(spawn_manager)
        self._entries = {
            (road.start_node, road.end_node) for road in spawn_manager.engine.global_config["in_spawn_roads"]
        }
        parking_map = spawn_manager.engine.current_map
        self._spaces = [space.end_node for space in parking_map.parking_space]
        inwards = parking_map.parking_lot.in_direction_parking_space
        self._space_of_road = {
            lane[:2]: inwards(Road(*lane[:2])).end_node for lane, _, _ in self._starts if lane[:2] not in self._entries
        }
        self._free: set[str] = set()
        self._space_of_slot: dict[int, str] = {}

    def _end_roads(self, config: Any) -> list[Any]:
        roads: list[Any] = config["in_spawn_roads"]
        return roads

    def reset(self, seed: int) -> list[Place]:
        self._free = set(self._spaces)
        self._space_of_slot = {}
        return super().reset(seed)

    def _destination(self, slot: int, lane: LaneIndex) -> str:
        if lane[:2] not in self._entries:
            return super()._destination(slot, lane)
        free = [space for space in self._spaces if space in self._free]
        space = free[self._random.choice(len(free))]
        self._free.remove(space)
        self._space_of_slot[slot] = space
        return space

    def _is_open(self, lane: LaneIndex) -> bool:
        if lane[:2] in self._entries:
            return len(self._free) > 0
        return self._space_of_road[lane[:2]] in self._free

    def after_end(self, slot: int, done: bool) -> None:
        # A car that the horizon cut keeps its space for ever, as in MetaDrive.
        space = self._space_of_slot.pop(slot, None)
        if done and space is not None:
            self._free.add(space)


def _start(config: Any) -> Start:
    place = config["config"]
    return tuple(place["spawn_lane_index"]), place["spawn_longitude"], place["spawn_lateral"]
