"""Bullet's bodies of the lanes, for asking one of them whether it is under a point."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from metadrive.type import MetaDriveType

from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.fast.geometry import MapGeometry
from maip3o.envs.driving.fast.native import BODY_PROXY, PROXY_BOX, Bullet, follow

MARGIN = 0.08  # metres by which Bullet's box is wider than the hull's
TOLERANCE = 0.001


def find_lane_bodies(geometry: MapGeometry, static_world: Any, bullet: Bullet) -> bool:
    """Fills the lanes' fields `body` and `box_*`; False (and nothing filled) if some box is not where it should be."""
    lanes = geometry.arrays.lanes
    boxes = np.zeros((len(lanes), 4), dtype=np.float32)
    bodies = np.zeros(len(lanes), dtype=np.int64)
    for node in static_world.getRigidBodies():
        if MetaDriveType.is_lane(node.getName()):
            lane = geometry.lane_ids[node.getPythonTag(node.getName()).base_object_name]
            bodies[lane] = bullet.body_of(node)
            boxes[lane] = _box(bodies[lane])
    sides = ("x_min", "x_max", "y_min", "y_max")
    expected = np.stack([lanes[side] for side in sides], axis=1) + MARGIN * np.array([-1, 1, -1, 1])
    if not bodies.all() or np.abs(boxes - expected).max() > TOLERANCE:
        return False
    lanes["body"] = bodies
    for column, side in enumerate(sides):
        lanes[f"box_{side}"] = boxes[:, column]
    return True


def _box(body: int) -> FloatArray:
    """x_min, x_max, y_min, y_max of the box in a body's btBroadphaseProxy."""
    proxy = follow(int(body) + BODY_PROXY)
    low_x, low_y, _, _, high_x, high_y = np.frombuffer(ctypes.string_at(proxy + PROXY_BOX, 24), dtype=np.float32)
    return np.array([low_x, high_x, low_y, high_y], dtype=np.float32)
