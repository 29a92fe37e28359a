"""The algorithms by name, and the settings that each has of its own (algo.settings). Imports no torch: --help is quick.

One from outside the package is named `package.module:Class`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields
from typing import Any

from maip3o.errors import UserError


@dataclass(frozen=True)
class NoSettings:
    pass


@dataclass(frozen=True)
class MultiplierSettings:
    """lambda by gradient ascent on lambda (J_C - d) with Adam."""

    multiplier_start: float = 0.001
    multiplier_lr: float = 0.035
    multiplier_max: float = 1000.0


@dataclass(frozen=True)
class PIDSettings:
    kp: float = 0.1
    ki: float = 0.01
    kd: float = 0.01
    delay: int = 10  # iterations over which the cost's rise is taken
    smoothing: float = 0.95  # of the moving averages of P and D
    multiplier_start: float = 0.001
    multiplier_max: float = 100.0


@dataclass(frozen=True)
class TrustRegionSettings:
    delta: float = 0.01  # the step's KL
    cg_iterations: int = 15
    damping: float = 0.1
    backtrack: float = 0.8
    line_search_steps: int = 20


@dataclass(frozen=True)
class FOCOPSSettings(MultiplierSettings):
    temperature: float = 1.5  # the paper's lambda
    radius: float = 0.02  # the paper's delta: steps of states that have moved further count no more
    multiplier_max: float = 2.0


@dataclass(frozen=True)
class CUPSettings(MultiplierSettings):
    multiplier_max: float = 2.0


ABOVE_ZERO = ("temperature", "radius", "delta", "cg_iterations", "backtrack", "line_search_steps", "delay")
BELOW_ONE = ("smoothing", "backtrack")

METHODS: dict[str, tuple[str, type]] = {
    "ppo": ("maip3o.algo.ppo:PPO", NoSettings),
    "ppo_lagrangian": ("maip3o.algo.ppo_lagrangian:PPOLagrangian", MultiplierSettings),
    "cppo_pid": ("maip3o.algo.cppo_pid:CPPOPID", PIDSettings),
    "cpo": ("maip3o.algo.cpo:CPO", TrustRegionSettings),
    "pcpo": ("maip3o.algo.pcpo:PCPO", TrustRegionSettings),
    "cup": ("maip3o.algo.cup:CUP", CUPSettings),
    "focops": ("maip3o.algo.focops:FOCOPS", FOCOPSSettings),
    "ipo": ("maip3o.algo.ipo:IPO", NoSettings),
    "p3o": ("maip3o.algo.p3o:P3O", NoSettings),
    "ip3o": ("maip3o.algo.ip3o:IP3O", NoSettings),
}


def check_method(method: str, settings: dict[str, Any]) -> None:
    """Refuse what no algorithm knows. The settings of one from outside are its own affair."""
    if method not in METHODS:
        if ":" in method:
            return
        near = difflib.get_close_matches(method, METHODS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(METHODS)
        raise UserError(f"algo.method={method}: no such algorithm; {hint}known are {known}, or package.module:Class")
    read_settings(method, settings)


def read_settings(method: str, settings: dict[str, Any]) -> Any:
    """The algorithm's own settings, typed."""
    kind = METHODS[method][1]
    known = {item.name: item for item in fields(kind)}
    for key, value in settings.items():
        if key not in known:
            names = ", ".join(known) or "none"
            raise UserError(f"algo.settings.{key}={value}: {method} has no such setting; known are {names}")
        whole = isinstance(known[key].default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not 0 <= value < 1e12:
            wanted = "a whole number" if whole else "a number"
            raise UserError(f"algo.settings.{key}={value}: must be {wanted} of 0 or above")
        if key in ABOVE_ZERO and value == 0:
            raise UserError(f"algo.settings.{key}={value}: must be above 0")
        if key in BELOW_ONE and value >= 1:
            raise UserError(f"algo.settings.{key}={value}: must be below 1")
    return kind(**settings)
