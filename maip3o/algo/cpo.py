"""CPO (Achiam et al. 2017): the best step inside a KL ball that keeps the linearised constraints.

    max_x g.x   subject to   c_k + b_k.x <= 0,   x'Hx / 2 <= delta,      c = J_C - d

Its dual is min_{nu >= 0} sqrt(2 delta s(nu)) - c.nu with s(nu) = (g - B nu)' H^-1 (g - B nu): convex, of size K. The
step is x = sqrt(2 delta / s(nu)) H^-1 (g - B nu). Where no x is feasible, a recovery step lowers the violated costs
alone. Then a line search on gain, cost and KL.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from maip3o.algo.algorithm import Algorithm
from maip3o.algo.constraints import Constraints
from maip3o.algo.steps.trust_region import Quadratic, line_search, quadratic
from maip3o.algo.view import PolicyData, PolicyView

SMALL = 1e-8


class CPO(Algorithm):
    def update(self, view: PolicyView, data: PolicyData) -> dict[str, float]:
        problem, violation = quadratic(view, self.settings), data.constraints.violation.cpu()
        step, case, nu = self.step(problem, violation)
        tries = 0
        if bool(torch.isfinite(step).all()) and float(step.abs().max()) > 0:
            tries = line_search(view, step, lambda change, kl: self.accept(change, kl, violation, case), self.settings)
        self.nu = nu
        return {
            "policy/epochs": float(tries > 0),
            "policy/steps": float(tries > 0),
            "policy/line_search": float(tries),
            "policy/case": float(case),
            "policy/rejected": float(tries == 0),
            **{f"constraint/{name}/multiplier": float(nu[k]) for k, name in enumerate(data.constraints.names)},
        }

    def step(self, problem: Quadratic, violation: Tensor) -> tuple[Tensor, int, Tensor]:
        """(x, case, nu). Cases: 0 recovery, 1 on a constraint, 2 the constraints do not matter."""
        delta = self.settings.delta
        q, r, s = (part.double().numpy() for part in (problem.q, problem.r, problem.s))
        c = violation.double().numpy()
        nu = solve_dual(float(q), r, s, c, delta)
        if nu is None:
            weight = torch.as_tensor(np.maximum(c, 0.0), dtype=problem.gain.dtype)
            size = float(weight @ problem.s @ weight)
            direction = weight @ problem.natural_cost
            return -math.sqrt(2.0 * delta / max(size, SMALL)) * direction, 0, torch.zeros_like(violation)
        multiplier = torch.as_tensor(nu, dtype=problem.gain.dtype)
        size = float(q - 2.0 * r @ nu + nu @ s @ nu)
        direction = problem.natural_gain - multiplier @ problem.natural_cost
        if size <= SMALL:  # nothing to gain: g is zero, or lies in the span of the constraints
            return torch.zeros_like(direction), 2, multiplier
        return math.sqrt(2.0 * delta / size) * direction, 1 if nu.max(initial=0.0) > 0 else 2, multiplier

    def accept(self, change: Tensor, kl: float, violation: Tensor, case: int) -> bool:
        """The gain does not fall (unless recovering), no cost rises beyond its limit, the KL is that of the ball."""
        gain_holds = case == 0 or float(change[0]) >= 0.0
        cost_holds = bool((change[1:] <= torch.clamp(-violation, min=0.0) + SMALL).all())
        return gain_holds and cost_holds and kl <= 1.5 * self.settings.delta

    def slope(self, x: Tensor, constraints: Constraints) -> Tensor:
        return getattr(self, "nu", torch.zeros(self.size)).to(x).expand_as(x)


def solve_dual(q: float, r: np.ndarray, s: np.ndarray, c: np.ndarray, delta: float) -> np.ndarray | None:
    """nu [K] >= 0, or None if no step inside the ball meets all constraints. r [K], s [K, K], c [K]."""
    if len(c) == 0:
        return np.zeros(0)
    if len(c) == 1:
        return _solve_one(q, float(r[0]), float(s[0, 0]), float(c[0]), delta)

    def dual(nu: np.ndarray) -> tuple[float, np.ndarray]:
        size = max(q - 2.0 * r @ nu + nu @ s @ nu, 1e-30)
        root = math.sqrt(2.0 * delta * size)
        return root - c @ nu, 2.0 * delta * (s @ nu - r) / root - c

    found = minimize(dual, np.zeros(len(c)), jac=True, bounds=[(0.0, 1e8)] * len(c), method="L-BFGS-B")
    nu = found.x
    size = max(q - 2.0 * r @ nu + nu @ s @ nu, 1e-30)
    left = c + math.sqrt(2.0 * delta / size) * (r - s @ nu)
    return nu if left.max() <= 1e-4 * (1.0 + np.abs(c).max()) else None


def _solve_one(q: float, r: float, s: float, c: float, delta: float) -> np.ndarray | None:
    """In closed form: where c < 0, the ball may lie inside the constraint; where c > 0, outside."""
    if s < SMALL:  # no step changes this cost
        return np.zeros(1) if c <= 0 else None
    room = 2.0 * delta - c * c / s
    if room <= 0.0:
        return np.zeros(1) if c < 0 else None
    across = max(q - r * r / s, 0.0)
    return np.array([max(0.0, (r + c * math.sqrt(across / room)) / s)])
