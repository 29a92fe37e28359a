"""g(L_C): how a constraint enters the policy's loss. The only place where MAIP3O, MAP3O and MAPPO differ.

Every penalty maps the arguments x = L_C of all constraints, [..., K], to penalties, one by one. x >= 0 means violated.
The slope of celu, relu and log_barrier is 1 when violated, so that eta means the same for all three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from maip3o.config.schema import PenaltyConfig
from maip3o.errors import UserError

Penalty = Callable[[Tensor, PenaltyConfig, Tensor], Tensor]
"""(x [..., K], settings, multiplier [K]) -> [..., K]. Only `lagrangian` reads the multiplier, the learner sets it."""


def celu(x: Tensor, settings: PenaltyConfig, multiplier: Tensor) -> Tensor:
    """MAIP3O: x if x >= 0, else alpha (exp(x / alpha) - 1): an incentive that fades below the limit.

    With a floor h the penalty stops at -alpha (1 - h), and with it the residual gradient (Theorem 2).
    """
    penalty = torch.nn.functional.celu(x, settings.alpha)
    if settings.floor_h is None:
        return penalty
    return penalty.clamp(min=-settings.alpha * (1.0 - settings.floor_h))


def relu(x: Tensor, settings: PenaltyConfig, multiplier: Tensor) -> Tensor:
    """MAP3O: P3O's exact penalty. Nothing below the limit."""
    return torch.relu(x)


def none(x: Tensor, settings: PenaltyConfig, multiplier: Tensor) -> Tensor:
    """MAPPO: the constraint is logged and never enters the loss."""
    return torch.zeros_like(x)


def log_barrier(x: Tensor, settings: PenaltyConfig, multiplier: Tensor) -> Tensor:
    """IPO's barrier -alpha log(-x), continued for x > -alpha by its tangent of slope 1.

    The barrier itself is infinite at the limit, so a policy that starts in violation could never enter. (IPO's t is
    1 / (eta alpha).)
    """
    alpha = settings.alpha
    inside = -alpha * torch.log(-x.clamp(max=-alpha))
    tangent = x + alpha - alpha * torch.log(torch.as_tensor(alpha, dtype=x.dtype, device=x.device))
    return torch.where(x <= -alpha, inside, tangent)


def lagrangian(x: Tensor, settings: PenaltyConfig, multiplier: Tensor) -> Tensor:
    """PPO-Lagrangian: lambda x, with lambda raised while the constraint is violated and lowered while it is met."""
    return multiplier * x


PENALTIES: dict[str, Penalty] = {
    "celu": celu,
    "relu": relu,
    "none": none,
    "log_barrier": log_barrier,
    "lagrangian": lagrangian,
}


def at_progress(settings: PenaltyConfig, progress: float) -> PenaltyConfig:
    """The settings with the eta of this point of the training, progress in [0, 1]."""
    if settings.eta_start is None:
        return settings
    return replace(settings, eta=settings.eta_start + progress * (settings.eta - settings.eta_start))


def by_odds(settings: PenaltyConfig, competence: float) -> PenaltyConfig:
    """The settings with an eta that follows what the policy can do: the odds of arriving, at most the configured eta.

    A policy that cannot drive yet has no weight on its constraints and learns as MAPPO does, so no penalty can freeze
    it. Theorem 1 asks for eta >= lambda* at the end only: there the odds have grown, or eta bounds them.
    """
    odds = competence / (1.0 - competence) if competence < 1.0 else settings.eta
    return replace(settings, eta=min(odds, settings.eta))


def get_penalty(name: str) -> Penalty:
    if name not in PENALTIES:
        raise UserError(f"algo.penalty.name={name}: unknown penalty; choose one of {', '.join(PENALTIES)}")
    return PENALTIES[name]


def penalty_slope(penalty: Penalty, x: Tensor, settings: PenaltyConfig, multiplier: Tensor) -> Tensor:
    """dg/dx at x, [..., K]: how hard each constraint pushes now."""
    point = x.detach().requires_grad_()
    value = penalty(point, settings, multiplier)
    if not value.requires_grad:
        return torch.zeros_like(point)
    return torch.autograd.grad(value.sum(), point)[0]
