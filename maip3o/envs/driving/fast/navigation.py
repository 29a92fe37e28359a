"""Progress along the route, and what the car is told of its next two checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.envs.driving.fast.lanes import clip, local_coordinates, norm, position_at
from maip3o.jit import kernel

CHECKPOINT_UPDATE_RANGE = 5.0  # BaseNavigation.CKPT_UPDATE_RANGE
CHECKPOINT_DISTANCE = 50.0  # BaseNavigation.NAVI_POINT_DIST
CHECKPOINT_INFO = 5  # BaseNavigation.CHECK_POINT_INFO_DIM


@kernel
def follow_route(cars: Any, slots: IntArray, lanes: Any, roads: Any, two: float) -> None:
    """NodeNetworkNavigation.update_localization, after the current lane has been found and before navi_info."""
    for slot in slots:
        car = cars[slot]
        lane = lanes[car.current_lane]
        longitudinal, _ = local_coordinates(lane, car.x, car.y, two)
        reached = _next_checkpoint(car, lane.start_node, longitudinal)
        in_reference, _ = local_coordinates(lanes[roads[car.current_road].first_lane], car.x, car.y, two)
        car.travelled_length += in_reference - car.last_longitudinal
        car.last_longitudinal = in_reference
        if reached < 0:
            continue
        car.target = reached
        last_road = reached + 1 == car.num_checkpoints - 1
        car.next_target = reached if last_road else reached + 1
        car.current_road = car.route_roads[reached]
        car.next_road = -1 if last_road else car.route_roads[reached + 1]
        in_reference, _ = local_coordinates(lanes[roads[car.current_road].first_lane], car.x, car.y, two)
        car.last_longitudinal = in_reference


@kernel
def _next_checkpoint(car: Any, node: int, longitudinal: float) -> int:
    """NodeNetworkNavigation._update_target_checkpoints: the index that becomes the target, or -1."""
    if car.target == car.next_target or not longitudinal < CHECKPOINT_UPDATE_RANGE:
        return -1
    for index in range(car.next_target, car.num_checkpoints - 1):
        if car.checkpoints[index] == node:
            return index
    return -1


@kernel
def observe_checkpoints(
    cars: Any,
    slots: IntArray,
    lanes: Any,
    roads: Any,
    max_curve_radius: float,
    observation: FloatArray,
    first: int,
    two: float,
) -> None:
    """NodeNetworkNavigation._get_info_for_checkpoint, twice. Writes observation[slot, first : first + 10]."""
    for slot in slots:
        car = cars[slot]
        for which in range(2):
            road = car.next_road if which == 1 and car.next_road >= 0 else car.current_road
            info = observation[slot, first + which * CHECKPOINT_INFO : first + (which + 1) * CHECKPOINT_INFO]
            _observe_checkpoint(car, lanes, roads, lanes[roads[road].first_lane], max_curve_radius, info, two)


@kernel
def _observe_checkpoint(
    car: Any, lanes: Any, roads: Any, lane: Any, max_curve_radius: float, info: FloatArray, two: float
) -> None:
    num_lanes = roads[car.current_road].num_lanes
    width = lanes[car.current_lane].width
    x, y = position_at(lane, lane.length, (float(num_lanes) / 2 - 0.5) * width)
    x -= car.x
    y -= car.y
    away = norm(x, y, two)
    if away > CHECKPOINT_DISTANCE:
        x = x / away * CHECKPOINT_DISTANCE
        y = y / away * CHECKPOINT_DISTANCE
    # Panda3D's vectors and matrices hold single precision.
    x, y = np.float32(x), np.float32(y)
    m = car.to_local
    right = x * np.float32(m[0]) + y * np.float32(m[2])
    ahead = x * np.float32(m[1]) + y * np.float32(m[3])
    info[0] = clip((np.float64(ahead) / CHECKPOINT_DISTANCE + 1) / 2, 0.0, 1.0)
    info[1] = clip((np.float64(-right) / CHECKPOINT_DISTANCE + 1) / 2, 0.0, 1.0)
    bend = lane.radius / (max_curve_radius + num_lanes * width) if lane.circular else 0.0
    info[2] = clip(bend, 0.0, 1.0)
    info[3] = lane.bend_direction
    info[4] = lane.bend_angle
