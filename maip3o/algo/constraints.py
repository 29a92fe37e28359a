"""What an algorithm knows of its constraints in one iteration: one typed value, from the estimator to the loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maip3o.config.schema import PenaltyConfig


@dataclass(slots=True)
class Constraints:
    """K constraints, in the order of config.constraints. Tensors [K] in double precision on the CPU."""

    names: tuple[str, ...]
    limit: Tensor  # d
    cost: Tensor  # J_C of the policy that sampled
    alpha: Tensor  # of IP3O and IPO
    eta: Tensor  # weight of a penalty, as it is in this iteration
    scale: float  # of the cost surrogate, so that it has the unit of the limit
    device: torch.device | str = "cpu"  # of the losses

    @property
    def violation(self) -> Tensor:
        """J_C - d, [K] float32 for the losses; above 0: violated."""
        return (self.cost - self.limit).float().to(self.device)


def penalty_weight(settings: PenaltyConfig, eta: float, progress: float, competence: float) -> float:
    """The weight of a penalty in this iteration. eta: what it may become at most; progress, competence: in [0, 1].

    growth=odds follows what the policy can do: the odds of reaching the goal. A policy that cannot drive yet has no
    weight on its constraints and learns as PPO does, so no penalty can freeze it. Theorem 1 asks for eta >= lambda* at
    the end only: there the odds have grown, or eta bounds them.
    """
    if settings.growth == "odds":
        return min(competence / (1.0 - competence), eta) if competence < 1.0 else eta
    if settings.eta_start is None:
        return eta
    return settings.eta_start + progress * (eta - settings.eta_start)
