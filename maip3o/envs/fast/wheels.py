"""Wheels on open ground: the ray of each wheel is tested against the ground alone.

Bullet holds a car up by four rays per substep, and sends each through the whole world: past the car's own box, which
costs more than everything else in the step. Where no kerb and no other car is within reach, only the ground can be hit,
and testing it alone gives the same bits. A car's raycaster is exchanged for that time, through the pointer that its
btRaycastVehicle has to it.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import types

from maip3o.envs.contract import IntArray
from maip3o.envs.fast.compiled import callback, kernel
from maip3o.envs.fast.contacts import GUARD, HALF_LENGTH, HALF_WIDTH, box_meets_segment, boxes_meet
from maip3o.envs.fast.native import RAY, Bullet, at_address, call_ray_test, follow

STEP_SECONDS = 0.1
HEADROOM = 0.3  # metres per step that a car may go beyond its present speed, and turn
# Words of a raycaster object: its vtable, and what `_cast_on_ground` needs.
VTABLE, FUNCTION, GROUND, RAY_ADDRESS = range(4)
_float_pointer = types.CPointer(types.float32)


def _cast_on_ground(this: Any, start: Any, end: Any, result: Any) -> Any:
    """btVehicleRaycaster::castRay. result: hit point [4], normal [4], fraction."""
    context = numba.carray(this, (4,))
    ray = numba.carray(at_address(context[RAY_ADDRESS]), (1,), RAY)
    call = ray[0]
    for axis in range(3):
        call.start[axis] = call.ray_start[axis] = start[axis]
        call.end[axis] = call.ray_end[axis] = end[axis]
    call.fraction = np.float32(1.0)
    call.hit = 0
    call_ray_test(context[FUNCTION], context[RAY_ADDRESS], context[GROUND])
    if call.hit == 0:
        return 0
    x, y, z = call.normal[0], call.normal[1], call.normal[2]
    scale = np.float32(1.0) / np.float32(math.sqrt(x * x + y * y + z * z))
    for axis in range(3):
        result[axis] = call.point[axis]
        result[4 + axis] = call.normal[axis] * scale
    result[8] = call.fraction
    return context[GROUND]


class GroundRaycaster:
    """One raycaster object for all cars of a world."""

    def __init__(self, bullet: Bullet, ground: Any) -> None:
        signature = types.int64(types.CPointer(types.int64), _float_pointer, _float_pointer, _float_pointer)
        self._function = callback(_cast_on_ground, signature)
        self._bullet = bullet
        self._ray = bullet.new_ray()
        original = bullet.vtable("raycaster")
        destructors = [follow(original), follow(original + 8)]
        self._vtable = np.array([*destructors, self._function.address], dtype=np.int64)
        words = [self._vtable.ctypes.data, bullet.ray_test, bullet.body_of(ground), self._ray.ctypes.data]
        self._object = np.array(words, dtype=np.int64)

    @property
    def address(self) -> int:
        return int(self._object.ctypes.data)

    def field_of(self, system: Any) -> int:
        """Address of the pointer to its raycaster in a BulletVehicle's btRaycastVehicle."""
        vehicle = follow(self._bullet.pointer_to("vehicle", system.this))
        return self._bullet.pointer_to("raycaster", vehicle)


@kernel
def choose_raycasters(cars: Any, kerbs: Any, fields: IntArray, original: IntArray, on_ground: int) -> None:
    """Sets every car's raycaster for the next step. fields, original [A]: addresses."""
    for slot in range(len(cars)):
        if cars[slot].present:
            field = numba.carray(at_address(fields[slot]), (1,), np.int64)
            field[0] = on_ground if _has_open_ground(cars, slot, kerbs) else original[slot]


@kernel
def _has_open_ground(cars: Any, slot: int, kerbs: Any) -> bool:
    car = cars[slot]
    reach = GUARD + HEADROOM + car.slack + STEP_SECONDS * car.speed
    x, y, hx, hy = car.true_x, car.true_y, car.true_heading_x, car.true_heading_y
    for k in range(len(kerbs)):
        if box_meets_segment(x, y, hx, hy, HALF_LENGTH + reach, HALF_WIDTH + reach, kerbs[k]):
            return False
    for other in range(len(cars)):
        if other != slot and cars[other].present:
            away = reach + HEADROOM + STEP_SECONDS * cars[other].speed
            if boxes_meet(car, cars[other], away):
                return False
    return True
