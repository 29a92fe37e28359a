"""Refusal of NaN and infinity, by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class NonFiniteError(RuntimeError):
    """A tensor held NaN or infinity. The learner is as it was before the update.

    tensor: its name; iteration: of the refused update; dump: what reproduces it (learner state before, episodes).
    """

    def __init__(self, tensor: str) -> None:
        super().__init__(tensor)
        self.tensor = tensor
        self.iteration = -1
        self.dump: dict[str, Any] = {}

    def __str__(self) -> str:
        return (
            f"{self.tensor} holds NaN or infinity in iteration {self.iteration}: update refused, last good weights kept"
        )


def require_finite(named: Iterable[tuple[str, Tensor]]) -> None:
    for name, tensor in named:
        # A sum is one pass instead of four. It may overflow by itself, so only the elements can convict.
        if not math.isfinite(float(tensor.detach().sum())) and not bool(torch.isfinite(tensor).all()):
            raise NonFiniteError(name)


def clip_gradients(prefix: str, named: Sequence[tuple[str, nn.Parameter]], max_norm: float) -> float:
    """Scale the gradients down to max_norm at most; returns their norm before."""
    gradients = [p.grad for _, p in named if p.grad is not None]
    norm = float(torch.stack(torch._foreach_norm(gradients)).norm())
    if not math.isfinite(norm):
        require_finite((f"gradient of {prefix}.{name}", p.grad) for name, p in named if p.grad is not None)
        raise NonFiniteError(f"gradient norm of {prefix}")
    if norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / (norm + 1e-6))
    return norm
