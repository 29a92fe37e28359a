"""A GRU over packed chunks with its backward pass written out: on a CPU about twice as fast as torch's packed GRU.

torch.nn.GRU differentiates every gate of every step by itself. Here the loop over steps holds only the recurrent
product and the gates, written into buffers for all steps; each weight's gradient is one product over all steps.
Weights are named and laid out as in torch.nn.GRU, gates in the order reset, update, new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


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
        gates = torch.addmm(bias, features, weight_ih.T)  # [S, 3H], becomes reset, update, new
        recurrent_new = gates.new_empty(len(features), size)  # W_hn h + b_hn
        before = gates.new_empty(len(features), size)  # the memory before each step
        after = gates.new_empty(len(features), size)
        weight_gates, weight_new, bias_new = weight_hh[: 2 * size].T, weight_hh[2 * size :].T, bias_hh[2 * size :]
        h, start = memory, 0
        for count in batch_sizes:
            rows = slice(start, start + count)
            h = before[rows].copy_(h[:count])
            reset_update, new = gates[rows, : 2 * size], gates[rows, 2 * size :]
            reset_update.addmm_(h, weight_gates).sigmoid_()
            reset, update = reset_update[:, :size], reset_update[:, size:]
            torch.addmm(bias_new, h, weight_new, out=recurrent_new[rows])
            new.addcmul_(reset, recurrent_new[rows]).tanh_()
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
        d_recurrent = torch.empty_like(gates)  # gradient of W_hh h + b_hh
        d_new = torch.empty_like(before)  # of the new gate's input, which is not scaled by the reset gate
        d_memory = gradient.new_zeros(0, size)
        stop = len(features)
        for count in reversed(ctx.batch_sizes):
            rows = slice(stop - count, stop)
            reset, update, new = gates[rows].split(size, 1)
            d_reset_input, d_update_input, d_new_recurrent = d_recurrent[rows].split(size, 1)
            d_after = gradient[rows].clone()
            d_after[: len(d_memory)] += d_memory
            d_kept = d_after * update
            tanh_backward.grad_input(d_after - d_kept, new, grad_input=d_new[rows])
            sigmoid_backward.grad_input((before[rows] - new).mul_(d_after), update, grad_input=d_update_input)
            sigmoid_backward.grad_input(d_new[rows] * recurrent_new[rows], reset, grad_input=d_reset_input)
            torch.mul(d_new[rows], reset, out=d_new_recurrent)
            d_memory = d_kept.addmm_(d_recurrent[rows], weight_hh)
            stop -= count
        d_weight_hh, d_bias_hh = d_recurrent.T @ before, d_recurrent.sum(0)
        d_input = d_recurrent
        d_input[:, 2 * size :] = d_new
        d_features = d_input @ weight_ih if ctx.needs_input_grad[0] else None
        return d_features, None, None, d_input.T @ features, d_weight_hh, d_input.sum(0), d_bias_hh
