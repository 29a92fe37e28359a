"""IPO (Liu et al. 2020): a log barrier before the limit.

    L = L_R + sum_k eta_k g(L_Ck),   g(x) = -alpha log(-x) for x <= -alpha

Its t is 1 / (eta alpha). The barrier is infinite at the limit, so a policy that starts in violation could never enter:
for x > -alpha it goes on as its tangent, of slope 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from maip3o.algo.constraints import Constraints
from maip3o.algo.p3o import P3O


class IPO(P3O):
    def penalty(self, x: Tensor, constraints: Constraints) -> Tensor:
        alpha = constraints.alpha.to(x)
        inside = -alpha * torch.log(-torch.minimum(x, -alpha))
        return torch.where(x <= -alpha, inside, x + alpha - alpha * torch.log(alpha))

    def residual(self, x: Tensor, constraints: Constraints) -> Tensor:
        """Times eta this is 1 / t, the gap that a log barrier leaves for each constraint."""
        return constraints.alpha.to(x)
