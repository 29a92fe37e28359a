"""The state of every slot's car as one record array: what BaseVehicle and its navigation module keep in attributes."""

from __future__ import annotations

import numpy as np

MAX_CHECKPOINTS = 16

CAR = np.dtype(
    [
        ("present", "?"),  # a body stands in the world: a living car or a wreck
        ("alive", "?"),
        # Pose as Panda3D reports it: one physics substep behind Bullet's own. Everything but contacts and rays uses it.
        ("x", "f8"),
        ("y", "f8"),
        ("heading", "f8"),  # radians, BaseVehicle.heading_theta
        ("heading_x", "f8"),
        ("heading_y", "f8"),
        ("last_x", "f8"),
        ("last_y", "f8"),
        ("last_heading_x", "f8"),
        ("last_heading_y", "f8"),
        ("to_local", "f8", (4,)),  # rows of the matrix that turns a world vector into the car's frame
        ("speed", "f8"),  # m/s
        ("speed_km_h", "f8"),
        ("steps", "i8"),  # driven so far
        ("steering", "f8"),  # last action, in [-1, 1]
        ("throttle", "f8"),
        # Bullet's own pose, good to a fraction of a millimetre: for the guard bands around contacts and rays.
        ("true_x", "f8"),
        ("true_y", "f8"),
        ("true_heading_x", "f8"),
        ("true_heading_y", "f8"),
        ("jolted", "?"),  # in contact with anything during this step
        ("slack", "f8"),  # metres by which a tilted box may reach over its upright outline
        # NodeNetworkNavigation
        ("checkpoints", "i4", (MAX_CHECKPOINTS,)),  # node ids
        ("route_roads", "i4", (MAX_CHECKPOINTS,)),  # road ids, one fewer
        ("num_checkpoints", "i4"),
        ("target", "i4"),  # _target_checkpoints_index
        ("next_target", "i4"),
        ("current_road", "i4"),  # current_ref_lanes
        ("next_road", "i4"),  # next_ref_lanes; -1 for None
        ("current_lane", "i4"),
        ("final_lane", "i4"),
        ("travelled_length", "f8"),
        ("last_longitudinal", "f8"),
        ("total_length", "f8"),
        # flags of the step, as BaseVehicleState has them
        ("on_lane", "?"),
        ("on_yellow_line", "?"),
        ("on_white_line", "?"),
        ("crash_sidewalk", "?"),
        ("crash_vehicle", "?"),
    ]
)

# Columns of the array in which the bodies' poses come out of Bullet.
POSE_COLUMNS = ("x", "y", "h", "p", "r", "vx", "vy", "yaw_rate", "m00", "m01", "m10", "m11")
