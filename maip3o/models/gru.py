"""A GRU over packed chunks: torch's own, and on a CPU compiled functions that are several times as fast.

Weights are named and laid out as in torch.nn.GRU, gates in the order reset, update, new.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maip3o.models.compiled.gru import gru_backward, gru_forward
from maip3o.models.mlp import array, compiled_for, first_derivative_only


class PackedGRU(nn.Module):
    """One layer. F input features, H memory, S packed steps, N chunks."""

    def __init__(self, input_size: int, memory_size: int, compiled: bool = True) -> None:
        super().__init__()
        self.compiled = compiled
        self.weight_ih = nn.Parameter(torch.empty(3 * memory_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * memory_size, memory_size))
        self.bias_ih = nn.Parameter(torch.zeros(3 * memory_size))
        self.bias_hh = nn.Parameter(torch.zeros(3 * memory_size))
        for weight in (self.weight_ih, self.weight_hh):
            for gate in weight.detach().chunk(3):
                nn.init.orthogonal_(gate)

    def forward(self, features: Tensor, memory: Tensor, batch_sizes: NDArray[np.int64]) -> Tensor:
        """features [S, F] packed, memory [N, H], batch_sizes: chunks that reach step j. Returns memories [S, H]."""
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if compiled_for(features, self.compiled):
            return _PackedGRU.apply(features, memory, batch_sizes, *weights)
        steps = torch.as_tensor(batch_sizes)
        return torch.gru(features, steps, memory[None], weights, True, 1, 0.0, self.training, False)[0]


class _PackedGRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, memory: Tensor, batch_sizes: np.ndarray, *weights: Tensor) -> Tensor:
        rows, size = len(features), memory.shape[1]
        gates, recurrent, after = (features.new_empty(rows, n * size) for n in (3, 1, 1))
        inputs = [array(tensor) for tensor in (features, memory)]
        outputs = [array(tensor) for tensor in (gates, recurrent, after)]
        gru_forward(*inputs, batch_sizes, *(array(weight) for weight in weights), *outputs)
        ctx.save_for_backward(features, memory, *weights[:2], gates, recurrent, after)
        ctx.batch_sizes = batch_sizes
        return after

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        features, memory, weight_ih, weight_hh, *saved = ctx.saved_tensors
        d_features = torch.empty_like(features)
        d_weights = [torch.zeros_like(weight) for weight in (weight_ih, weight_hh, weight_ih[:, 0], weight_hh[:, 0])]
        inputs = [array(tensor) for tensor in (weight_ih, weight_hh, *saved, gradient)]
        outputs = [array(tensor) for tensor in (d_features, *d_weights)]
        gru_backward(array(features), array(memory), ctx.batch_sizes, *inputs, *outputs)
        return d_features, None, None, *d_weights
