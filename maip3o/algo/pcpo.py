"""PCPO (Yang et al. 2020): a trust-region step for the reward, then a projection to the constraints in the KL metric.

y = sqrt(2 delta / q) H^-1 g
x = argmin (x - y)' H (x - y)   subject to   c_k + b_k.x <= 0:   x = y - H^-1 B nu,   nu >= 0 of size K
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from maip3o.algo.cpo import CPO, SMALL
from maip3o.algo.steps.trust_region import Quadratic


class PCPO(CPO):
    def step(self, problem: Quadratic, violation: Tensor) -> tuple[Tensor, int, Tensor]:
        size = float(problem.q)
        scale = math.sqrt(2.0 * self.settings.delta / size) if size > SMALL else 0.0
        beyond = violation + scale * problem.r.to(violation)  # how far y is outside each constraint
        multiplier = torch.as_tensor(
            project(problem.s.double().numpy(), beyond.double().numpy()), dtype=problem.gain.dtype
        )
        step = scale * problem.natural_gain - multiplier @ problem.natural_cost
        return step, 1 if float(multiplier.sum()) > 0 else 2, multiplier

    def accept(self, change: Tensor, kl: float, violation: Tensor, case: int) -> bool:
        """The projection may cost reward and leave the ball: the KL alone is held."""
        return kl <= 1.5 * self.settings.delta


def project(s: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """nu >= 0 that minimises nu' S nu / 2 - beyond.nu, [K]"""
    if len(beyond) == 0:
        return np.zeros(0)
    root = np.linalg.cholesky(s + 1e-10 * max(float(np.trace(s)), 1e-10) * np.eye(len(s)))
    return np.asarray(nnls(root.T, np.linalg.solve(root, beyond))[0])
