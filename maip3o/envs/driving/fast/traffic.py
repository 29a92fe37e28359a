"""All cars of an episode: their records, their bodies, and what they see."""

from __future__ import annotations

from typing import Any

import numpy as np
from metadrive.utils.math import get_laser_end

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.envs.driving.fast.cars import CAR
from maip3o.envs.driving.fast.contacts import region_is_clear
from maip3o.envs.driving.fast.geometry import MapGeometry, lanes_below
from maip3o.envs.driving.fast.lidar import observe_beams
from maip3o.envs.driving.fast.localisation import localise
from maip3o.envs.driving.fast.navigation import CHECKPOINT_INFO, follow_route
from maip3o.envs.driving.fast.passes import Doubts, Outcome, conclude, look, observe
from maip3o.envs.driving.fast.reward import RewardRules
from maip3o.envs.driving.fast.spawning import Place, Start
from maip3o.envs.driving.fast.state import STATE_SIZE
from maip3o.envs.driving.fast.world import World

TWO = 2.0  # see lanes.norm
FIRST_BEAM = STATE_SIZE + 2 * CHECKPOINT_INFO


class Traffic:
    def __init__(
        self,
        geometry: MapGeometry,
        world: World,
        num_slots: int,
        rules: RewardRules,
        lidar: tuple[int, float],
        analytic: bool,
    ) -> None:
        """lidar: number of beams, and their reach in metres. analytic: cut beams in closed form."""
        self._geometry, self._arrays, self._world, self._rules = geometry, geometry.arrays, world, rules
        num_beams, self._reach = lidar
        self._analytic = analytic
        self._beam_angles = np.arange(0, num_beams) * (2 * np.pi / num_beams)
        self.cars = np.zeros(num_slots, dtype=CAR)
        self._hits = np.zeros((num_slots, len(self._arrays.lanes)), dtype=np.bool_)
        self._doubts = Doubts(*np.zeros((4, num_slots), dtype=np.bool_))
        self._ask_world = np.zeros((num_slots, num_beams), dtype=np.bool_)

    def begin(self, places: list[Place], routes: list[list[str]]) -> None:
        """A new episode with a car at each place."""
        self.cars[:] = np.zeros(1, dtype=CAR)
        self._world.begin()
        for slot, (place, checkpoints) in enumerate(zip(places, routes, strict=True)):
            self._world.add(slot, *self._pose(place))
            self._register(slot, place, checkpoints)
        self._world.finish_reset()

    def enter(self, slot: int, place: Place, checkpoints: list[str], first_place: Place) -> None:
        """One more car. MetaDrive creates it where the episode's first car started, and moves it from there."""
        self._world.add(slot, *self._pose(first_place))
        self._world.bodies[slot].place(*self._pose(place))
        self._register(slot, place, checkpoints)

    def _pose(self, place: Place) -> tuple[float, float, float]:
        lane = self._geometry.lane_objects[self._geometry.lane_ids[place.lane]]
        x, y = lane.position(place.longitudinal, place.lateral)
        return x, y, lane.heading_theta_at(place.longitudinal)

    def _register(self, slot: int, place: Place, checkpoints: list[str]) -> None:
        """NodeNetworkNavigation.set_route"""
        self.cars[slot] = np.zeros(1, dtype=CAR)
        car = self.cars[slot]
        nodes, roads = self._geometry.route(checkpoints)
        car["present"] = car["alive"] = True
        car["checkpoints"][: len(nodes)] = nodes
        car["route_roads"][: len(roads)] = roads
        car["num_checkpoints"] = len(nodes)
        car["next_target"] = 1 if len(nodes) > 2 else 0
        car["current_road"] = roads[0]
        car["next_road"] = roads[1] if len(nodes) > 2 else -1
        car["current_lane"] = self._geometry.lane_ids[place.lane]
        last_road = self._arrays.roads[roads[-1]]
        car["final_lane"] = last_road["first_lane"] + last_road["num_lanes"] - 1
        first_lanes = self._arrays.roads["first_lane"][roads]
        car["total_length"] = sum(self._arrays.lanes["length"][first_lanes].tolist(), 0.0)

    def first_look(self, slots: IntArray, observation: FloatArray) -> None:
        """What new cars see. Writes observation [A, O] at the slots."""
        # MetaDrive localises a car when it is placed and once more at the end of the reset. The second pass also makes
        # the last pose this one.
        for _ in range(2):
            self._look(slots)
            localise(self.cars, slots, self._arrays.lanes, self._hits, TWO)
            follow_route(self.cars, slots, self._arrays.lanes, self._arrays.roads, TWO)
        observe(self.cars, slots, self._arrays, self._rules.max_speed_km_h, observation, TWO)
        self._observe_beams(slots, observation)

    def act(self, slots: IntArray, action: FloatArray) -> None:
        """EnvInputPolicy.act, BaseVehicle.before_step"""
        clipped = np.clip(np.asarray(action, dtype=np.float64)[slots], -1.0, 1.0)
        self.cars["steering"][slots], self.cars["throttle"][slots] = clipped.T
        bodies, speeds = self._world.bodies, self.cars["speed_km_h"][slots].tolist()
        for slot, (steering, throttle), speed in zip(slots.tolist(), clipped.tolist(), speeds, strict=True):
            bodies[slot].act(steering, throttle, speed)

    def advance(self, slots: IntArray, horizon: int, outcome: Outcome) -> int:
        """Physics, and all that follows for the living cars. Returns the number of those that ended."""
        self._world.step(self.cars, self._arrays.kerbs)
        self._look(slots)
        ended = conclude(self.cars, slots, self._arrays, self._hits, self._rules, horizon, outcome, TWO)
        self._observe_beams(slots, outcome.observation)
        return int(ended)

    def _look(self, slots: IntArray) -> None:
        """New poses, lanes and contacts: BaseVehicle._state_check, ray_localization."""
        cars, doubts, world = self.cars, self._doubts, self._world
        if look(cars, slots, world.poses(slots.tolist()), self._arrays, world.ray_call, self._hits, doubts, TWO):
            for slot in slots[doubts.lanes[slots]].tolist():
                self._hits[slot] = False
                below = lanes_below(float(cars["x"][slot]), float(cars["y"][slot]), self._geometry, world.static_world)
                self._hits[slot, below] = True
            for slot in slots[doubts.line[slots]].tolist():
                cars["on_yellow_line"][slot], cars["on_white_line"][slot] = world.touched_lines(slot)
            for slot in slots[doubts.kerb[slots]].tolist():
                car = cars[slot]
                cars["crash_sidewalk"][slot] = world.on_sidewalk(car["x"], car["y"], car["heading"])
            for slot in slots[doubts.car[slots]].tolist():
                cars["crash_vehicle"][slot] = world.touches_car(slot)
        for slot in world.touched:
            cars["crash_vehicle"][slot] = True

    def _observe_beams(self, slots: IntArray, observation: FloatArray) -> None:
        """Lidar.perceive"""
        world, cars, beams, ask_world = self._world, self.cars, observation[:, FIRST_BEAM:], self._ask_world
        for slot in world.jolted:
            cars["jolted"][slot] = True
        asked = observe_beams(
            cars,
            slots,
            world.body_addresses,
            self._beam_angles,
            self._reach,
            world.ray_call,
            self._analytic,
            beams,
            ask_world,
        )
        if asked:
            for slot in slots.tolist():
                x, y, heading = (float(cars[name][slot]) for name in ("x", "y", "heading"))
                for beam in np.flatnonzero(ask_world[slot]).tolist():
                    end = get_laser_end(self._beam_angles, self._reach, beam, heading, x, y)
                    beams[slot, beam] = world.cast(slot, x, y, *end)
        for slot in world.jolted:
            cars["jolted"][slot] = False

    def is_free(self, start: Start) -> bool:
        """SpawnManager.get_available_respawn_places, for one place."""
        lane = self._geometry.lane_objects[self._geometry.lane_ids[start[0]]]
        (x, y), heading = lane.position(start[1], 0), lane.heading_theta_at(start[1])
        if region_is_clear(self.cars, float(x), float(y), float(heading)):
            return True
        return not self._world.region_is_taken(x, y, heading)

    def make_wreck(self, slot: int) -> None:
        self.cars["alive"][slot] = False
        self._world.make_wreck(slot)

    def remove(self, slot: int) -> None:
        self._world.remove(slot)
        self.cars["alive"][slot] = self.cars["present"][slot] = False

    def speeds(self) -> FloatArray:
        """[A] m/s, of wrecks too: Bullet keeps changing a wreck's velocity."""
        speed = np.zeros(len(self.cars))
        for slot, body in self._world.bodies.items():
            velocity = body.node.getLinearVelocity()
            speed[slot] = np.sqrt(velocity[0] ** 2 + velocity[1] ** 2)
        return speed

    def close(self) -> None:
        self._world.clear()


def lidar_settings(vehicle_config: Any) -> tuple[int, float]:
    lidar = vehicle_config["lidar"]
    return int(lidar["num_lasers"]), float(lidar["distance"])
