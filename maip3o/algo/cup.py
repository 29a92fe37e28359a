"""CUP (Yang et al. 2022): first improve the reward, then project back to the constraints.

    1. PPO passes on A_R give pi_1.
    2. Fresh passes minimise E[KL(pi || pi_1) + sum_k lambda_k (1 - gamma lam) / (1 - gamma) r A_Ck],

with r still against the policy that sampled, and multipliers as in PPO-Lagrangian (at most 2).
"""

from __future__ import annotations

import torch
from torch import Tensor

from maip3o.algo.ppo_lagrangian import PPOLagrangian
from maip3o.algo.steps.minibatch import run_epochs
from maip3o.algo.steps.multiplier import logged
from maip3o.algo.view import PolicyData, PolicyView, Replay, Sample


class CUP(PPOLagrangian):
    def update(self, view: PolicyView, data: PolicyData) -> dict[str, float]:
        self.multiplier = self.rule.step(data.constraints)
        _forget_momentum(view.optimiser)
        metrics = run_epochs(view, lambda sample: sample.reward_loss)
        _forget_momentum(view.optimiser)
        improved = view.replay()
        second = run_epochs(view, lambda sample: self.projection(sample, improved), reference=improved)
        metrics["policy/projection_steps"] = second["policy/steps"]
        metrics["policy/projection_kl"] = view.mean_kl(improved)
        return metrics | logged(self.multiplier, data.constraints)

    def projection(self, sample: Sample, improved: Replay) -> Tensor:
        """The loss of the second phase; improved: pi_1."""
        algo = self.algo
        weight = self.multiplier * (1.0 - algo.cost_gamma * algo.cost_gae_lambda) / (1.0 - algo.cost_gamma)
        cost = sample.ratio * (sample.cost_advantage @ weight.to(sample.cost_advantage))
        return (sample.kl_to(improved) + cost).mean()


def _forget_momentum(optimiser: torch.optim.Optimizer) -> None:
    """The two phases pull in opposite directions: ten steps of Adam would still go the way of the other one."""
    for state in optimiser.state.values():
        state["exp_avg"].zero_()
