"""PPO-Lagrangian (Ray et al. 2019): PPO on a mixed advantage, with multipliers that follow the violation.

lambda <- Adam ascent on lambda (J_C - d), lambda >= 0
A = (A_R - sum_k lambda_k A_Ck) / (1 + sum_k lambda_k),   L = -E[min(r A, clip(r) A)]
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from maip3o.algo.algorithm import Algorithm
from maip3o.algo.constraints import Constraints
from maip3o.algo.losses import reward_loss
from maip3o.algo.steps.minibatch import run_epochs
from maip3o.algo.steps.multiplier import AdamMultiplier, logged, mixed_advantage
from maip3o.algo.view import PolicyData, PolicyView, Sample
from maip3o.config.schema import AlgoConfig


class PPOLagrangian(Algorithm):
    def __init__(self, algo: AlgoConfig, constraints: int, settings: Any = None) -> None:
        super().__init__(algo, constraints, settings)
        self.rule = self.make_rule()
        self.multiplier = torch.zeros(constraints)  # [K] of the last update

    def make_rule(self) -> Any:
        """What turns costs into multipliers."""
        return AdamMultiplier(self.size, self.settings)

    def update(self, view: PolicyView, data: PolicyData) -> dict[str, float]:
        self.multiplier = self.rule.step(data.constraints)
        return run_epochs(view, self.loss) | logged(self.multiplier, data.constraints)

    def loss(self, sample: Sample) -> Tensor:
        advantage = mixed_advantage(sample.advantage, sample.cost_advantage, self.multiplier)
        return reward_loss(sample.ratio, advantage, self.algo.clip)

    def slope(self, x: Tensor, constraints: Constraints) -> Tensor:
        return self.multiplier.to(x).expand_as(x)

    def state_dict(self) -> dict[str, Any]:
        return {"multiplier": self.multiplier, "rule": self.rule.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state:
            self.multiplier = state["multiplier"]
            self.rule.load_state_dict(state["rule"])
