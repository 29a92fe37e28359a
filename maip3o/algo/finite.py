"""Refusal of NaN and infinity, by name."""

from __future__ import annotations

from collections.abc import Iterable
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
        if not bool(torch.isfinite(tensor).all()):
            raise NonFiniteError(name)


def clip_gradients(prefix: str, module: nn.Module, max_norm: float) -> float:
    """Scale the gradients down to max_norm at most; returns their norm before."""
    try:
        return float(nn.utils.clip_grad_norm_(module.parameters(), max_norm, error_if_nonfinite=True))
    except RuntimeError:
        named = module.named_parameters()
        require_finite((f"gradient of {prefix}.{name}", p.grad) for name, p in named if p.grad is not None)
        raise NonFiniteError(f"gradient norm of {prefix}") from None
