"""IP3O: an incentive below the limit that turns into P3O's penalty above it. For a team: MAIP3O.

    L           = L_R + sum_k eta_k CELU_alpha(L_Ck)                                (Equation 6)
    CELU_a(x)   = x if x >= 0, else a (exp(x / a) - 1)

With a floor h the penalty stops at -alpha (1 - h), and with it the residual gradient (Theorem 2).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from maip3o.algo.constraints import Constraints
from maip3o.algo.p3o import P3O


class IP3O(P3O):
    def penalty(self, x: Tensor, constraints: Constraints) -> Tensor:
        alpha, floor = constraints.alpha.to(x), self.algo.penalty.floor_h
        celu = torch.relu(x) + alpha * torch.expm1(x.clamp(max=0.0) / alpha)
        return celu if floor is None else torch.maximum(celu, -alpha * (1.0 - floor))

    def residual(self, x: Tensor, constraints: Constraints) -> Tensor:
        """Without a floor the updates never stop: h is the slope reached, exp(x / alpha), so |alpha log h| = -x."""
        floor = self.algo.penalty.floor_h
        return (-x).clamp(min=0.0) if floor is None else constraints.alpha.to(x) * abs(math.log(floor))
