"""MetaDrive's multi-agent environments with their faults put right, as subclasses: nothing of MetaDrive is patched.

What differs from MetaDrive 0.4.3 is listed in docs/environment.md. "stock" in this project means these classes.
"""

from __future__ import annotations

import logging
from typing import Any

from metadrive.component.pgblock.parking_lot import ParkingLot
from metadrive.component.road_network import Road
from metadrive.engine.base_engine import BaseEngine
from metadrive.engine.engine_utils import engine_initialized
from metadrive.envs.marl_envs import (
    MultiAgentBottleneckEnv,
    MultiAgentIntersectionEnv,
    MultiAgentMetaDrive,
    MultiAgentParkingLotEnv,
    MultiAgentRoundaboutEnv,
    MultiAgentTollgateEnv,
)
from metadrive.envs.marl_envs.marl_parking_lot import ParkingLotSpawnManager

MAX_SEED = 2**31


class OfflineEngine(BaseEngine):
    """Never downloads. Simulation and top-down drawing need no assets."""

    @staticmethod
    def try_pull_asset() -> None:
        pass


class Corrected:
    """Mixin before one of MetaDrive's multi-agent environments."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__({**CORRECTED_CONFIG, **config})  # type: ignore[call-arg]
        # A seed is a scenario index below num_scenarios, for each of which PGMapManager makes a dictionary entry at
        # start: so num_scenarios stays 1 there, and only the range check and the modulo see the true range.
        self.num_scenarios = MAX_SEED

    def lazy_init(self) -> None:
        if engine_initialized():
            return
        engine = OfflineEngine(self.config)  # type: ignore[attr-defined]
        engine._num_scenarios_per_level = MAX_SEED
        self.setup_engine()  # type: ignore[attr-defined]

    def _respawn_single_vehicle(self, randomize_position: bool = False) -> Any:
        # MetaDrive draws the place from a generator seeded with this value, which is None: from the operating system.
        self._DEBUG_RANDOM_SEED = int(self.engine.spawn_manager.generate_seed())  # type: ignore[attr-defined]
        # Parking Lot's own version resets the new car without its config, which puts every one of them at the same
        # default place: all maps use the general version, and Parking Lot's filter lives in its spawn manager.
        return MultiAgentMetaDrive._respawn_single_vehicle(self, randomize_position)

    def reward_function(self, vehicle_id: str) -> tuple[float, dict[str, Any]]:
        reward, info = super().reward_function(vehicle_id)  # type: ignore[misc]
        if "route_completion" not in info:  # Bottleneck and Tollgate leave it out
            info["route_completion"] = self.agents[vehicle_id].navigation.route_completion  # type: ignore[attr-defined]
        return reward, info


CORRECTED_CONFIG: dict[str, Any] = {
    "force_seed_spawn_manager": True,
    "truncate_as_terminate": False,
    "log_level": logging.ERROR,
}


class OrderedParkingSpawnManager(ParkingLotSpawnManager):
    """Draws a free space by its place on the map, not by its place in a set, and applies the respawn filter."""

    def get_parking_space(self, v_id: str) -> Road:
        free = [space for space in self._parking_spaces if space in self.parking_space_available]
        space = free[self.np_random.choice(list(range(len(free))))]
        self.parking_space_available.remove(space)
        self.v_dest_pair[v_id] = space
        return space

    def get_available_respawn_places(self, map: Any, randomize: bool = False) -> dict[str, Any]:
        places = super().get_available_respawn_places(map, randomize)
        return {name: place for name, place in places.items() if self._may_respawn_at(place)}

    def _may_respawn_at(self, place: dict[str, Any]) -> bool:
        """Into the lot only if a space is free; out of a space only if it is nobody's destination."""
        road = Road(*place["config"]["spawn_lane_index"][:2])
        if road in self.engine.global_config["in_spawn_roads"]:
            return len(self.parking_space_available) > 0
        if not ParkingLot.is_in_direction_parking_space(road):
            road = self.engine.current_map.parking_lot.in_direction_parking_space(road)
        return road in self.parking_space_available


class Intersection(Corrected, MultiAgentIntersectionEnv):
    pass


class Roundabout(Corrected, MultiAgentRoundaboutEnv):
    pass


class Bottleneck(Corrected, MultiAgentBottleneckEnv):
    pass


class Tollgate(Corrected, MultiAgentTollgateEnv):
    pass


class ProceduralMap(Corrected, MultiAgentMetaDrive):
    pass


class ParkingLotEnv(Corrected, MultiAgentParkingLotEnv):
    def setup_engine(self) -> None:
        super().setup_engine()
        self.engine.update_manager("spawn_manager", OrderedParkingSpawnManager())


ENVIRONMENTS: dict[str, type] = {
    "intersection": Intersection,
    "parking_lot": ParkingLotEnv,
    "roundabout": Roundabout,
    "bottleneck": Bottleneck,
    "tollgate": Tollgate,
    "pg": ProceduralMap,
}
