"""Lagrange multipliers: one per constraint, raised while it is violated."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from maip3o.algo.constraints import Constraints
from maip3o.config.algorithms import MultiplierSettings


class AdamMultiplier:
    """lambda by Adam ascent on lambda (J_C - d), kept in [0, max]. The first move is about the rate for any J_C."""

    def __init__(self, size: int, settings: MultiplierSettings) -> None:
        self.settings = settings
        self.value = torch.full((size,), settings.multiplier_start, dtype=torch.float64, requires_grad=True)
        self._adam = torch.optim.Adam([self.value], lr=settings.multiplier_lr)

    def step(self, constraints: Constraints) -> Tensor:
        """One ascent step from this iteration's costs; the new multipliers, [K] float32."""
        self.value.grad = -constraints.violation.detach().double().cpu()
        self._adam.step()
        with torch.no_grad():
            self.value.clamp_(0.0, self.settings.multiplier_max)
        return self.value.detach().to(constraints.violation)

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value.detach().clone(), "adam": self._adam.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.value.copy_(state["value"])
        self._adam.load_state_dict(state["adam"])


def mixed_advantage(advantage: Tensor, cost_advantage: Tensor, multiplier: Tensor) -> Tensor:
    """(A_R - sum_k lambda_k A_Ck) / (1 + sum_k lambda_k): it keeps its size, whatever the multipliers. [s]"""
    multiplier = multiplier.to(cost_advantage)
    return (advantage - cost_advantage @ multiplier) / (1.0 + multiplier.sum())


def logged(multiplier: Tensor, constraints: Constraints) -> dict[str, float]:
    return {f"constraint/{name}/multiplier": float(multiplier[k]) for k, name in enumerate(constraints.names)}
