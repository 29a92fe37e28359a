"""MetaDrive at a fraction of its cost, bit for bit: the simulator behind `backend=fast`."""

from __future__ import annotations

import sys

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray, IntArray
from maip3o.envs.driving.backend import RawStep, empty_raw_step
from maip3o.envs.driving.fast.body import PARAMETERS
from maip3o.envs.driving.fast.geometry import take_geometry
from maip3o.envs.driving.fast.lidar import observe_beams
from maip3o.envs.driving.fast.passes import Outcome, conclude, look
from maip3o.envs.driving.fast.reward import reward_rules
from maip3o.envs.driving.fast.settings import check_scenario
from maip3o.envs.driving.fast.spawning import ParkingSpawner, Place, Spawner
from maip3o.envs.driving.fast.traffic import FIRST_BEAM, Traffic, lidar_settings
from maip3o.envs.driving.fast.world import World
from maip3o.envs.driving.geometry import road_map, route_line
from maip3o.envs.driving.simulator import make_metadrive
from maip3o.envs.driving.views import CarStates, RoadMap
from maip3o.jit import are_cached


class FastBackend:
    """One simulator. One per process, as MetaDrive's engine is a singleton."""

    def __init__(self, scenario: ScenarioConfig) -> None:
        check_scenario(scenario)
        if not are_cached(look, conclude, observe_beams):
            print("compiling the fast simulator, once: some 20 seconds", file=sys.stderr, flush=True)
        # MetaDrive builds the map; from then on its engine only holds it.
        self._env = make_metadrive(scenario)
        self._env.reset(seed=0)
        config, engine = self._env.config, self._env.engine
        lidar = lidar_settings(config["vehicle_config"])
        self.num_slots = scenario.num_agents
        self.observation_size = FIRST_BEAM + lidar[0]
        self.action_size = 2
        self._horizon, self._respawn, self._delay_done = scenario.horizon, scenario.respawn, config["delay_done"]
        car_config = next(iter(self._env.agents.values())).config
        parking = scenario.map == "parking_lot"
        rules = reward_rules(config, float(car_config["max_speed_km_h"]), white_lines_count=not parking)
        self._road_network = engine.current_map.road_network
        self._spawner = (ParkingSpawner if parking else Spawner)(engine.spawn_manager)
        geometry = take_geometry(engine.current_map, engine.physics_world.static_world)
        world = World(engine, geometry, {name: car_config[name] for name in PARAMETERS}, self.num_slots)
        self._traffic = Traffic(geometry, world, self.num_slots, rules, lidar, scenario.lidar == "analytic")
        self._routes: dict[tuple[object, str], list[str]] = {}
        self._raw = empty_raw_step(self.num_slots, self.observation_size)
        self._outcome = Outcome(*(getattr(self._raw, name) for name in Outcome._fields))
        self._living: list[int] = []  # slots, in the order in which their cars came
        self._slots: IntArray = np.zeros(0, dtype=np.int64)  # the same
        self._wreck_steps_left: dict[int, int] = {}
        self._places: list[Place] = []  # per slot
        self._first_place: Place | None = None
        self._steps = 0

    def reset(self, seed: int) -> RawStep:
        self._places = self._spawner.reset(seed)
        self._first_place = self._places[0]
        self._traffic.begin(self._places, [self._checkpoints(place) for place in self._places])
        self._wreck_steps_left = {}
        self._steps = 0
        self._set_living(list(range(self.num_slots)))
        self._raw = empty_raw_step(self.num_slots, self.observation_size)
        self._outcome = Outcome(*(getattr(self._raw, name) for name in Outcome._fields))
        self._raw.fresh[:] = True
        self._traffic.first_look(self._slots, self._raw.fresh_observation)
        return self._raw

    def _set_living(self, living: list[int]) -> None:
        self._living, self._slots = living, np.array(living, dtype=np.int64)

    def _checkpoints(self, place: Place) -> list[str]:
        key = place.lane, place.destination
        if key not in self._routes:
            checkpoints = self._road_network.shortest_path(place.lane, place.destination)
            self._routes[key] = checkpoints if len(checkpoints) > 2 else list(place.lane[:2])
        return self._routes[key]

    def step(self, action: FloatArray) -> RawStep:
        raw = self._raw
        if raw.fresh.any():
            raw.fresh[:] = False
            raw.fresh_observation[:] = 0.0
        self._steps += 1
        self._traffic.act(self._slots, action)
        self._remove_old_wrecks()
        if self._traffic.advance(self._slots, self._horizon, self._outcome):
            self._take_out_of_play()
        if self._respawn and self._steps < self._horizon:
            self._let_one_in()
        return raw

    def _remove_old_wrecks(self) -> None:
        for slot in list(self._wreck_steps_left):
            self._wreck_steps_left[slot] -= 1
            if self._wreck_steps_left[slot] <= 0:
                del self._wreck_steps_left[slot]
                self._traffic.remove(slot)

    def _take_out_of_play(self) -> None:
        """MultiAgentMetaDrive._after_vehicle_done: an arrival vanishes, anything else stays as a wreck for a while."""
        raw = self._raw
        for slot in self._living:
            if not raw.ended[slot]:
                continue
            done = raw.arrived[slot] or raw.out_of_road[slot] or raw.crash_vehicle[slot]
            self._spawner.after_end(slot, bool(done))
            if raw.arrived[slot] or self._delay_done <= 0:
                self._traffic.remove(slot)
            else:
                self._traffic.make_wreck(slot)
                self._wreck_steps_left[slot] = self._delay_done
        self._set_living([slot for slot in self._living if not raw.ended[slot]])

    def _let_one_in(self) -> None:
        """MultiAgentMetaDrive._respawn_vehicles"""
        present = self._traffic.cars["present"]
        if present.all():
            return
        slot = int(np.argmin(present))
        place = self._spawner.respawn(slot, self._traffic.is_free)
        if place is None or self._first_place is None:
            return
        self._places[slot] = place
        self._traffic.enter(slot, place, self._checkpoints(place), self._first_place)
        self._set_living([*self._living, slot])
        self._raw.fresh[slot] = True
        self._traffic.first_look(self._slots[-1:], self._raw.fresh_observation)

    def car_states(self) -> CarStates:
        cars, present = self._traffic.cars, self._traffic.cars["present"].copy()
        completion = np.divide(cars["travelled_length"], cars["total_length"], out=np.zeros(len(cars)), where=present)
        return CarStates(
            present=present,
            position=np.where(present[:, None], np.stack([cars["x"], cars["y"]], axis=1), 0.0),
            heading=np.where(present, cars["heading"], 0.0),
            speed=self._traffic.speeds(),
            route_completion=completion,
        )

    def road_map(self) -> RoadMap:
        return road_map(self._env.current_map)

    def routes(self) -> list[FloatArray]:
        graph, present = self._road_network.graph, self._traffic.cars["present"]
        return [
            route_line(graph, self._checkpoints(place), place.lane[2]) if present[slot] else np.zeros((0, 2))
            for slot, place in enumerate(self._places)
        ]

    def close(self) -> None:
        self._traffic.close()
        self._env.close()
