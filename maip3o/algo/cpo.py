"""CPO (Achiam et al. 2017): the best step inside a KL ball that keeps the linearised constraints.

    max_x g.x   subject to   c_k + b_k.x <= 0,   x'Hx / 2 <= delta,      c = J_C - d

Its dual says that x is a multiple t of the natural gradient H^-1 g, projected on the half-spaces in the metric H. The
larger t, the longer x, so t follows by bisection from the length of the ball, for any number of constraints. Where no
x is feasible, a recovery step lowers the violated costs alone. Then a line search on gain, cost and KL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maip3o.algo.algorithm import Algorithm
from maip3o.algo.constraints import Constraints
from maip3o.algo.steps.half_spaces import Array, HalfSpaces, half_spaces
from maip3o.algo.steps.trust_region import Quadratic, line_search, quadratic
from maip3o.algo.view import PolicyData, PolicyView
from maip3o.config.schema import AlgoConfig

RECOVERY, ON_LIMIT, FREE = 0, 1, 2  # the log's policy/case
LONGEST = 4096.0  # t in radii: beyond, too little of g is left between the costs for float32
SMALL = 1e-8


@dataclass(slots=True)
class Plan:
    """x = along * (natural gain) - sum_k nu_k (natural cost k), in the units of HalfSpaces."""

    along: float
    nu: Array  # [K]
    case: int


class CPO(Algorithm):
    def __init__(self, algo: AlgoConfig, constraints: int, settings: Any = None) -> None:
        super().__init__(algo, constraints, settings)
        self.multiplier = torch.zeros(constraints)  # gain that a unit of each cost was worth in the last step

    def update(self, view: PolicyView, data: PolicyData) -> dict[str, float]:
        problem, violation = quadratic(view, self.settings), data.constraints.violation.cpu()
        step, case = self.step(problem, violation)
        tries = 0
        if bool(step.any()):
            tries = line_search(view, step, lambda change, kl: self.accept(change, kl, violation, case), self.settings)
        names = data.constraints.names
        return {
            "policy/epochs": float(tries > 0),
            "policy/steps": float(tries > 0),
            "policy/line_search": float(tries),
            "policy/rejected": float(tries == 0),
            "policy/case": float(case),
            "policy/cg_error": problem.error,
            **{f"constraint/{name}/multiplier": float(self.multiplier[k]) for k, name in enumerate(names)},
        }

    def step(self, problem: Quadratic, violation: Tensor) -> tuple[Tensor, int]:
        """x [N] before the line search, and its case."""
        q, r, s = (part.double().cpu().numpy() for part in (problem.q, problem.r, problem.s))
        radius = math.sqrt(2.0 * self.settings.delta)
        plan = self.plan(half_spaces(float(q), r, s, violation.double().numpy(), radius))
        # Back to units. A length of 0 has no direction, and its part is 0 anyhow.
        along = radius * plan.along / math.sqrt(q) if q > 0 else 0.0
        nu = radius * plan.nu / np.sqrt(np.where(np.diag(s) > 0, np.diag(s), np.inf))
        self.multiplier = torch.as_tensor(nu / along if along > 0 else np.zeros_like(nu), dtype=torch.float32)
        return along * problem.natural_gain - torch.as_tensor(nu).to(problem.cost) @ problem.natural_cost, plan.case

    def plan(self, spaces: HalfSpaces) -> Plan:
        nearest = spaces.project(0.0)
        if nearest is None or spaces.length(0.0, nearest) > 1.0:
            return Plan(0.0, spaces.recovery(), RECOVERY)
        low, high = 0.0, 1.0
        while high < LONGEST and _length(spaces, high) < 1.0:
            low, high = high, 2.0 * high
        for _ in range(50):
            middle = (low + high) / 2.0
            low, high = (low, middle) if _length(spaces, middle) >= 1.0 else (middle, high)
        nu = _projected(spaces, high)
        return Plan(high, nu, ON_LIMIT if nu.any() else FREE)

    def accept(self, change: Tensor, kl: float, violation: Tensor, case: int) -> bool:
        """The gain does not fall (unless recovering), no cost rises beyond its limit, the KL is nearly the ball's."""
        gain_holds = case == RECOVERY or float(change[0]) >= 0.0
        cost_holds = bool((change[1:].cpu() <= torch.clamp(-violation, min=0.0) + SMALL).all())
        return gain_holds and cost_holds and kl <= 1.5 * self.settings.delta

    def slope(self, x: Tensor, constraints: Constraints) -> Tensor:
        return self.multiplier.to(x).expand_as(x)

    def state_dict(self) -> dict[str, Any]:
        return {"multiplier": self.multiplier}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            self.multiplier = state["multiplier"]


def _projected(spaces: HalfSpaces, along: float) -> Array:
    nu = spaces.project(along)
    assert nu is not None, "the half-spaces have points: they were found from the origin"
    return nu


def _length(spaces: HalfSpaces, along: float) -> float:
    return spaces.length(along, _projected(spaces, along))
