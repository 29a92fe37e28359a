"""The compiled lane arithmetic against MetaDrive's own, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from metadrive.component.lane.circular_lane import CircularLane
from metadrive.component.lane.straight_lane import StraightLane
from metadrive.utils.math import norm, wrap_to_pi

from maip3o.envs.driving.fast import lanes
from maip3o.envs.driving.fast.geometry import LANE, _fill_circular, _fill_straight

TWO = 2.0


def straight(rng: np.random.Generator) -> Any:
    return StraightLane(rng.uniform(-50, 50, 2), rng.uniform(-50, 50, 2), width=3.5)


def circular(rng: np.random.Generator) -> Any:
    return CircularLane(
        rng.uniform(-50, 50, 2),
        rng.uniform(2, 40),
        rng.uniform(-math.pi, math.pi),
        rng.uniform(0.2, math.pi),
        clockwise=bool(rng.integers(2)),
    )


def record_of(lane: Any) -> Any:
    record = np.zeros(1, dtype=LANE)
    record["length"], record["width"] = lane.length, lane.width
    (_fill_circular if isinstance(lane, CircularLane) else _fill_straight)(record[0], lane)
    return record[0]


@pytest.mark.parametrize("make", [straight, circular])
def test_lane_arithmetic_rounds_as_metadrive_does(make: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        lane = make(rng)
        record = record_of(lane)
        for x, y in rng.uniform(-60, 60, (50, 2)).astype(np.float32).astype(float).tolist():
            longitudinal, lateral = lane.local_coordinates((x, y))
            assert lanes.local_coordinates(record, x, y, TWO) == (longitudinal, lateral)
            assert lanes.heading_at(record, longitudinal) == lane.heading_theta_at(longitudinal)
            assert lanes.position_at(record, longitudinal, lateral) == tuple(lane.position(longitudinal, lateral))
            assert lanes.distance(record, longitudinal, lateral) == lane.distance((x, y))


def test_scalar_arithmetic_rounds_as_metadrive_does() -> None:
    rng = np.random.default_rng(1)
    for x, y in rng.normal(0, 30, (5000, 2)).tolist():
        assert lanes.norm(x, y, TWO) == norm(x, y)
        assert lanes.wrap_to_pi(x) == wrap_to_pi(x)
