"""The car's own state as it observes it."""

from __future__ import annotations

import math
from typing import Any

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.envs.driving.fast.lanes import clip, local_coordinates, norm
from maip3o.jit import kernel

STATE_SIZE = 9
TOTAL_WIDTH = 18.0  # (BaseMap.MAX_LANE_NUM + 1) * BaseMap.MAX_LANE_WIDTH
MAX_LANE_WIDTH = 4.5  # BaseMap.MAX_LANE_WIDTH
MAX_STEERING = 60  # BaseVehicle.MAX_STEERING
STEP_SECONDS = 0.1


@kernel
def observe_state(
    cars: Any, slots: IntArray, lanes: Any, roads: Any, max_speed_km_h: float, observation: FloatArray, two: float
) -> None:
    """StateObservation.vehicle_state. Writes observation[slot, :9]."""
    for slot in slots:
        car = cars[slot]
        info = observation[slot]
        road = roads[car.current_road]
        lane = lanes[car.current_lane]
        _, lateral = local_coordinates(lanes[road.first_lane], car.x, car.y, two)
        to_left = lateral + lane.width / 2
        to_right = lane.width * road.num_lanes - to_left
        info[0] = clip(to_left / TOTAL_WIDTH, 0.0, 1.0)
        info[1] = clip(to_right / TOTAL_WIDTH, 0.0, 1.0)
        info[2] = _heading_difference(car, lanes[road.first_lane + road.num_lanes - 1], two)
        info[3] = clip((car.speed_km_h + 1) / (max_speed_km_h + 1), 0.0, 1.0)
        info[4] = clip((car.steering / MAX_STEERING + 1) / 2, 0.0, 1.0)
        info[5] = clip((car.steering + 1) / 2, 0.0, 1.0)
        info[6] = clip((car.throttle + 1) / 2, 0.0, 1.0)
        info[7] = clip(_turned(car, two) / STEP_SECONDS, 0.0, 1.0)
        _, lateral = local_coordinates(lane, car.x, car.y, two)
        info[8] = clip((lateral * 2 / MAX_LANE_WIDTH + 1.0) / 2.0, 0.0, 1.0)


@kernel
def _heading_difference(car: Any, lane: Any, two: float) -> float:
    """BaseVehicle.heading_diff"""
    if lane.circular:
        if lane.clockwise:
            x, y = lane.center_x - car.x, lane.center_y - car.y
        else:
            x, y = car.x - lane.center_x, car.y - lane.center_y
        length = norm(x, y, two)
    else:
        x, y, length = lane.normal_x, lane.normal_y, lane.normal_norm
    scale = length * norm(car.heading_x, car.heading_y, two)
    if scale == 0.0:
        return 0.0
    cosine = (car.heading_x * x + car.heading_y * y) / scale
    return clip(cosine, -1.0, 1.0) / 2 + 0.5


@kernel
def _turned(car: Any, two: float) -> float:
    """Angle between this step's heading and the last one's, radians."""
    along = car.heading_x * car.last_heading_x + car.heading_y * car.last_heading_y
    scale = norm(car.heading_x, car.heading_y, two) * norm(car.last_heading_x, car.last_heading_y, two)
    return math.acos(clip(along / scale, 0.0, 1.0))
