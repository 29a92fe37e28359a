"""MetaDrive at a fraction of its cost, bit for bit: the simulator behind `backend=fast`."""

from __future__ import annotations

from typing import Any

import numpy as np
from metadrive.utils.math import get_laser_end

from maip3o.config import ScenarioConfig
from maip3o.envs.backend import RawStep, empty_raw_step
from maip3o.envs.contract import CarStates, FloatArray, IntArray, RoadMap
from maip3o.envs.fast.cars import CAR
from maip3o.envs.fast.contacts import possible_contacts
from maip3o.envs.fast.geometry import lanes_below, take_geometry
from maip3o.envs.fast.lidar import observe_beams
from maip3o.envs.fast.localisation import lanes_under, localise
from maip3o.envs.fast.navigation import CHECKPOINT_INFO, follow_route, observe_checkpoints
from maip3o.envs.fast.poses import update_poses
from maip3o.envs.fast.reward import RewardWeights, judge
from maip3o.envs.fast.settings import check_scenario
from maip3o.envs.fast.spawning import ParkingSpawner, Place, Spawner
from maip3o.envs.fast.state import STATE_SIZE, observe_state
from maip3o.envs.fast.world import World
from maip3o.envs.geometry import road_map, route_line
from maip3o.envs.simulator import make_metadrive

TWO = 2.0  # see lanes.norm
FIRST_BEAM = STATE_SIZE + 2 * CHECKPOINT_INFO


