"""PPO (Schulman et al. 2017), and MAPPO with a critic for the team: the reward alone.

L = L_R = -E[min(r A_R, clip(r, 1 - eps, 1 + eps) A_R)]
"""

from __future__ import annotations

import torch
from torch import Tensor

from maip3o.algo.algorithm import Algorithm
from maip3o.algo.constraints import Constraints
from maip3o.algo.steps.minibatch import run_epochs
from maip3o.algo.view import PolicyData, PolicyView, Sample


class PPO(Algorithm):
    def update(self, view: PolicyView, data: PolicyData) -> dict[str, float]:
        return run_epochs(view, self.loss)

    def weights(self, constraints: Constraints) -> Tensor | None:
        return torch.zeros_like(constraints.limit)

    def loss(self, sample: Sample) -> Tensor:
        return sample.reward_loss
