"""Lane arithmetic of MetaDrive's StraightLane and CircularLane, compiled, on the LANE records of geometry.py.

Every function rounds as its MetaDrive counterpart does: same operations, same order, same libm calls.
"""

from __future__ import annotations

import math
from typing import Any

from maip3o.jit import kernel

TWO_PI = 2 * math.pi


@kernel
def wrap_to_pi(angle: float) -> float:
    """metadrive.utils.math.wrap_to_pi"""
    angle = angle % TWO_PI
    if angle > math.pi:
        angle -= TWO_PI
    return angle


@kernel
def norm(x: float, y: float, two: float) -> float:
    """metadrive.utils.math.norm. `two` is 2.0 and never a literal: CPython calls pow, LLVM would write x * x instead,
    and the two differ in the last bit now and then."""
    return math.sqrt(math.pow(x, two) + math.pow(y, two))


@kernel
def clip(value: float, low: float, high: float) -> float:
    """metadrive.utils.math.clip, with Python's min and max."""
    if low > value:
        value = low
    if high < value:
        value = high
    return value


@kernel
def local_coordinates(lane: Any, x: float, y: float, two: float) -> tuple[float, float]:
    """StraightLane.local_coordinates, CircularLane.local_coordinates: (longitudinal, lateral)."""
    if not lane.circular:
        delta_x = x - lane.start_x
        delta_y = y - lane.start_y
        longitudinal = delta_x * lane.direction_x + delta_y * lane.direction_y
        lateral = delta_x * lane.lateral_x + delta_y * lane.lateral_y
        return longitudinal, lateral
    delta_x = x - lane.center_x
    delta_y = y - lane.center_y
    phase = wrap_to_pi(math.atan2(delta_y, delta_x))
    to_start = abs(wrap_to_pi(phase - lane.start_phase_wrapped))
    to_end = abs(wrap_to_pi(phase - lane.end_phase_wrapped))
    if to_start > to_end:
        difference = lane.end_phase - phase if lane.clockwise else phase - lane.end_phase
        longitudinal = wrap_to_pi(difference) * lane.radius + lane.length
    else:
        difference = lane.start_phase - phase if lane.clockwise else phase - lane.start_phase
        longitudinal = wrap_to_pi(difference) * lane.radius
    lateral = lane.turn * (norm(delta_x, delta_y, two) - lane.radius)
    return longitudinal, lateral


@kernel
def heading_at(lane: Any, longitudinal: float) -> float:
    """StraightLane.heading_theta_at, CircularLane.heading_theta_at"""
    if not lane.circular:
        return lane.heading
    return lane.turn * longitudinal / lane.radius + lane.start_phase + math.pi / 2 * lane.turn


@kernel
def position_at(lane: Any, longitudinal: float, lateral: float) -> tuple[float, float]:
    """StraightLane.position, CircularLane.position"""
    if not lane.circular:
        x = lane.start_x + longitudinal * lane.direction_x + lateral * lane.lateral_x
        y = lane.start_y + longitudinal * lane.direction_y + lateral * lane.lateral_y
        return x, y
    phi = lane.turn * longitudinal / lane.radius + lane.start_phase
    radius = lane.radius + lateral * lane.turn
    return lane.center_x + math.cos(phi) * radius, lane.center_y + math.sin(phi) * radius


@kernel
def distance(lane: Any, longitudinal: float, lateral: float) -> float:
    """AbstractLane.distance, from coordinates that are already known."""
    past_end = longitudinal - lane.length
    before_start = 0 - longitudinal
    result = abs(lateral)
    result += past_end if past_end > 0 else 0.0
    result += before_start if before_start > 0 else 0.0
    return result
