"""The paper's losses, by its names, as pure functions over the active steps of a minibatch ([s]).

L    = L_R + eta sum_k g(L_Ck)                                                  (Equation 6)
L_R  = -E[min(r A_R, clip(r, 1 - eps, 1 + eps) A_R)]
L_Ck = scale E[max(r A_Ck, clip(r, 1 - eps, 1 + eps) A_Ck)] + (J_Ck - d_k)
"""

from __future__ import annotations

import torch
from torch import Tensor


def reward_loss(ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """L_R: PPO's pessimistic surrogate. ratio [s], advantage [s] -> scalar.

    The paper writes min(r, clip(r)) A, which for A < 0 is optimistic and lets r fall without limit; its cited PPO, and
    the released code, take the minimum of the products. So do we.
    """
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -torch.minimum(ratio * advantage, clipped * advantage).mean()


def cost_surrogate(ratio: Tensor, advantage: Tensor, clip: float | None) -> Tensor:
    """E[max(r A_C, clip(r) A_C)], pessimistic in the other direction. ratio [s], advantage [s, K] -> [K].

    clip=None leaves the ratio unclipped, as the released code does.
    """
    plain = ratio.unsqueeze(-1) * advantage
    if clip is None:
        return plain.mean(0)
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip).unsqueeze(-1) * advantage
    return torch.maximum(plain, clipped).mean(0)


def constraint_loss(surrogate: Tensor, scale: float, violation: Tensor) -> Tensor:
    """L_C, the penalty's argument. surrogate [K], violation = J_C - d [K] -> [K]"""
    return scale * surrogate + violation


def huber(error: Tensor, delta: float) -> Tensor:
    """Quadratic where |error| <= delta, linear beyond. [n] -> scalar"""
    return torch.nn.functional.huber_loss(error, torch.zeros_like(error), delta=delta)


def scale_advantage(advantage: Tensor, mode: str) -> Tensor:
    """raw, centred (mean 0) or standardised (mean 0, std 1) over the active steps. [S], or [S, K] by column."""
    if mode == "raw":
        return advantage
    centred = advantage - advantage.mean(0)
    return centred if mode == "centred" else centred / (centred.square().mean(0).sqrt() + 1e-8)


def explained_variance(value: Tensor, target: Tensor) -> float:
    """1 - Var(target - value) / Var(target): 1 is perfect, 0 a constant, NaN if the target does not vary."""
    variance = target.double().var(unbiased=False)
    if variance == 0:
        return float("nan")
    return float(1.0 - (target.double() - value.double()).var(unbiased=False) / variance)
