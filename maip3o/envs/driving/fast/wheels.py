"""Wheels on open ground: the ray of each wheel is cut with the ground alone.

Bullet holds a car up by four rays per substep, and sends each through the whole world: past the car's own box, which
costs more than everything else in the step. Where no kerb and no other car is within reach, only the ground can be hit,
and a few lines of arithmetic give the same bits. A car's raycaster is exchanged for that time, through the pointer that
its btRaycastVehicle has to it.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numba
import numpy as np
from numba import types

from maip3o.envs.contract import IntArray
from maip3o.envs.driving.fast.contacts import GUARD, box_meets_segment, boxes_meet
from maip3o.envs.driving.fast.native import BODY_TRANSFORM, Bullet, at_address, follow
from maip3o.jit import callback, kernel

AXLE_REACH, TRACK_REACH = 1.43, 0.83  # metres from a car's middle to its wheels, along and across
SUBSTEPS = 5
# Metres that a car may stray in one step from a steady course, by what its tyres can hold; and radians.
STRAY, STRAY_ANGLE = 0.1, 0.05
VTABLE, GROUND = range(2)  # words of a raycaster object
_float_pointer = types.CPointer(types.float32)


def _cast_on_ground(this: Any, start: Any, end: Any, result: Any) -> Any:
    """btVehicleRaycaster::castRay on the plane z = 0. result: hit point [4], normal [4], fraction. Single precision.

    Bullet lays two triangles on the plane below the ray. They share the size of their normal, which is where the
    rounding of the fraction comes from.
    """
    half, one = np.float32(0.5), np.float32(1.0)
    dx, dy, dz = abs(start[0] - end[0]) * half, abs(start[1] - end[1]) * half, abs(start[2] - end[2]) * half
    radius = np.float32(math.sqrt(dx * dx + dy * dy + dz * dz))
    x, y = (start[0] + end[0]) * half, (start[1] + end[1]) * half
    normal = ((x - radius) - (x + radius)) * ((y + radius) - (y - radius))
    above, below = normal * start[2], normal * end[2]
    if above * below >= 0:
        return 0
    fraction = above / (above - below)
    rest = one - fraction
    for axis in range(3):
        result[axis] = rest * start[axis] + fraction * end[axis]
    up = normal * (one / np.float32(math.sqrt(normal * normal)))
    if above <= 0:  # the ray starts above the ground
        up = -up
    result[4], result[5] = np.float32(0.0), np.float32(0.0)
    result[6] = up * (one / np.float32(math.sqrt(up * up)))
    result[8] = fraction
    return numba.carray(this, (2,))[GROUND]


class GroundRaycaster:
    """One raycaster object for all cars of a world."""

    def __init__(self, bullet: Bullet, ground: Any) -> None:
        signature = types.int64(types.CPointer(types.int64), _float_pointer, _float_pointer, _float_pointer)
        self._function = callback(_cast_on_ground, signature)
        self._bullet = bullet
        original = bullet.vtable("raycaster")
        destructors = [follow(original), follow(original + 8)]
        self._vtable = np.array([*destructors, self._function.address], dtype=np.int64)
        self._object = np.array([self._vtable.ctypes.data, bullet.body_of(ground)], dtype=np.int64)

    @property
    def address(self) -> int:
        return int(self._object.ctypes.data)

    def field_of(self, system: Any) -> int:
        """Address of the pointer to its raycaster in a BulletVehicle's btRaycastVehicle."""
        vehicle = follow(self._bullet.pointer_to("vehicle", system.this))
        return self._bullet.pointer_to("raycaster", vehicle)


def make_ground_raycaster(bullet: Bullet | None, ground: Any) -> GroundRaycaster | None:
    """None if Bullet cannot be reached, or if the ground is not the plane z = 0."""
    if bullet is None:
        return None
    transform = np.frombuffer(ctypes.string_at(bullet.body_of(ground) + BODY_TRANSFORM, 64), dtype=np.float32)
    level = np.array_equal(transform.reshape(4, 4)[:, :3], np.eye(4, 3, dtype=np.float32))
    return GroundRaycaster(bullet, ground) if level else None


@kernel
def choose_raycasters(cars: Any, kerbs: Any, fields: IntArray, original: IntArray, on_ground: int) -> None:
    """Sets every car's raycaster for the next step. fields, original [A]: addresses."""
    for slot in range(len(cars)):
        if cars[slot].present:
            field = numba.carray(at_address(fields[slot]), (1,), np.int64)
            field[0] = on_ground if _has_open_ground(cars, slot, kerbs) else original[slot]


@kernel
def _has_open_ground(cars: Any, slot: int, kerbs: Any) -> bool:
    """Whether the wheels can reach neither kerb nor another car in the next step."""
    car = cars[slot]
    hx, hy = car.true_heading_x, car.true_heading_y
    # One substep lies between the reported pose and the true one.
    dx, dy = SUBSTEPS * (car.true_x - car.x), SUBSTEPS * (car.true_y - car.y)
    turn = SUBSTEPS * abs(car.heading_x * hy - car.heading_y * hx) + STRAY_ANGLE
    margin = STRAY + turn * (AXLE_REACH + TRACK_REACH) + car.slack
    length = AXLE_REACH + abs(dx * hx + dy * hy) / 2 + margin
    width = TRACK_REACH + abs(dy * hx - dx * hy) / 2 + margin
    x, y = car.true_x + dx / 2, car.true_y + dy / 2
    for k in range(len(kerbs)):
        if box_meets_segment(x, y, hx, hy, length, width, kerbs[k]):
            return False
    for other in range(len(cars)):
        if other != slot and cars[other].present:
            away = GUARD + 2 * STRAY + 0.1 * (car.speed + cars[other].speed)
            if boxes_meet(car, cars[other], away):
                return False
    return True
