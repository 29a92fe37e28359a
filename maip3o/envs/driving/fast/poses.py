"""From Bullet's numbers to the cars' records."""

from __future__ import annotations

import math
from typing import Any

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.envs.driving.fast.lanes import clip, norm, wrap_to_pi
from maip3o.jit import kernel

LAG = 0.02  # seconds: the reported pose is one physics substep old
BOX_HEIGHT = 1.3  # metres, generous


@kernel
def update_poses(cars: Any, poses: FloatArray, slots: IntArray, two: float) -> None:
    """BaseVehicle.before_step (what is remembered) and the pose properties of BaseObject and BaseVehicle.

    poses: [n, 12], columns cars.POSE_COLUMNS, of the slots [n].
    """
    for row in range(len(slots)):
        car = cars[slots[row]]
        car.last_x, car.last_y = car.x, car.y
        car.last_heading_x, car.last_heading_y = car.heading_x, car.heading_y
        set_pose(car, poses[row], two)


@kernel
def set_pose(car: Any, pose: FloatArray, two: float) -> None:
    car.x, car.y = pose[0], pose[1]
    car.heading = wrap_to_pi(wrap_to_pi(pose[2] / 180 * math.pi) + math.pi / 2)
    car.heading_x, car.heading_y = math.cos(car.heading), math.sin(car.heading)
    pace = norm(pose[5], pose[6], two)
    car.speed = clip(pace, 0.0, 100000.0)
    car.speed_km_h = clip(pace * 3.6, 0.0, 100000.0)
    for k in range(4):
        car.to_local[k] = pose[8 + k]
    car.true_x, car.true_y = pose[0] + LAG * pose[5], pose[1] + LAG * pose[6]
    true_heading = car.heading + LAG * pose[7]
    car.true_heading_x, car.true_heading_y = math.cos(true_heading), math.sin(true_heading)
    tilt = abs(math.sin(math.radians(pose[3]))) + abs(math.sin(math.radians(pose[4])))
    car.slack = BOX_HEIGHT * tilt
