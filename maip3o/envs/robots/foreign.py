"""Where the cost of an environment comes from that knows nothing of constraints: `scenario.cost`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from maip3o.config.schema import ScenarioConfig
from maip3o.errors import UserError

CostFunction = Callable[..., float]


def cost_function(scenario: ScenarioConfig) -> CostFunction:
    """A function of the user's own, `package.module:function`; else one that reads a key of info, its last argument."""
    module, colon, name = scenario.cost.partition(":")
    if not colon:
        return lambda *arguments: _from_info(scenario.cost, arguments[-1])
    try:
        found: CostFunction = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"scenario.cost={scenario.cost}: cannot be imported ({error})") from None
    if not callable(found):
        raise UserError(f"scenario.cost={scenario.cost}: must be a function, not {found!r}")
    return found


def _from_info(key: str, info: Mapping[str, Any]) -> float:
    if key not in info:
        there = ", ".join(map(str, info)) or "nothing"
        raise UserError(f"scenario.cost={key}: the info of a step has no such key; it has {there}")
    return float(info[key])


def costs_of(scenario: ScenarioConfig) -> dict[str, str]:
    """The one cost that a foreign environment can have."""
    return {"cost": "count"} if scenario.cost else {}
