"""MetaDrive's multi-agent environments with their faults put right, as subclasses: nothing of MetaDrive is patched.

What differs from MetaDrive 0.4.3 is listed in docs/environment.md. "stock" in this project means these classes.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from metadrive.component.pgblock.intersection import InterSection
from metadrive.component.pgblock.parking_lot import ParkingLot
from metadrive.component.pgblock.roundabout import Roundabout
from metadrive.component.pgblock.t_intersection import TInterSection
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
from metadrive.manager.pg_map_manager import PGMapManager

from maip3o.errors import UserError

MAX_SEED = 2**31
ONE_ENGINE = "MetaDrive runs one environment per process: close() the other first, or use another process"


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
        self._own_engine: BaseEngine | None = None

    def lazy_init(self) -> None:
        if engine_initialized():
            if BaseEngine.singleton is not self._own_engine:
                raise UserError(ONE_ENGINE)
            return
        if self._own_engine is not None:
            # An engine leaves the last episode's spawn places and destinations in the config.
            raise UserError("the environment is closed: make a new one")
        self._own_engine = engine = OfflineEngine(self.config)  # type: ignore[attr-defined]
        engine._num_scenarios_per_level = MAX_SEED
        self.setup_engine()

    def setup_engine(self) -> None:
        super().setup_engine()  # type: ignore[misc]
        engine = self.engine  # type: ignore[attr-defined]
        manager = type(engine.map_manager)
        if manager is PGMapManager:
            engine.update_manager("map_manager", SeededMapManager())
        else:
            engine.update_manager("map_manager", type(f"Kept{manager.__name__}", (KeptMap, manager), {})())

    def _respawn_single_vehicle(self, randomize_position: bool = False) -> Any:
        # MetaDrive draws the place from a generator seeded with this value, which is None: from the operating system.
        self._DEBUG_RANDOM_SEED = int(self.engine.spawn_manager.generate_seed())  # type: ignore[attr-defined]
        # Parking Lot's own version resets the new car without its config, which puts every one of them at the same
        # default place: all maps use the general version, and Parking Lot's filter lives in its spawn manager.
        return MultiAgentMetaDrive._respawn_single_vehicle(self, randomize_position)

    @property
    def observations(self) -> dict[str, Any]:
        # MetaDrive also lists the cars that ended in this step, by names that are gone once a car is destroyed.
        manager = self.agent_manager  # type: ignore[attr-defined]
        active = {name: one for name, one in manager.observations.items() if manager.is_active_object(name)}
        return {manager.object_to_agent(name): one for name, one in active.items()}

    def reward_function(self, vehicle_id: str) -> tuple[float, dict[str, Any]]:
        reward, info = super().reward_function(vehicle_id)  # type: ignore[misc]
        if "route_completion" not in info:  # Bottleneck and Tollgate leave it out
            info["route_completion"] = self.agents[vehicle_id].navigation.route_completion  # type: ignore[attr-defined]
        return reward, info


@contextmanager
def restored_exit_lengths() -> Iterator[None]:
    """Maps set the exit length on the block's class, where the next map in this process would find it."""
    before = {block: dict(vars(block)) for block in (InterSection, TInterSection, Roundabout)}
    try:
        yield
    finally:
        for block, attributes in before.items():
            if "EXIT_PART_LENGTH" in attributes:
                block.EXIT_PART_LENGTH = attributes["EXIT_PART_LENGTH"]
            elif "EXIT_PART_LENGTH" in vars(block):
                del block.EXIT_PART_LENGTH


class KeptMap:
    """Mixin before the manager of a fixed map: builds it once. MetaDrive builds it at every reset and frees little."""

    _kept: Any = None

    def spawn_object(self, object_class: type, **kwargs: Any) -> Any:
        if self._kept is None:
            with restored_exit_lengths():
                self._kept = super().spawn_object(object_class, **kwargs)  # type: ignore[misc]
        return self._kept

    def unload_map(self, map: Any) -> None:
        map.detach_from_world()
        self.current_map = None

    def destroy(self) -> None:
        if self._kept is not None:
            self._kept.destroy()
        super().destroy()  # type: ignore[misc]


class SeededMapManager(PGMapManager):
    """Builds the map of the seed at every reset and keeps none."""

    def __init__(self) -> None:
        super().__init__()
        self.maps: dict[int, Any] = defaultdict(lambda: None)


CORRECTED_CONFIG: dict[str, Any] = {
    "force_seed_spawn_manager": True,
    "truncate_as_terminate": False,
    # A vehicle body that is used again differs by a float32 ulp in its first step: every car is made anew.
    "force_destroy": True,
    "store_map": False,
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


class IntersectionEnv(Corrected, MultiAgentIntersectionEnv):
    pass


class RoundaboutEnv(Corrected, MultiAgentRoundaboutEnv):
    pass


class BottleneckEnv(Corrected, MultiAgentBottleneckEnv):
    pass


class TollgateEnv(Corrected, MultiAgentTollgateEnv):
    pass


class ProceduralMapEnv(Corrected, MultiAgentMetaDrive):
    pass


class ParkingLotEnv(Corrected, MultiAgentParkingLotEnv):
    def setup_engine(self) -> None:
        super().setup_engine()
        self.engine.update_manager("spawn_manager", OrderedParkingSpawnManager())


ENVIRONMENTS: dict[str, Any] = {
    "intersection": IntersectionEnv,
    "parking_lot": ParkingLotEnv,
    "roundabout": RoundaboutEnv,
    "bottleneck": BottleneckEnv,
    "tollgate": TollgateEnv,
    "pg": ProceduralMapEnv,
}
