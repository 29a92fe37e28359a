"""What a multi-agent driving environment gives to the rollout: arrays over fixed slots.

Axis letters, the same everywhere: T time, E episode, A agent slot, K constraint, O observation.
An environment knows no tensor, no policy and no algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.integer]


class Cause(IntEnum):
    """Why a car's life ended. NONE while it drives."""

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


@dataclass(slots=True)
class StepResult:
    """One environment step. Rows of slots that did not act hold zeros / False / Cause.NONE."""

    observation: FloatArray  # [A, O] float32: what each living car acts on next; zeros where not alive
    alive: BoolArray  # [A]: the slot holds a car that acts in the next step
    fresh: BoolArray  # [A]: a new car took the slot in this step (respawn): start its memory from zero
    reward: FloatArray  # [A] float64
    cost: FloatArray  # [A, K] float32, in the order of `cost_names`
    terminated: BoolArray  # [A]: the car's life ended in this step, no bootstrap
    truncated: BoolArray  # [A]: the car's life was cut in this step (time-out, end rule): bootstrap. Never both.
    cause: IntArray  # [A] int8, of Cause
    final_observation: FloatArray  # [A, O] float32: last observation of cars that ended in this step, else zeros
    route_completion: FloatArray  # [A] float64 in [0, 1] after this step, of cars that acted in it, else zeros
    speed: FloatArray  # [A] float64, m/s, likewise
    over: bool  # the episode has ended: nobody acts any more


@dataclass(slots=True)
class CarStates:
    """Where every car is, living or wrecked, for videos and replays. Rows with present=False hold zeros."""

    present: BoolArray  # [A]: a car, living or wreck, stands in the world
    position: FloatArray  # [A, 2] float64, metres, MetaDrive's world frame (x forward, y left)
    heading: FloatArray  # [A] float64, radians, counter-clockwise from +x
    speed: FloatArray  # [A] float64, m/s
    route_completion: FloatArray  # [A] float64 in [0, 1]


@dataclass(slots=True)
class RoadMap:
    """The static map as plain geometry."""

    lanes: list[FloatArray]  # polygons [n, 2] of drivable surface
    lines: list[tuple[FloatArray, str]]  # polylines [n, 2] with kind: "white", "white_broken", "yellow", "side"
    bounds: tuple[float, float, float, float]  # x_min, y_min, x_max, y_max of everything above


class ArrayEnv(Protocol):
    """The environment as the rollout sees it. The PettingZoo face is a thin view on this."""

    num_slots: int  # A
    observation_size: int  # O
    action_size: int
    cost_names: tuple[str, ...]  # K names
    end_rule: str  # half | first | all; a change holds from the next reset on

    def reset(self, seed: int) -> StepResult:
        """Start the episode that `seed` stands for. Only observation, alive, fresh (= alive) carry data."""

    def step(self, action: FloatArray) -> StepResult:
        """Advance one step. action: [A, action_size]; rows of slots that are not alive are ignored."""

    def car_states(self) -> CarStates: ...

    def road_map(self) -> RoadMap: ...

    def routes(self) -> list[FloatArray]:
        """Per slot the centre line [n, 2] from spawn to destination of its present car (empty if none)."""

    def close(self) -> None: ...
