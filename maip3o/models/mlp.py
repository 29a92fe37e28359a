"""Plain feed-forward layers, initialised orthogonally: torch's own, and compiled functions on a CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maip3o.models.compiled.layers import dense_backward, dense_forward

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


_this_thread = threading.local()  # policy and critics learn in two threads


@contextmanager
def torch_path() -> Iterator[None]:
    """Inside, networks run by torch alone: what they compute can be differentiated twice."""
    before = getattr(_this_thread, "torch_only", False)
    _this_thread.torch_only = True
    try:
        yield
    finally:
        _this_thread.torch_only = before


def compiled_for(tensor: Tensor, wanted: bool) -> bool:
    """Whether the compiled functions take this tensor. wanted: of a network with model.compiled=auto."""
    if not wanted or getattr(_this_thread, "torch_only", False):
        return False
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32


def first_derivative_only(backward: Callable[..., Any]) -> Callable[..., Any]:
    """For compiled functions: raise where a second derivative is prepared (create_graph=True).

    torch's once_differentiable raises only in .backward(); torch.autograd.grad would leave the gradient out in silence.
    """

    def checked(ctx: Any, *gradients: Tensor) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError("compiled layers have no second derivative: evaluate inside torch_path()")
        return backward(ctx, *gradients)

    return checked


def array(tensor: Tensor) -> NDArray[np.float32]:
    """The tensor's own memory, row after row (a copy if it lies otherwise)."""
    return tensor.detach().contiguous().numpy()


def arrays(tensors: Sequence[Tensor]) -> tuple[NDArray[np.float32], ...]:
    return tuple(array(tensor) for tensor in tensors)


class MLP(nn.Sequential):
    """Linear and activation, once per hidden size. [S, inputs] -> [S, hidden_sizes[-1]]"""

    def __init__(self, inputs: int, hidden_sizes: Sequence[int], activation: str, compiled: bool = True) -> None:
        layers: list[nn.Module] = []
        for size in hidden_sizes:
            layers += [linear(inputs, size, nn.init.calculate_gain(activation)), ACTIVATIONS[activation]()]  # type: ignore[arg-type]
            inputs = size
        super().__init__(*layers)
        self.activation, self.compiled = activation, compiled

    def forward(self, inputs: Tensor, head: nn.Linear | None = None) -> Tensor:
        """With a head: a last layer without activation."""
        layers = [layer for layer in self if isinstance(layer, nn.Linear)] + ([head] if head is not None else [])
        if compiled_for(inputs, self.compiled):
            return dense(inputs, layers, self.activation == "relu", head is not None)
        outputs = super().forward(inputs)
        return outputs if head is None else head(outputs)


def dense(inputs: Tensor, layers: Sequence[nn.Linear], relu: bool, head: bool) -> Tensor:
    """Compiled layers, each with its activation (tanh unless relu), the last one without if it is a head."""
    parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
    if inputs.dim() == 2:
        return _Dense.apply(inputs, relu, head, *parameters)
    return _Dense.apply(inputs.flatten(0, -2), relu, head, *parameters).unflatten(0, inputs.shape[:-1])


class _Dense(torch.autograd.Function):
    """parameters: weight and bias of each layer."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, relu: bool, head: bool, *parameters: Tensor) -> Tensor:
        weights, biases = parameters[::2], parameters[1::2]
        outputs = [inputs.new_empty(len(inputs), len(bias)) for bias in biases]
        dense_forward(array(inputs), arrays(weights), arrays(biases), arrays(outputs), relu, head)
        ctx.save_for_backward(inputs, *weights, *outputs)
        ctx.kind = relu, head
        return outputs[-1]

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, *saved = ctx.saved_tensors
        weights, outputs = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        d_weights = [torch.zeros_like(weight) for weight in weights]
        d_biases = [weight.new_zeros(len(weight)) for weight in weights]
        d_inputs = torch.empty_like(inputs[: len(inputs) if ctx.needs_input_grad[0] else 0])
        relu, head = ctx.kind
        given = array(inputs), arrays(weights), arrays(outputs), array(gradient)
        dense_backward(*given, relu, head, array(d_inputs), arrays(d_weights), arrays(d_biases))
        d_parameters = [d for pair in zip(d_weights, d_biases, strict=True) for d in pair]
        return d_inputs if ctx.needs_input_grad[0] else None, None, None, *d_parameters
