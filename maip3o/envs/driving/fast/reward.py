"""Reward, arrival and road exit."""

from __future__ import annotations

from typing import Any, NamedTuple

from maip3o.envs.contract import BoolArray, FloatArray, IntArray
from maip3o.envs.driving.fast.lanes import local_coordinates
from maip3o.jit import kernel


class RewardRules(NamedTuple):
    """Keys of MetaDrive's config, and two more."""

    driving_reward: float
    speed_reward: float
    success_reward: float
    out_of_road_penalty: float
    crash_vehicle_penalty: float
    crash_sidewalk_penalty: float
    max_speed_km_h: float
    white_lines_count: bool  # touching a continuous white line is a road exit (it is not in Parking Lot)


def reward_rules(config: Any, max_speed_km_h: float, white_lines_count: bool) -> RewardRules:
    return RewardRules(
        driving_reward=float(config["driving_reward"]),
        speed_reward=float(config["speed_reward"]),
        success_reward=float(config["success_reward"]),
        out_of_road_penalty=float(config["out_of_road_penalty"]),
        crash_vehicle_penalty=float(config["crash_vehicle_penalty"]),
        crash_sidewalk_penalty=float(config["crash_sidewalk_penalty"]),
        max_speed_km_h=max_speed_km_h,
        white_lines_count=white_lines_count,
    )


@kernel
def judge(
    cars: Any,
    slots: IntArray,
    lanes: Any,
    roads: Any,
    rules: RewardRules,
    arrived: BoolArray,
    out_of_road: BoolArray,
    reward: FloatArray,
    two: float,
) -> None:
    """MetaDriveEnv._is_arrive_destination, _is_out_of_road and reward_function.

    Writes arrived, out_of_road, reward at the slots.
    """
    for slot in slots:
        car = cars[slot]
        arrived[slot] = _has_arrived(car, lanes, roads, two)
        on_line = car.on_yellow_line or (rules.white_lines_count and car.on_white_line)
        out_of_road[slot] = not car.on_lane or on_line or car.crash_sidewalk
        if arrived[slot]:
            reward[slot] = rules.success_reward
        elif out_of_road[slot]:
            reward[slot] = -rules.out_of_road_penalty
        elif car.crash_vehicle:
            reward[slot] = -rules.crash_vehicle_penalty
        elif car.crash_sidewalk:
            reward[slot] = -rules.crash_sidewalk_penalty
        else:
            reward[slot] = _driving_reward(car, lanes, roads, rules, two)


@kernel
def _has_arrived(car: Any, lanes: Any, roads: Any, two: float) -> bool:
    lane = lanes[car.final_lane]
    width = lanes[car.current_lane].width
    num_lanes = roads[car.current_road].num_lanes
    longitudinal, lateral = local_coordinates(lane, car.x, car.y, two)
    at_end = lane.length - 5 < longitudinal < lane.length + 5
    return at_end and width / 2 >= lateral >= (0.5 - num_lanes) * width


@kernel
def _driving_reward(car: Any, lanes: Any, roads: Any, rules: RewardRules, two: float) -> float:
    lane = lanes[car.current_lane]
    sign = 1.0
    if lane.road != car.current_road:
        lane = lanes[roads[car.current_road].first_lane]
        sign = roads[car.current_road].sign
    before, _ = local_coordinates(lane, car.last_x, car.last_y, two)
    now, _ = local_coordinates(lane, car.x, car.y, two)
    reward = 0.0 + rules.driving_reward * (now - before) * sign
    reward += rules.speed_reward * (car.speed_km_h / rules.max_speed_km_h) * sign
    return reward
