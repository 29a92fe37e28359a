"""The two compiled passes over all cars in a step: before Bullet is asked where geometry leaves doubts, and after."""

from __future__ import annotations

from typing import Any, NamedTuple

from maip3o.envs.contract import BoolArray, FloatArray, IntArray
from maip3o.envs.driving.fast.contacts import possible_contacts
from maip3o.envs.driving.fast.geometry import MapArrays
from maip3o.envs.driving.fast.localisation import lanes_under, localise
from maip3o.envs.driving.fast.native import RayCall
from maip3o.envs.driving.fast.navigation import follow_route, observe_checkpoints
from maip3o.envs.driving.fast.poses import update_poses
from maip3o.envs.driving.fast.reward import RewardRules, judge
from maip3o.envs.driving.fast.state import STATE_SIZE, observe_state
from maip3o.jit import kernel


class Doubts(NamedTuple):
    """[A] each: what Bullet has to be asked about a car."""

    line: BoolArray  # does it touch a continuous lane line?
    kerb: BoolArray  # does it stand on a sidewalk?
    car: BoolArray  # does it touch another car?
    lanes: BoolArray  # which lanes is it on?


class Outcome(NamedTuple):
    """The arrays of RawStep that a step fills."""

    acted: BoolArray
    observation: FloatArray
    reward: FloatArray
    ended: BoolArray
    arrived: BoolArray
    crash_vehicle: BoolArray
    crash_sidewalk: BoolArray
    out_of_road: BoolArray
    max_step: BoolArray
    route_completion: FloatArray
    speed: FloatArray


@kernel
def look(
    cars: Any,
    slots: IntArray,
    poses: FloatArray,
    arrays: MapArrays,
    call: RayCall,
    hits: BoolArray,
    doubts: Doubts,
    two: float,
) -> int:
    """New poses, and the lanes under each car. Returns the number of doubts."""
    update_poses(cars, poses, slots, two)
    lanes_under(cars, slots, arrays.lanes, arrays.hull_edges, call, hits, doubts.lanes)
    possible_contacts(cars, slots, arrays.solid_lines, arrays.kerbs, doubts.line, doubts.kerb, doubts.car)
    count = 0
    for slot in slots:
        car = cars[slot]
        car.on_yellow_line = car.on_white_line = car.crash_sidewalk = car.crash_vehicle = False
        count += doubts.line[slot] or doubts.kerb[slot] or doubts.car[slot] or doubts.lanes[slot]
    return count


@kernel
def conclude(
    cars: Any,
    slots: IntArray,
    arrays: MapArrays,
    hits: BoolArray,
    rules: RewardRules,
    horizon: int,
    out: Outcome,
    two: float,
) -> int:
    """All that follows from poses, lanes and contacts, lidar excepted. Returns the number of cars that ended."""
    _clear(out)
    localise(cars, slots, arrays.lanes, hits, two)
    follow_route(cars, slots, arrays.lanes, arrays.roads, two)
    judge(cars, slots, arrays.lanes, arrays.roads, rules, out.arrived, out.out_of_road, out.reward, two)
    observe(cars, slots, arrays, rules.max_speed_km_h, out.observation, two)
    ended = 0
    for slot in slots:
        car = cars[slot]
        car.steps += 1
        out.acted[slot] = True
        out.crash_vehicle[slot], out.crash_sidewalk[slot] = car.crash_vehicle, car.crash_sidewalk
        out.max_step[slot] = car.steps >= horizon
        out.route_completion[slot] = car.travelled_length / car.total_length
        out.speed[slot] = car.speed
        out.ended[slot] = out.arrived[slot] or out.out_of_road[slot] or car.crash_vehicle or out.max_step[slot]
        ended += out.ended[slot]
    return ended


@kernel
def _clear(out: Outcome) -> None:
    out.acted[:] = False
    out.observation[:] = 0.0
    out.reward[:] = 0.0
    out.ended[:] = False
    out.arrived[:] = False
    out.crash_vehicle[:] = False
    out.crash_sidewalk[:] = False
    out.out_of_road[:] = False
    out.max_step[:] = False
    out.route_completion[:] = 0.0
    out.speed[:] = 0.0


@kernel
def observe(
    cars: Any, slots: IntArray, arrays: MapArrays, max_speed_km_h: float, observation: FloatArray, two: float
) -> None:
    """LidarStateObservation.observe without the lidar."""
    observe_state(cars, slots, arrays.lanes, arrays.roads, max_speed_km_h, observation, two)
    observe_checkpoints(cars, slots, arrays.lanes, arrays.roads, arrays.max_curve_radius, observation, STATE_SIZE, two)