class FastBackend:
    """One simulator. One per process, as MetaDrive's engine is a singleton."""

    def __init__(self, scenario: ScenarioConfig) -> None:
        check_scenario(scenario)
        # MetaDrive builds the map; from then on its engine only holds it.
        self._env = make_metadrive(scenario)
        config = self._env.config
        lidar = config["vehicle_config"]["lidar"]
        self.num_slots = scenario.num_agents
        self.observation_size = FIRST_BEAM + lidar["num_lasers"]
        self.action_size = 2
        self._horizon = scenario.horizon
        self._delay_done = config["delay_done"]
        self._weights = RewardWeights(*(float(config[key]) for key in RewardWeights._fields))
        self._white_lines_count = scenario.map != "parking_lot"
        self._reach = float(lidar["distance"])
        self._beam_angles = np.arange(0, lidar["num_lasers"]) * (2 * np.pi / lidar["num_lasers"])
        self._env.reset(seed=0)
        engine = self._env.engine
        car_config = next(iter(self._env.agents.values())).config
        names = ("max_engine_force", "max_brake_force", "max_steering", "max_speed_km_h", "wheel_friction")
        parameters = {name: car_config[name] for name in (*names, "enable_reverse")}
        self._max_speed_km_h = float(parameters["max_speed_km_h"])
        self._road_network = engine.current_map.road_network
        self._static_world = engine.physics_world.static_world
        self._map = take_geometry(engine.current_map, self._static_world)
        self._spawner = (ParkingSpawner if scenario.map == "parking_lot" else Spawner)(engine.spawn_manager)
        self._world = World(engine, parameters, self.num_slots)
        self._routes: dict[tuple[Any, str], list[str]] = {}
        self._allocate()

    def _allocate(self) -> None:
        slots, beams = self.num_slots, len(self._beam_angles)
        self._cars = np.zeros(slots, dtype=CAR)
        self._steps_driven = np.zeros(slots, dtype=np.int64)
        self._wreck_steps_left: dict[int, int] = {}
        self._driven: list[list[str]] = [[]] * slots  # checkpoints
        self._lane_number = [0] * slots
        self._hits = np.zeros((slots, len(self._map.lanes)), dtype=np.bool_)
        self._doubtful = np.zeros(slots, dtype=np.bool_)
        self._near_line, self._near_kerb, self._near_car = np.zeros((3, slots), dtype=np.bool_)
        self._ask_world = np.zeros((slots, beams), dtype=np.bool_)
        self._observation = np.zeros((slots, self.observation_size))

    def reset(self, seed: int) -> RawStep:
        self._cars[:] = np.zeros(1, dtype=CAR)
        self._steps_driven[:] = 0
        self._wreck_steps_left = {}
        self._world.begin()
        for slot, place in enumerate(self._spawner.reset(seed)):
            self._spawn(slot, place)
        self._world.finish_reset()
        slots = np.arange(self.num_slots)
        self._read_poses(slots)
        self._read_poses(slots)  # twice, so that the last pose is this one too
        # MetaDrive localises a car when it is placed and once more at the end of the reset.
        self._localise(slots)
        self._localise(slots)
        self._observe(slots)
        raw = empty_raw_step(self.num_slots, self.observation_size)
        raw.fresh[:] = True
        raw.fresh_observation[:] = self._observation
        return raw

    def _spawn(self, slot: int, place: Place) -> None:
        lane_id = self._map.lane_ids[place.lane]
        lane = self._map.lane_objects[lane_id]
        x, y = lane.position(place.longitudinal, place.lateral)
        heading = lane.heading_theta_at(place.longitudinal)
        self._world.add(slot, x, y, heading)
        car = self._cars[slot]
        car["present"] = car["alive"] = True
        self._lane_number[slot] = place.lane[2]
        self._driven[slot] = self._checkpoints(place)
        self._set_route(car, lane_id, self._driven[slot])

    def _checkpoints(self, place: Place) -> list[str]:
        key = place.lane, place.destination
        if key not in self._routes:
            checkpoints = self._road_network.shortest_path(place.lane, place.destination)
            self._routes[key] = checkpoints if len(checkpoints) > 2 else list(place.lane[:2])
        return self._routes[key]

    def _set_route(self, car: Any, lane_id: int, checkpoints: list[str]) -> None:
        """NodeNetworkNavigation.set_route"""
        nodes, roads = self._map.route(checkpoints)
        car["checkpoints"][: len(nodes)] = nodes
        car["route_roads"][: len(roads)] = roads
        car["num_checkpoints"] = len(nodes)
        car["next_target"] = 1 if len(nodes) > 2 else 0
        car["current_road"] = roads[0]
        car["next_road"] = roads[1] if len(nodes) > 2 else -1
        car["current_lane"] = lane_id
        last_road = self._map.roads[roads[-1]]
        car["final_lane"] = last_road["first_lane"] + last_road["num_lanes"] - 1
        first_lanes = self._map.roads["first_lane"][roads]
        car["total_length"] = sum(self._map.lanes["length"][first_lanes].tolist(), 0.0)

    def step(self, action: FloatArray) -> RawStep:
        slots = np.flatnonzero(self._cars["alive"])
        self._act(slots, action)
        self._remove_old_wrecks()
        touched = self._world.step(self._cars, self._map.kerbs)
        self._read_poses(slots)
        self._check_contacts(slots, touched)
        self._localise(slots)
        raw = empty_raw_step(self.num_slots, self.observation_size)
        self._judge(slots, raw)
        self._observe(slots)
        raw.observation[slots] = self._observation[slots]
        self._take_out_of_play(slots, raw)
        return raw

    def _act(self, slots: IntArray, action: FloatArray) -> None:
        clipped = np.clip(np.asarray(action, dtype=np.float64)[slots], -1.0, 1.0)
        self._cars["steering"][slots], self._cars["throttle"][slots] = clipped.T
        bodies, speeds = self._world.bodies, self._cars["speed_km_h"][slots].tolist()
        for slot, (steering, throttle), speed in zip(slots.tolist(), clipped.tolist(), speeds, strict=True):
            bodies[slot].act(steering, throttle, speed)

    def _remove_old_wrecks(self) -> None:
        for slot in list(self._wreck_steps_left):
            self._wreck_steps_left[slot] -= 1
            if self._wreck_steps_left[slot] <= 0:
                self._remove(slot)

    def _remove(self, slot: int) -> None:
        self._wreck_steps_left.pop(slot, None)
        self._world.remove(slot)
        self._cars[slot]["present"] = False

    def _read_poses(self, slots: IntArray) -> None:
        update_poses(self._cars, self._world.poses(slots.tolist()), slots, TWO)

    def _check_contacts(self, slots: IntArray, touched: set[int]) -> None:
        """BaseVehicle._state_check"""
        cars = self._cars
        near_line, near_kerb, near_car = self._near_line, self._near_kerb, self._near_car
        possible_contacts(cars, slots, self._map.solid_lines, self._map.kerbs, near_line, near_kerb, near_car)
        for name in ("on_yellow_line", "on_white_line", "crash_sidewalk", "crash_vehicle"):
            cars[name] = False
        for slot in slots[near_line[slots]].tolist():
            cars["on_yellow_line"][slot], cars["on_white_line"][slot] = self._world.touched_lines(slot)
        for slot in slots[near_kerb[slots]].tolist():
            car = cars[slot]
            cars["crash_sidewalk"][slot] = self._world.on_sidewalk(car["x"], car["y"], car["heading"])
        for slot in slots[near_car[slots]].tolist():
            cars["crash_vehicle"][slot] = slot in touched or self._world.touches_car(slot)
        if touched:
            cars["crash_vehicle"][[slot for slot in touched]] = True

    def _localise(self, slots: IntArray) -> None:
        geometry, cars = self._map, self._cars
        lanes_under(cars, slots, geometry.lanes, geometry.hull_edges, self._hits, self._doubtful)
        for slot in slots[self._doubtful[slots]].tolist():
            x, y = float(cars["x"][slot]), float(cars["y"][slot])
            self._hits[slot] = False
            self._hits[slot, lanes_below(x, y, geometry.lane_ids, self._static_world)] = True
        localise(cars, slots, geometry.lanes, self._hits, TWO)
        follow_route(cars, slots, geometry.lanes, geometry.roads, TWO)

    def _judge(self, slots: IntArray, raw: RawStep) -> None:
        cars = self._cars
        judge(
            cars,
            slots,
            self._map.lanes,
            self._map.roads,
            self._weights,
            self._max_speed_km_h,
            self._white_lines_count,
            raw.arrived,
            raw.out_of_road,
            raw.reward,
            TWO,
        )
        self._steps_driven[slots] += 1
        raw.acted[slots] = True
        raw.crash_vehicle[slots] = cars["crash_vehicle"][slots]
        raw.crash_sidewalk[slots] = cars["crash_sidewalk"][slots]
        raw.max_step[slots] = self._steps_driven[slots] >= self._horizon
        raw.route_completion[slots] = cars["travelled_length"][slots] / cars["total_length"][slots]
        raw.speed[slots] = cars["speed"][slots]
        raw.ended[:] = raw.arrived | raw.out_of_road | raw.crash_vehicle | raw.max_step

    def _take_out_of_play(self, slots: IntArray, raw: RawStep) -> None:
        """MultiAgentMetaDrive._after_vehicle_done: an arrival vanishes, anything else stays as a wreck for a while."""
        for slot in slots[raw.ended[slots]].tolist():
            self._cars["alive"][slot] = False
            if raw.arrived[slot] or self._delay_done <= 0:
                self._remove(slot)
            else:
                self._world.make_wreck(slot)
                self._wreck_steps_left[slot] = self._delay_done

    def _observe(self, slots: IntArray) -> None:
        geometry, cars, observation = self._map, self._cars, self._observation
        observe_state(cars, slots, geometry.lanes, geometry.roads, self._max_speed_km_h, observation, TWO)
        observe_checkpoints(
            cars, slots, geometry.lanes, geometry.roads, geometry.max_curve_radius, observation, STATE_SIZE, TWO
        )
        self._observe_cars(slots)

    def _observe_cars(self, slots: IntArray) -> None:
        """Lidar.perceive"""
        world, cars, beams, ask_world = self._world, self._cars, self._observation[:, FIRST_BEAM:], self._ask_world
        cars["jolted"] = False
        if world.jolted:
            cars["jolted"][list(world.jolted)] = True
        asked = observe_beams(
            cars,
            slots,
            world.body_addresses,
            self._beam_angles,
            self._reach,
            world.ray_test,
            world.ray,
            beams,
            ask_world,
        )
        if not asked:
            return
        for slot in slots.tolist():
            x, y, heading = (float(cars[name][slot]) for name in ("x", "y", "heading"))
            for beam in np.flatnonzero(ask_world[slot]).tolist():
                end = get_laser_end(self._beam_angles, self._reach, beam, heading, x, y)
                beams[slot, beam] = world.cast(slot, x, y, *end)

    def car_states(self) -> CarStates:
        cars, present = self._cars, self._cars["present"].copy()
        speed = np.zeros(self.num_slots)
        for slot, body in self._world.bodies.items():
            velocity = body.node.getLinearVelocity()
            speed[slot] = np.sqrt(velocity[0] ** 2 + velocity[1] ** 2)  # of a wreck too: Bullet keeps changing it
        return CarStates(
            present=present,
            position=np.where(present[:, None], np.stack([cars["x"], cars["y"]], axis=1), 0.0),
            heading=np.where(present, cars["heading"], 0.0),
            speed=speed,
            route_completion=np.where(present, cars["travelled_length"] / np.maximum(cars["total_length"], 1e-9), 0.0),
        )

    def road_map(self) -> RoadMap:
        return road_map(self._env.current_map)

    def routes(self) -> list[FloatArray]:
        graph = self._road_network.graph
        return [
            route_line(graph, checkpoints, lane) if present else np.zeros((0, 2))
            for checkpoints, lane, present in zip(self._driven, self._lane_number, self._cars["present"], strict=True)
        ]

    def close(self) -> None:
        self._world.clear()
        self._env.close()
