"""A GRU over packed chunks with its backward pass written out: on a CPU about twice as fast as torch's packed GRU.

torch.nn.GRU differentiates every gate of every step by itself. Here each step is a few products and passes over rows
that stay in a core's cache, forward and backward.
Weights are named and laid out as in torch.nn.GRU, gates in the order reset, update, new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from maip3o.models.mlp import tanh_


class PackedGRU(nn.Module):
    """One layer. F input features, H memory, S packed steps, N chunks."""

    def __init__(self, input_size: int, memory_size: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(3 * memory_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * memory_size, memory_size))
        self.bias_ih = nn.Parameter(torch.zeros(3 * memory_size))
        self.bias_hh = nn.Parameter(torch.zeros(3 * memory_size))
        for weight in (self.weight_ih, self.weight_hh):
            for gate in weight.detach().chunk(3):
                nn.init.orthogonal_(gate)

    def forward(self, features: Tensor, memory: Tensor, batch_sizes: Sequence[int]) -> Tensor:
        """features [S, F] packed, memory [N, H], batch_sizes: chunks that reach step j. Returns memories [S, H]."""
        return _PackedGRU.apply(
            features, memory, batch_sizes, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )


class _PackedGRU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        memory: Tensor,
        batch_sizes: Sequence[int],
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
    ) -> Tensor:
        size = memory.shape[1]
        bias = torch.cat((bias_ih[: 2 * size] + bias_hh[: 2 * size], bias_ih[2 * size :]))
        gates = features.new_empty(len(features), 3 * size)  # becomes reset, update, new
        recurrent_new = gates.new_empty(len(features), size)  # W_hn h + b_hn
        before = gates.new_empty(len(features), size)  # the memory before each step
        after = gates.new_empty(len(features), size)
        weight_gates, weight_new, bias_new = weight_hh[: 2 * size].T, weight_hh[2 * size :].T, bias_hh[2 * size :]
        h, start = memory, 0
        for count in batch_sizes:
            rows = slice(start, start + count)
            h = before[rows].copy_(h[:count])
            torch.addmm(bias, features[rows], weight_ih.T, out=gates[rows])
            reset_update, new = gates[rows, : 2 * size], gates[rows, 2 * size :]
            reset_update.addmm_(h, weight_gates).sigmoid_()
            reset, update = reset_update[:, :size], reset_update[:, size:]
            torch.addmm(bias_new, h, weight_new, out=recurrent_new[rows])
            tanh_(new.addcmul_(reset, recurrent_new[rows]))
            h = torch.lerp(new, h, update, out=after[rows])
            start += count
        ctx.save_for_backward(features, weight_ih, weight_hh, gates, recurrent_new, before)
        ctx.batch_sizes = batch_sizes
        return after

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        features, weight_ih, weight_hh, gates, recurrent_new, before = ctx.saved_tensors
        size = before.shape[1]
        sigmoid_backward, tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
        d_features = torch.empty_like(features)
        d_weight_ih, d_weight_hh = torch.zeros_like(weight_ih), torch.zeros_like(weight_hh)
        d_bias_ih, d_bias_hh = gradient.new_zeros(2, 3 * size)
        d_memory = gradient.new_zeros(0, size)
        stop = len(features)
        for count in reversed(ctx.batch_sizes):
            rows = slice(stop - count, stop)
            reset, update, new = gates[rows].split(size, 1)
            d_gates = torch.empty_like(gates[rows])  # of W_hh h + b_hh first, then of W_ih x + b_ih
            d_reset_input, d_update_input, d_last = d_gates.split(size, 1)
            d_after = gradient[rows].clone()
            d_after[: len(d_memory)] += d_memory
            d_kept = d_after * update
            d_new = tanh_backward(d_after - d_kept, new)
            sigmoid_backward.grad_input((before[rows] - new).mul_(d_after), update, grad_input=d_update_input)
            sigmoid_backward.grad_input(d_new * recurrent_new[rows], reset, grad_input=d_reset_input)
            torch.mul(d_new, reset, out=d_last)
            d_memory = d_kept.addmm_(d_gates, weight_hh)
            d_weight_hh.addmm_(d_gates.T, before[rows])
            d_bias_hh += d_gates.sum(0)
            d_last.copy_(d_new)  # the reset gate scales the memory's part only
            torch.mm(d_gates, weight_ih, out=d_features[rows])
            d_weight_ih.addmm_(d_gates.T, features[rows])
            d_bias_ih += d_gates.sum(0)
            stop -= count
        return d_features, None, None, d_weight_ih, d_weight_hh, d_bias_ih, d_bias_hh
