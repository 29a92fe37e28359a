"""Plain feed-forward layers, initialised orthogonally."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    # QR in double precision on the CPU: the same seed gives the same weights on every machine that agrees on LAPACK.
    weight = torch.empty(outputs, inputs, dtype=torch.float64)
    nn.init.orthogonal_(weight, gain)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.zero_()
    return layer


def mlp(inputs: int, hidden_sizes: Sequence[int], activation: str) -> nn.Sequential:
    """Linear and activation, once per hidden size. [..., inputs] -> [..., hidden_sizes[-1]]"""
    layers: list[nn.Module] = []
    for size in hidden_sizes:
        layers += [linear(inputs, size, nn.init.calculate_gain(activation)), ACTIVATIONS[activation]()]  # type: ignore[arg-type]
        inputs = size
    return nn.Sequential(*layers)
