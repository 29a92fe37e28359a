"""A small made-up episode for the tests of videos and replays: a crossing, three cars, a crash and an arrival."""

from __future__ import annotations

import numpy as np

from maip3o.envs.driving.outcomes import Cause
from maip3o.envs.driving.views import RoadMap
from maip3o.video.footage import Footage, Route, Tracks

STEPS, CRASH, ARRIVAL, RAYS = 40, 14, 29, 8


def make_footage(policy: str = "policy", scenario: str = "crossing", seed: int = 7) -> Footage:
    """Car 0 drives east and arrives, car 1 drives north and crashes (its wreck stays 10 steps), car 2 stands."""
    road = RoadMap(
        lanes=[
            np.array([[-40.0, -4.0], [40.0, -4.0], [40.0, 4.0], [-40.0, 4.0]]),
            np.array([[-4.0, -30.0], [4.0, -30.0], [4.0, 30.0], [-4.0, 30.0]]),
        ],
        lines=[
            (np.array([[-40.0, 0.0], [40.0, 0.0]]), "white_broken"),
            (np.array([[0.0, -30.0], [0.0, 30.0]]), "yellow"),
        ],
        bounds=(-40.0, -30.0, 40.0, 30.0),
    )
    present = np.zeros((STEPS + 1, 3), dtype=bool)
    present[: ARRIVAL + 1, 0] = present[: CRASH + 11, 1] = present[:, 2] = True
    time = np.arange(STEPS + 1.0)
    position = np.zeros((STEPS + 1, 3, 2))
    position[:, 0] = np.stack([-30.0 + 2.0 * time, np.full_like(time, -2.0)], axis=-1)
    position[:, 1] = np.stack([np.full_like(time, 2.0), -25.0 + np.minimum(time, CRASH + 1)], axis=-1)
    position[:, 2] = [20.0, 2.0]
    heading = np.tile([0.0, np.pi / 2, np.pi], (STEPS + 1, 1))
    active = np.zeros((STEPS, 3), dtype=bool)
    active[: ARRIVAL + 1, 0] = active[: CRASH + 1, 1] = active[:, 2] = True
    cause = np.zeros((STEPS, 3), dtype=np.int8)
    cause[ARRIVAL, 0], cause[CRASH, 1], cause[-1, 2] = Cause.ARRIVED, Cause.CRASH_VEHICLE, Cause.TIME_OUT
    risk = np.where(active, [0.02, 0.5, 0.1], np.nan)
    routes = [Route(slot, 0, position[:, slot]) for slot in range(3)]
    speed = np.tile([20.0, 10.0, 0.0], (STEPS + 1, 1))
    return Footage(
        policy=policy,
        scenario=scenario,
        seed=seed,
        tracks=Tracks(road, routes, present, position, heading, speed),
        active=active,
        cause=cause,
        reward=np.where(active, 1.5, 0.0),
        cost=(cause == Cause.CRASH_VEHICLE).astype(float),
        constraint="termination",
        limit=0.1,
        risk=risk,
        value=np.where(active, 10.0, np.nan),
        lidar=np.full((STEPS, 3, RAYS), 0.5),
        lidar_range=20.0,
    )
