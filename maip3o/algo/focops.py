"""FOCOPS (Zhang et al. 2020): first-order steps towards the optimal non-parametric policy, inside a trust region.

    L = E[(KL(pi || pi_old) - r A / temperature) 1{KL(pi || pi_old) <= radius}]

A and the multipliers as in PPO-Lagrangian (multipliers at most 2); the indicator is per state and not differentiated.
"""

from __future__ import annotations

from torch import Tensor

from maip3o.algo.ppo_lagrangian import PPOLagrangian
from maip3o.algo.steps.multiplier import mixed_advantage
from maip3o.algo.view import Sample


class FOCOPS(PPOLagrangian):
    def loss(self, sample: Sample) -> Tensor:
        advantage = mixed_advantage(sample.advantage, sample.cost_advantage, self.multiplier)
        kl = sample.kl_to(sample.before)
        near = (kl.detach() <= self.settings.radius).to(kl)
        return ((kl - sample.ratio * advantage / self.settings.temperature) * near).mean()
