"""Cost functions: one per constraint, by name. Built from the simulator's flags, never from MetaDrive's info["cost"].

MetaDrive's own cost is 0 for a road exit and lets a road exit hide a crash.

A function takes (raw step, eliminated [A]) and gives the cost of each car, [A]; `eliminated`: the car's life ended in
this step by crash or road exit. Keyword arguments are its parameters, set beside the constraint's limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import BoolArray, Cost, FloatArray
from maip3o.envs.driving.backend import RawStep
from maip3o.errors import UserError


@dataclass(frozen=True, slots=True)
class DrivingCost:
    """A constraint's cost, with its parameters filled in."""

    declared: Cost
    function: Callable[[RawStep, BoolArray], FloatArray]


def termination(raw: RawStep, eliminated: BoolArray) -> FloatArray:
    """1 on the step at which a car's life ends by a crash or a road exit."""
    return eliminated.astype(np.float32)


def crash(raw: RawStep, eliminated: BoolArray) -> FloatArray:
    """1 on each step with a contact: vehicle, object or sidewalk, also when the car leaves the road in it."""
    return (raw.crash_vehicle | raw.crash_object | raw.crash_sidewalk).astype(np.float32)


def off_road(raw: RawStep, eliminated: BoolArray) -> FloatArray:
    """1 on each step off the road (a sidewalk counts), also when the car crashes in it."""
    return (raw.out_of_road | raw.crash_sidewalk).astype(np.float32)


def speed(raw: RawStep, eliminated: BoolArray, *, threshold: float = 10.0) -> FloatArray:
    """1 on each step faster than threshold, m/s."""
    return (raw.speed > threshold).astype(np.float32)


COSTS: dict[str, Callable[..., FloatArray]] = {
    "termination": termination,
    "crash": crash,
    "off_road": off_road,
    "speed": speed,
}
EVENTS = ("termination", "crash", "off_road")
"""Each ends the life, so it comes at most once in it. Any other is counted over the steps of a life."""


def known_costs(scenario: ScenarioConfig) -> dict[str, str]:
    """Every constraint that the scenario can have -> event | count."""
    chosen = {name: settings.get("cost", name) for name, settings in scenario.costs.items()}
    return {name: "event" if cost in EVENTS else "count" for name, cost in {**{c: c for c in COSTS}, **chosen}.items()}


def driving_costs(scenario: ScenarioConfig, names: Sequence[str]) -> list[DrivingCost]:
    kinds = known_costs(scenario)
    return [DrivingCost(Cost(name, kinds[name]), _function(name, scenario.costs.get(name, {}))) for name in names]


def _function(name: str, settings: Mapping[str, Any]) -> Callable[[RawStep, BoolArray], FloatArray]:
    """The cost function of the constraint of this name. settings: `cost` if it is called otherwise, and parameters."""
    given = {key: value for key, value in settings.items() if key != "cost"}
    function = _find(name, str(settings.get("cost", name)))
    wanted = {key: p for key, p in signature(function).parameters.items() if p.kind == Parameter.KEYWORD_ONLY}
    for key, value in given.items():
        if key not in wanted:
            raise UserError(f"constraints.{name}.{key}={value}: this cost takes {', '.join(wanted) or 'no parameters'}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UserError(f"constraints.{name}.{key}={value}: must be a number")
    for key, parameter in wanted.items():
        if key not in given and parameter.default is Parameter.empty:
            raise UserError(f"constraints.{name}: its cost needs {key}; add +constraints.{name}.{key}=<number>")
    return partial(function, **given)


def _find(name: str, cost: str) -> Callable[..., FloatArray]:
    """One of ours, or `package.module:function`."""
    if cost in COSTS:
        return COSTS[cost]
    module, colon, attribute = cost.partition(":")
    try:
        found: Callable[..., FloatArray] = getattr(import_module(module), attribute) if colon else COSTS[cost]
    except KeyError:
        known = ", ".join(COSTS)
        raise UserError(f"constraints.{name}.cost={cost}: known are {known}, or package.module:function") from None
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"constraints.{name}.cost={cost}: cannot be imported ({error})") from None
    return found
