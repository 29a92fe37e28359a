"""P3O (Zhang et al. 2022): an exact penalty, nothing below the limit. For a team: MAP3O.

L    = L_R + sum_k eta_k max(0, L_Ck)
L_Ck = scale E[max(r A_Ck, clip(r, 1 - eps, 1 + eps) A_Ck)] + (J_Ck - d_k)
"""

from __future__ import annotations

import torch
from torch import Tensor

from maip3o.algo.constraints import Constraints
from maip3o.algo.ppo import PPO
from maip3o.algo.steps.minibatch import run_epochs
from maip3o.algo.view import PolicyData, PolicyView, Sample


class P3O(PPO):
    def update(self, view: PolicyView, data: PolicyData) -> dict[str, float]:
        arguments: list[Tensor] = []

        def noted(sample: Sample) -> Tensor:
            arguments.append(sample.constraint_loss.detach())
            return self.loss(sample)

        metrics = run_epochs(view, noted)
        slope = self.slope(torch.stack(arguments), data.constraints).mean(0)
        names = data.constraints.names
        return metrics | {f"constraint/{name}/minibatch_slope": float(slope[k]) for k, name in enumerate(names)}

    def loss(self, sample: Sample) -> Tensor:
        penalty = self.penalty(sample.constraint_loss, sample.constraints)
        return sample.reward_loss + (sample.constraints.eta.to(penalty) * penalty).sum()

    def weights(self, constraints: Constraints) -> Tensor | None:
        return constraints.eta

    def penalty(self, x: Tensor, constraints: Constraints) -> Tensor:
        """g(L_C), [..., K] -> [..., K]"""
        return torch.relu(x)

    def slope(self, x: Tensor, constraints: Constraints) -> Tensor:
        point = x.detach().requires_grad_()
        return torch.autograd.grad(self.penalty(point, constraints).sum(), point)[0]
