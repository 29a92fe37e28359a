"""Scripted drivers: functions of the observation and a random generator, the same on every backend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maip3o.envs.contract import FloatArray

Driver = Callable[[FloatArray, np.random.Generator], FloatArray]
"""(observation [A, O], generator) -> action [A, 2]: steering (left is positive) and throttle."""

HEADING, SPEED, LATERAL, AHEAD, LEFT = 2, 3, 8, 9, 10  # columns of the observation


def route(observation: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Keeps to the lane, leans to the next checkpoint, at some 20 km/h: arrives if it is alone, crashes in traffic."""
    heading, lateral, ahead, left = (
        2 * np.asarray(observation[:, column], dtype=np.float64) - 1 for column in (HEADING, LATERAL, AHEAD, LEFT)
    )
    steering = heading + 0.35 * lateral + 0.3 * np.arctan2(left, np.maximum(ahead, 1e-3))
    steering += rng.normal(0, 0.01, len(observation))
    return np.stack([steering, np.where(observation[:, SPEED] < 0.25, 0.5, -0.1)], axis=1)


def forward(observation: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Random steering, always on the throttle."""
    size = len(observation)
    return np.stack([rng.normal(0, 0.1, size), rng.uniform(0.2, 1.0, size)], axis=1)


def aggressive(observation: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Full throttle along the route, with jerks."""
    action = route(observation, rng)
    size = len(observation)
    return np.stack([action[:, 0] + np.where(rng.random(size) < 0.1, rng.normal(0, 0.5, size), 0), np.ones(size)], 1)


def braking(observation: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Along the route, with throttle and brake at random: slow enough to see the horizon."""
    action = route(observation, rng)
    return np.stack([action[:, 0], rng.choice([-1.0, -0.3, 0.4, 0.7], len(observation))], axis=1)


def wild(observation: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Anything, three times out of range."""
    return rng.uniform(-3, 3, (len(observation), 2))


DRIVERS: dict[str, Driver] = {
    "route": route,
    "forward": forward,
    "aggressive": aggressive,
    "braking": braking,
    "wild": wild,
}
