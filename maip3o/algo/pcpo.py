"""PCPO (Yang et al. 2020): a trust-region step for the reward, then a projection to the constraints in the KL metric.

    y = sqrt(2 delta / q) H^-1 g
    x = argmin (x - y)' H (x - y)   subject to   c_k + b_k.x <= 0

Where the limits are violated x may be longer than the ball: then it is cut to its length.
"""

from __future__ import annotations

from torch import Tensor

from maip3o.algo.cpo import CPO, FREE, ON_LIMIT, RECOVERY, Plan
from maip3o.algo.steps.half_spaces import HalfSpaces


class PCPO(CPO):
    def plan(self, spaces: HalfSpaces) -> Plan:
        nu = spaces.project(1.0)
        if nu is None:
            return Plan(0.0, spaces.recovery(), RECOVERY)
        shorter = 1.0 / max(spaces.length(1.0, nu), 1.0)
        return Plan(shorter, shorter * nu, ON_LIMIT if nu.any() else FREE)

    def accept(self, change: Tensor, kl: float, violation: Tensor, case: int) -> bool:
        """As CPO, but the projection may cost reward."""
        return super().accept(change, kl, violation, RECOVERY)
