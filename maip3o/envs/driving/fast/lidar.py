"""Lidar: which beams can hit a car, and how far they get."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray, IntArray
from maip3o.envs.driving.fast.contacts import HALF_LENGTH, HALF_WIDTH, REACH
from maip3o.envs.driving.fast.lanes import TWO_PI
from maip3o.envs.driving.fast.native import RayCall, cast
from maip3o.jit import kernel

GUARD = 0.05  # metres: Bullet's convex cast stops up to 1 cm early
HEIGHT = 1.2  # Lidar.DEFAULT_HEIGHT


@kernel
def observe_beams(
    cars: Any,
    slots: IntArray,
    bodies: IntArray,
    beam_angles: FloatArray,
    reach: float,
    call: RayCall,
    analytic: bool,
    beams: FloatArray,
    ask_world: BoolArray,
) -> int:
    """metadrive.component.sensors.distance_detector.perceive, against the cars that a beam can hit.

    MetaDrive's own mask (Lidar._get_lidar_mask) is wider than a car's outline and never hides a hit. Writes beams
    [A, beams] at the slots, and sets ask_world [A, beams] where a beam may hit a car that was in contact in this step:
    such a car can have been knocked out of the box in which Bullet's tree looks for it, so the whole world has to be
    asked. Returns the number of these. analytic: the car's outline is cut in closed form instead.
    """
    asked = 0
    num_beams = len(beam_angles)
    order = np.empty(len(cars), dtype=np.int64)
    for slot in slots:
        beams[slot, :] = 1.0
        ask_world[slot, :] = False
        for k in range(_nearest_first(cars, slot, order)):
            other = order[k]
            first, last = _beams_towards(cars[slot], cars[other], num_beams, reach)
            for number in range(first, last + 1):
                beam = number % num_beams
                # What stands behind a nearer car need not be asked.
                guard = 0.0 if analytic else GUARD + cars[other].slack
                fraction = _cut(cars[slot], beam_angles[beam], reach, cars[other], guard)
                if fraction >= beams[slot, beam]:
                    continue
                if not analytic and (call.function == 0 or cars[other].jolted):
                    asked += 1
                    ask_world[slot, beam] = True
                    continue
                if not analytic:
                    fraction = _cast_beam(cars[slot], beam_angles[beam], reach, call, bodies[other])
                beams[slot, beam] = min(beams[slot, beam], fraction)
    return asked


@kernel
def _nearest_first(cars: Any, slot: int, order: IntArray) -> int:
    """Writes the other cars' slots by distance into `order`; returns their number."""
    count = 0
    for other in range(len(cars)):
        if other == slot or not cars[other].present:
            continue
        away = _distance_squared(cars[slot], cars[other])
        place = count
        while place > 0 and _distance_squared(cars[slot], cars[order[place - 1]]) > away:
            order[place] = order[place - 1]
            place -= 1
        order[place] = other
        count += 1
    return count


@kernel
def _distance_squared(car: Any, other: Any) -> float:
    return (other.true_x - car.x) ** 2 + (other.true_y - car.y) ** 2


@kernel
def _beams_towards(car: Any, other: Any, num_beams: int, reach: float) -> tuple[int, int]:
    """First and last of the beams, counted on past a full turn, that can hit the other car."""
    dx, dy = other.true_x - car.x, other.true_y - car.y
    guard = GUARD + other.slack
    if dx * dx + dy * dy > (reach + REACH + guard) ** 2:
        return 0, -1
    hx, hy = other.true_heading_x, other.true_heading_y
    length, width = HALF_LENGTH + guard, HALF_WIDTH + guard
    if abs(dx * hx + dy * hy) <= length and abs(dy * hx - dx * hy) <= width:
        return 0, num_beams - 1
    # Angles of the corners, measured from the direction to the box's middle: all within half a turn.
    low, high = 0.0, 0.0
    for along in (-length, length):
        for across in (-width, width):
            corner_x = dx + along * hx - across * hy
            corner_y = dy + along * hy + across * hx
            angle = math.atan2(dx * corner_y - dy * corner_x, dx * corner_x + dy * corner_y)
            low, high = min(low, angle), max(high, angle)
    middle = math.atan2(dy, dx) - car.heading
    spacing = TWO_PI / num_beams
    return math.ceil((middle + low) / spacing - 1e-6), math.floor((middle + high) / spacing + 1e-6)


@kernel
def _cast_beam(car: Any, beam_angle: float, reach: float, call: RayCall, body: int) -> float:
    """metadrive.utils.math.get_laser_end, and Bullet's ray test against one car."""
    angle = beam_angle + car.heading
    end_x, end_y = reach * math.cos(angle) + car.x, reach * math.sin(angle) + car.y
    return cast(call, car.x, car.y, HEIGHT, end_x, end_y, HEIGHT, body)


@kernel
def _cut(car: Any, beam_angle: float, reach: float, other: Any, guard: float) -> float:
    """Where a beam enters the other car's outline, widened by `guard`: fraction of its length; 1.0 if it misses."""
    angle = beam_angle + car.heading
    ray_x, ray_y = reach * math.cos(angle), reach * math.sin(angle)
    dx, dy = other.true_x - car.x, other.true_y - car.y
    hx, hy = other.true_heading_x, other.true_heading_y
    enter, leave = 0.0, 1.0
    for along, at, half in (
        (ray_x * hx + ray_y * hy, dx * hx + dy * hy, HALF_LENGTH + guard),
        (ray_y * hx - ray_x * hy, dy * hx - dx * hy, HALF_WIDTH + guard),
    ):
        if abs(along) < 1e-9:
            if abs(at) > half:
                return 1.0
        else:
            first, second = (at - half) / along, (at + half) / along
            enter = max(enter, min(first, second))
            leave = min(leave, max(first, second))
    return enter if enter <= leave else 1.0
