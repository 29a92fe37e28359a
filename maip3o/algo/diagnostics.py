"""What is told of each constraint before the policy changes."""

from __future__ import annotations

import torch
from torch import Tensor

from maip3o.algo.algorithm import Algorithm
from maip3o.algo.losses import constraint_loss
from maip3o.algo.view import PolicyView


def constraint_diagnostics(view: PolicyView, algorithm: Algorithm) -> dict[str, float]:
    """L_C and its slope in the loss before the first step, and the cosine between the gradients of L_R and L_C.

    L_C is that of all data (every ratio is 1), the gradients are those of an eighth of it. The penalty's own gradient
    is the slope times that of L_C, so the cosine is defined even where the slope is 0.
    """
    constraints = view.data.constraints
    argument = whole_constraint_loss(view)
    slope = algorithm.slope(argument, constraints)
    sample = view.evaluate(view.part(8))

    def gradient(loss: Tensor) -> Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, view.parameters, retain_graph=True)])

    metrics: dict[str, float] = {}
    reward_gradient = gradient(sample.reward_loss)
    for k, name in enumerate(constraints.names):
        cosine = torch.nn.functional.cosine_similarity(reward_gradient, gradient(sample.constraint_loss[k]), dim=0)
        metrics[f"constraint/{name}/penalty_argument"] = float(argument[k])
        metrics[f"constraint/{name}/penalty_slope"] = float(slope[k])
        metrics[f"constraint/{name}/gradient_cosine"] = float(cosine)
    return metrics


def whole_constraint_loss(view: PolicyView) -> Tensor:
    """L_C over all data where every ratio is 1, [K]"""
    data = view.data
    return constraint_loss(data.cost_advantage.mean(0), data.constraints.scale, data.constraints.violation)
