"""Which lidar beams can hit a car at all."""

from __future__ import annotations

import math
from typing import Any

from maip3o.envs.contract import BoolArray, FloatArray, IntArray
from maip3o.envs.fast.compiled import kernel
from maip3o.envs.fast.contacts import HALF_LENGTH, HALF_WIDTH, REACH
from maip3o.envs.fast.lanes import TWO_PI

GUARD = 0.05  # metres: Bullet's convex cast stops up to 1 cm early


@kernel
def beams_that_can_hit(cars: Any, slots: IntArray, num_beams: int, reach: float, candidate: BoolArray) -> None:
    """A superset of the beams that hit a car. Writes candidate [A, beams] at the slots.

    MetaDrive's own mask (Lidar._get_lidar_mask) is wider than a car's outline, so it never hides a hit, save at the end
    of the reach, which the caller checks.
    """
    for slot in slots:
        candidate[slot, :] = False
        for other in range(len(cars)):
            if other != slot and cars[other].present:
                _mark(cars[slot], cars[other], num_beams, reach, candidate[slot])


@kernel
def _mark(car: Any, other: Any, num_beams: int, reach: float, candidate: BoolArray) -> None:
    dx, dy = other.true_x - car.x, other.true_y - car.y
    guard = GUARD + other.slack
    if dx * dx + dy * dy > (reach + REACH + guard) ** 2:
        return
    hx, hy = other.true_heading_x, other.true_heading_y
    length, width = HALF_LENGTH + guard, HALF_WIDTH + guard
    if abs(dx * hx + dy * hy) <= length and abs(dy * hx - dx * hy) <= width:
        candidate[:] = True
        return
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
    first = math.ceil((middle + low) / spacing - 1e-6)
    last = math.floor((middle + high) / spacing + 1e-6)
    for k in range(first, last + 1):
        candidate[k % num_beams] = True


@kernel
def beam_ends(
    cars: Any, slots: IntArray, candidate: BoolArray, beam_angles: FloatArray, reach: float, rays: FloatArray
) -> int:
    """metadrive.utils.math.get_laser_end of every candidate beam. Writes rays [n, 4] (slot, beam, x, y); returns n."""
    count = 0
    for slot in slots:
        car = cars[slot]
        for k in range(len(beam_angles)):
            if candidate[slot, k]:
                angle = beam_angles[k] + car.heading
                rays[count, 0], rays[count, 1] = slot, k
                rays[count, 2] = reach * math.cos(angle) + car.x
                rays[count, 3] = reach * math.sin(angle) + car.y
                count += 1
    return count
