"""How a car's life ends, and what is measured of it."""

from __future__ import annotations

from enum import IntEnum

from maip3o.envs.contract import RUNNING, Cost, Measurement, Outcome, WorldSpec


class Cause(IntEnum):
    """Why a car's life ended, as an index into OUTCOMES. NONE while it drives."""

    NONE = 0
    ARRIVED = 1
    CRASH_VEHICLE = 2
    CRASH_OBJECT = 3
    CRASH_SIDEWALK = 4
    OFF_ROAD = 5
    TIME_OUT = 6
    CUT = 7  # alive when the episode's end rule stopped everybody


ELIMINATED = (Cause.CRASH_VEHICLE, Cause.CRASH_OBJECT, Cause.CRASH_SIDEWALK, Cause.OFF_ROAD)
"""Causes that count as a failure: the cost of the constraint `termination`, and what the end rules count."""

OUTCOMES = (
    RUNNING,
    Outcome("arrived", "goal", "arrived"),
    Outcome("crash_vehicle", "failure", "hit a car"),
    Outcome("crash_object", "failure", "hit an object"),
    Outcome("crash_sidewalk", "failure", "hit the kerb"),
    Outcome("off_road", "failure", "left the road"),
    Outcome("time_out", "timeout", "timed out"),
    Outcome("cut", "cut", "cut short by the end rule"),
)
MEASUREMENTS = (
    Measurement("route_completion", "last", "route completed", share=True),  # in [0, 1]
    Measurement("speed", "mean", "mean speed, m/s"),
)


def driving_spec(observation_size: int, action_size: int, costs: tuple[Cost, ...]) -> WorldSpec:
    return WorldSpec(
        observation_size,
        action_size,
        OUTCOMES,
        MEASUREMENTS,
        costs,
        # A car that stands still learns nothing; U-turns and parking spaces need full lock to be found.
        initial_mean=(0.0, 0.5),  # steering, throttle
        initial_std=(0.6, 0.3),
        agent="car",
        failure="eliminated: crashed or left the road",
    )
