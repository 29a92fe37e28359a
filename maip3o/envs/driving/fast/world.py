"""The part that stays with Bullet: bodies, the physics step, and the tests that geometry cannot decide.

Every episode gets a new Bullet world and new car bodies, which cost about a millisecond: nothing of an earlier episode
can reach it, and it equals the first episode of a fresh stock process. The bodies of the map are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from metadrive.constants import CollisionGroup
from metadrive.manager.spawn_manager import SpawnManager
from metadrive.type import MetaDriveType
from metadrive.utils.math import panda_vector
from panda3d.bullet import BulletBoxShape, BulletWorld
from panda3d.core import PythonCallbackObject, TransformState, Vec3

from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.fast.body import LENGTH, WIDTH, Body
from maip3o.envs.driving.fast.geometry import MapGeometry
from maip3o.envs.driving.fast.lane_bodies import find_lane_bodies
from maip3o.envs.driving.fast.lidar import HEIGHT as LIDAR_HEIGHT
from maip3o.envs.driving.fast.native import NO_RAY_CALL, find_bullet, follow
from maip3o.envs.driving.fast.wheels import choose_raycasters, make_ground_raycaster

LIDAR_MASK = CollisionGroup.can_be_lidar_detected()
SUBSTEP = 0.02  # seconds
# Five substeps in one call. As a float32 this is what is left of five times float32(0.02): with 0.1 Bullet would carry
# left-over time on, and every reported pose would shift by a bit.
FIVE_SUBSTEPS = 0.09999999403953552
SLOT_TAG = "slot"
REGION_LENGTH, REGION_WIDTH = SpawnManager.RESPAWN_REGION_LONGITUDE, SpawnManager.RESPAWN_REGION_LATERAL


class World:
    """Bullet for one map."""

    def __init__(self, engine: Any, geometry: MapGeometry, parameters: dict[str, float], num_slots: int) -> None:
        """Takes the map's bodies over from MetaDrive's engine, which is left with an empty dynamic world."""
        self._root = engine.worldNP
        self.static_world = engine.physics_world.static_world
        self._parameters = parameters
        self._map_nodes = [node for block in engine.current_map.blocks for node in block.dynamic_nodes]
        self._ground = list(engine.terrain.dynamic_nodes)
        empty = engine.physics_world.dynamic_world
        for item in (*empty.getVehicles(), *empty.getRigidBodies()):
            empty.remove(item)
        self._world: Any = None
        self.bodies: dict[int, Body] = {}
        self.touched: set[int] = set()  # slots of cars that touched another car during the last step
        self.jolted: set[int] = set()  # slots of cars that touched anything: car, kerb or ground
        self._car_shape = BulletBoxShape(Vec3(LENGTH / 2, WIDTH / 2, 1))
        self._region_shape = BulletBoxShape(Vec3(REGION_LENGTH / 2, REGION_WIDTH / 2, 1))
        self._callback = PythonCallbackObject(self._on_contact)
        self._bullet = find_bullet()
        self.ray_call = NO_RAY_CALL
        if self._bullet is not None:
            self.ray_call = self._bullet.ray_call()
            find_lane_bodies(geometry, self.static_world, self._bullet)
        self._ground_raycaster = make_ground_raycaster(self._bullet, self._ground[0])
        self.body_addresses, self._raycaster_fields, self._raycasters = np.zeros((3, num_slots), dtype=np.int64)

    def clear(self) -> None:
        if self._world is None:
            return
        for slot in list(self.bodies):
            self.remove(slot)
        for node in (*self._map_nodes, *self._ground):
            self._world.remove(node)
        self._world.clearContactAddedCallback()
        self._world = None

    def begin(self) -> None:
        """A new world with the map in it. Cars come next, then `finish_reset`: the order of MetaDrive's reset."""
        self.clear()
        self.touched, self.jolted = set(), set()
        self._world = BulletWorld()
        CollisionGroup.set_collision_rule(self._world, disable_collision=False)
        self._world.setGravity(Vec3(0, 0, -9.81))
        self._world.setContactAddedCallback(self._callback)
        for node in self._map_nodes:
            self._world.attach(node)

    def add(self, slot: int, x: float, y: float, heading: float) -> None:
        body = Body(self._world, self._parameters)
        body.node.setPythonTag(SLOT_TAG, slot)
        body.place(x, y, heading)
        body.path.reparentTo(self._root)
        self._world.attach(body.system)
        self._world.attach(body.node)
        self.bodies[slot] = body
        if self._bullet is not None:
            self.body_addresses[slot] = self._bullet.body_of(body.node)
        if self._ground_raycaster is not None:
            self._raycaster_fields[slot] = field = self._ground_raycaster.field_of(body.system)
            self._raycasters[slot] = follow(field)

    def finish_reset(self) -> None:
        for node in self._ground:
            self._world.attach(node)

    def remove(self, slot: int) -> None:
        body = self.bodies.pop(slot)
        body.path.detachNode()
        self._world.remove(body.system)
        body.node.clearPythonTag(SLOT_TAG)

    def make_wreck(self, slot: int) -> None:
        self.bodies[slot].node.setStatic(True)

    def step(self, cars: Any, kerbs: Any) -> None:
        """Five substeps."""
        if self._ground_raycaster is not None:
            choose_raycasters(cars, kerbs, self._raycaster_fields, self._raycasters, self._ground_raycaster.address)
        self.touched, self.jolted = set(), set()
        self._world.doPhysics(FIVE_SUBSTEPS, 5, SUBSTEP)

    def _on_contact(self, contact: Any) -> None:
        """metadrive.engine.core.collision_callback, where only cars can be hit."""
        nodes = contact.getNode0(), contact.getNode1()
        slots = [node.getPythonTag(SLOT_TAG) for node in nodes if node.getName() == MetaDriveType.VEHICLE]
        self.jolted.update(slots)
        if len(slots) == 2:
            self.touched.update(slots)

    def touches_car(self, slot: int) -> bool:
        """The dynamic half of BaseVehicle._state_check."""
        contacts = self._world.contactTest(self.bodies[slot].node, True).getContacts()
        return any(
            contact.getNode0().getName() == contact.getNode1().getName() == MetaDriveType.VEHICLE
            for contact in contacts
        )

    def touched_lines(self, slot: int) -> tuple[bool, bool]:
        """The static half of BaseVehicle._state_check: (yellow, white) continuous lines."""
        contacts = self.static_world.contactTest(self.bodies[slot].node, True).getContacts()
        names = {node.getName() for contact in contacts for node in (contact.getNode0(), contact.getNode1())}
        return MetaDriveType.LINE_SOLID_SINGLE_YELLOW in names, MetaDriveType.LINE_SOLID_SINGLE_WHITE in names

    def on_sidewalk(self, x: float, y: float, heading: float) -> bool:
        """The sweep of BaseVehicle._state_check."""
        return self._sweep(self._car_shape, x, y, heading, CollisionGroup.Sidewalk)

    def region_is_taken(self, x: float, y: float, heading: float) -> bool:
        """The sweep of SpawnManager.get_available_respawn_places."""
        return self._sweep(self._region_shape, x, y, heading, CollisionGroup.Vehicle)

    def _sweep(self, shape: Any, x: float, y: float, heading: float, group: Any) -> bool:
        """metadrive.utils.pg.utils.rect_region_detection"""
        angles = Vec3(np.rad2deg(heading), 0, 0)
        start = TransformState.makePosHpr(Vec3(x, y, 10), angles)
        end = TransformState.makePosHpr(Vec3(x, y, -1), angles)
        return bool(self._world.sweepTestClosest(shape, start, end, group, 0.0).hasHit())

    def cast(self, slot: int, x: float, y: float, end_x: float, end_y: float) -> float:
        """One beam of metadrive.component.sensors.distance_detector.perceive."""
        start, end = panda_vector(x, y, LIDAR_HEIGHT), panda_vector(end_x, end_y, LIDAR_HEIGHT)
        hit = self._world.rayTestClosest(start, end, LIDAR_MASK)
        fraction = hit.getHitFraction()
        if hit.getNode() != self.bodies[slot].node:
            return fraction
        others = [h for h in self._world.rayTestAll(start, end, LIDAR_MASK).getHits() if h.getNode() != hit.getNode()]
        return min((h.getHitFraction() for h in others), default=1.0)

    def poses(self, slots: list[int]) -> FloatArray:
        """[n, 12], columns cars.POSE_COLUMNS."""
        return np.array([self.bodies[slot].pose() for slot in slots]).reshape(len(slots), -1)
