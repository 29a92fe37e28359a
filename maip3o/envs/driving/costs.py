"""Cost functions: one per constraint, by name. Built from the simulator's flags, never from MetaDrive's info["cost"].

MetaDrive's own cost is 0 for a road exit and lets a road exit hide a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray
from maip3o.envs.driving.backend import RawStep
from maip3o.errors import UserError

CostFunction = Callable[[RawStep, BoolArray], FloatArray]
"""(raw step, eliminated [A]) -> cost [A]. `eliminated`: the car's life ended in this step by crash or road exit."""


def termination(raw: RawStep, eliminated: BoolArray) -> FloatArray:
    """1 on the step at which a car's life ends by a crash or a road exit."""
    return eliminated.astype(np.float32)


def crash(raw: RawStep, eliminated: BoolArray) -> FloatArray:
    """1 on each step with a contact: vehicle, object or sidewalk, also when the car leaves the road in it."""
    return (raw.crash_vehicle | raw.crash_object | raw.crash_sidewalk).astype(np.float32)


def off_road(raw: RawStep, eliminated: BoolArray) -> FloatArray:
    """1 on each step off the road (a sidewalk counts), also when the car crashes in it."""
    return (raw.out_of_road | raw.crash_sidewalk).astype(np.float32)


COSTS: dict[str, CostFunction] = {"termination": termination, "crash": crash, "off_road": off_road}
KINDS = dict.fromkeys(COSTS, "event")  # each ends the life, so it comes at most once in it


def cost_functions(names: Sequence[str]) -> list[CostFunction]:
    for name in names:
        if name not in COSTS:
            raise UserError(f"unknown constraint {name!r}: known are {', '.join(COSTS)}")
    return [COSTS[name] for name in names]
