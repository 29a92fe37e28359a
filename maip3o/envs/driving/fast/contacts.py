"""Where a contact is possible at all. Whether there is one, Bullet says.

Bullet's boxes touch within its contact threshold and margins (some centimetres); GUARD covers them.
"""

from __future__ import annotations

import math
from typing import Any

from maip3o.envs.contract import BoolArray, IntArray
from maip3o.jit import kernel

HALF_LENGTH = 4.515 / 2  # DefaultVehicle
HALF_WIDTH = 1.852 / 2
REACH = 2.45  # metres, more than half of the box's diagonal
GUARD = 0.12  # metres
REGION_HALF_LENGTH, REGION_HALF_WIDTH = 4.0, 1.5  # of SpawnManager's respawn region
REGION_GUARD = 0.5  # metres
LINE_HALF_WIDTH = 0.0375  # PGDrivableAreaProperty.LANE_LINE_WIDTH / 4


@kernel
def possible_contacts(
    cars: Any,
    slots: IntArray,
    solid_lines: Any,
    kerbs: Any,
    near_line: BoolArray,
    near_kerb: BoolArray,
    near_car: BoolArray,
) -> None:
    """Which cars need which of the tests of BaseVehicle._state_check. Writes near_* [A] at the slots."""
    for slot in slots:
        car = cars[slot]
        near_line[slot] = _near_line(car, solid_lines)
        near_kerb[slot] = _near_kerb(car, kerbs)
        near_car[slot] = _near_car(cars, slot)


@kernel
def _near_line(car: Any, lines: Any) -> bool:
    length, width = HALF_LENGTH + GUARD + LINE_HALF_WIDTH + car.slack, HALF_WIDTH + GUARD + LINE_HALF_WIDTH + car.slack
    x, y, hx, hy = car.true_x, car.true_y, car.true_heading_x, car.true_heading_y
    for k in range(len(lines)):  # noqa: SIM110 (numba compiles no generator expressions)
        if box_meets_segment(x, y, hx, hy, length, width, lines[k]):
            return True
    return False


@kernel
def _near_kerb(car: Any, kerbs: Any) -> bool:
    """The sweep of rect_region_detection uses the reported pose and an upright box."""
    for k in range(len(kerbs)):
        if box_meets_segment(
            car.x, car.y, car.heading_x, car.heading_y, HALF_LENGTH + GUARD, HALF_WIDTH + GUARD, kerbs[k]
        ):
            return True
    return False


@kernel
def _near_car(cars: Any, slot: int) -> bool:
    car = cars[slot]
    for other in range(len(cars)):
        if other != slot and cars[other].present and boxes_meet(car, cars[other], GUARD):
            return True
    return False


@kernel
def box_meets_segment(x: float, y: float, hx: float, hy: float, length: float, width: float, line: Any) -> bool:
    """Separating axes of a box (middle, heading, half extents) and a segment (middle, half extent)."""
    dx, dy = line.x - x, line.y - y
    along = abs(dx * hx + dy * hy)
    half_along = abs(line.dx * hx + line.dy * hy)
    if along > length + half_along:
        return False
    across = abs(dy * hx - dx * hy)
    half_across = abs(line.dy * hx - line.dx * hy)
    if across > width + half_across:
        return False
    return abs(dx * line.dy - dy * line.dx) <= length * half_across + width * half_along


@kernel
def boxes_meet(a: Any, b: Any, guard: float) -> bool:
    """Separating axes of two cars' boxes, one of them wider by `guard`."""
    dx, dy = b.true_x - a.true_x, b.true_y - a.true_y
    slack = guard + a.slack + b.slack
    if dx * dx + dy * dy > (2 * REACH + slack) ** 2:
        return False
    cosine = abs(a.true_heading_x * b.true_heading_x + a.true_heading_y * b.true_heading_y)
    sine = abs(a.true_heading_x * b.true_heading_y - a.true_heading_y * b.true_heading_x)
    length = HALF_LENGTH + slack + HALF_LENGTH * cosine + HALF_WIDTH * sine
    width = HALF_WIDTH + slack + HALF_LENGTH * sine + HALF_WIDTH * cosine
    for car in (a, b):
        if abs(dx * car.true_heading_x + dy * car.true_heading_y) > length:
            return False
        if abs(dy * car.true_heading_x - dx * car.true_heading_y) > width:
            return False
    return True


@kernel
def region_is_clear(cars: Any, x: float, y: float, heading: float) -> bool:
    """Whether no car can touch the box that SpawnManager.get_available_respawn_places sweeps."""
    hx, hy = math.cos(heading), math.sin(heading)
    for slot in range(len(cars)):
        car = cars[slot]
        if car.present:
            reach = REACH + REGION_GUARD + car.slack
            dx, dy = car.true_x - x, car.true_y - y
            along, across = abs(dx * hx + dy * hy), abs(dy * hx - dx * hy)
            if along < REGION_HALF_LENGTH + reach and across < REGION_HALF_WIDTH + reach:
                return False
    return True
