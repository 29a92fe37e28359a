"""Plain feed-forward layers, initialised orthogonally, with a backward pass written out for speed.

Rows go through all layers in blocks that stay in a core's cache, forward and backward, instead of layer after layer
over all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}
BLOCK_ROWS = 1024


def linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    # QR in double precision on the CPU: the same seed gives the same weights on every machine that agrees on LAPACK.
    weight = torch.empty(outputs, inputs, dtype=torch.float64)
    nn.init.orthogonal_(weight, gain)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.zero_()
    return layer


def tanh_(x: Tensor) -> Tensor:
    """tanh in place. By the sigmoid, which torch computes four times as fast on a CPU, to a few 1e-7."""
    return x.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


class MLP(nn.Sequential):
    """Linear and activation, once per hidden size. [S, inputs] -> [S, hidden_sizes[-1]]"""

    def __init__(self, inputs: int, hidden_sizes: Sequence[int], activation: str) -> None:
        layers: list[nn.Module] = []
        for size in hidden_sizes:
            layers += [linear(inputs, size, nn.init.calculate_gain(activation)), ACTIVATIONS[activation]()]  # type: ignore[arg-type]
            inputs = size
        super().__init__(*layers)
        self.activation = activation

    def forward(self, inputs: Tensor) -> Tensor:
        parameters = [p for layer in self for p in layer.parameters()]
        outputs = _BlockedMLP.apply(inputs.flatten(0, -2), self.activation, *parameters)
        return outputs.unflatten(0, inputs.shape[:-1])


class _BlockedMLP(torch.autograd.Function):
    """parameters: weight and bias of each layer."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, activation: str, *parameters: Tensor) -> Tensor:
        weights, biases = parameters[::2], parameters[1::2]
        activate = tanh_ if activation == "tanh" else torch.relu_
        outputs = [inputs.new_empty(len(inputs), len(bias)) for bias in biases]
        for block in _blocks(len(inputs)):
            x = inputs[block]
            for weight, bias, output in zip(weights, biases, outputs, strict=True):
                x = activate(torch.addmm(bias, x, weight.T, out=output[block]))
        ctx.save_for_backward(inputs, *weights, *outputs)
        ctx.activation = activation
        return outputs[-1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, *saved = ctx.saved_tensors
        weights, outputs = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        d_weights = [torch.zeros_like(weight) for weight in weights]
        d_biases = [torch.zeros_like(weight[:, 0]) for weight in weights]
        d_inputs = torch.empty_like(inputs) if ctx.needs_input_grad[0] else None
        for block in _blocks(len(inputs)):
            d = gradient[block]
            for layer in reversed(range(len(weights))):
                d = _through_activation(ctx.activation, d, outputs[layer][block])
                x = outputs[layer - 1][block] if layer else inputs[block]
                d_weights[layer].addmm_(d.T, x)
                d_biases[layer] += d.sum(0)
                if layer:
                    d = d @ weights[layer]
                elif d_inputs is not None:
                    torch.mm(d, weights[0], out=d_inputs[block])
        d_parameters = [d for pair in zip(d_weights, d_biases, strict=True) for d in pair]
        return d_inputs, None, *d_parameters


def _blocks(rows: int) -> list[slice]:
    return [slice(start, start + BLOCK_ROWS) for start in range(0, rows, BLOCK_ROWS)]


def _through_activation(activation: str, gradient: Tensor, output: Tensor) -> Tensor:
    if activation == "tanh":
        return torch.ops.aten.tanh_backward(gradient, output)
    return torch.ops.aten.threshold_backward(gradient, output, 0)
