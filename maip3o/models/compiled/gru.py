"""The GRU over packed chunks on a CPU, forward and backward, one compiled call each. float32, laid out as in torch.

Chunks go through all their steps in blocks that stay in a core's cache.
"""

from __future__ import annotations

import numpy as np

from maip3o.jit import fused
from maip3o.models.compiled.layers import BLOCK_ROWS, ONE, add_row, add_rows, sigmoid, tanh, transposed
from maip3o.models.compiled.product import product


@fused
def gru_forward(features, memory, batch_sizes, weight_ih, weight_hh, bias_ih, bias_hh, gates, recurrent, after):  # type: ignore[no-untyped-def]
    """Fills gates [S, 3 H] (reset, update, new), recurrent [S, H] (W_hn h + b_hn) and the memories after [S, H]."""
    size = memory.shape[1]
    weight_ih_t, weight_hh_t = transposed(weight_ih), transposed(weight_hh)
    bias, bias_new = bias_ih.copy(), bias_hh[2 * size :]
    add_row(bias, bias_hh[: 2 * size])
    for first in range(0, len(memory), BLOCK_ROWS):
        h = memory[first : first + BLOCK_ROWS]
        at = 0
        for count in batch_sizes:
            rows = slice(at + first, at + min(count, first + BLOCK_ROWS))
            if count <= first:
                break
            x, h_after = gates[rows], after[rows]
            h = h[: len(x)]
            product(features[rows], weight_ih_t, x, False)
            product(h, weight_hh_t[:, : 2 * size], x[:, : 2 * size], True)
            product(h, weight_hh_t[:, 2 * size :], recurrent[rows], False)
            _step_forward(x, recurrent[rows], bias, bias_new, h, h_after)
            h = h_after
            at += count


@fused
def _step_forward(gates, recurrent, bias, bias_new, before, after):  # type: ignore[no-untyped-def]
    """gates and recurrent [n, ...]: the products on entry."""
    rows, size = recurrent.shape
    for i in range(rows):
        # Views of single rows: of their elements the compiler knows that they stand side by side.
        row, r, h, out = gates[i], recurrent[i], before[i], after[i]
        for j in range(2 * size):
            row[j] = sigmoid(row[j] + bias[j])
        reset, update, new, bias_input = row[:size], row[size : 2 * size], row[2 * size :], bias[2 * size :]
        for j in range(size):
            r[j] += bias_new[j]
        for j in range(size):
            new[j] = tanh(new[j] + bias_input[j] + reset[j] * r[j])
        for j in range(size):
            out[j] = new[j] + update[j] * (h[j] - new[j])


@fused
def gru_backward(  # type: ignore[no-untyped-def]
    features, memory, batch_sizes, weight_ih, weight_hh, gates, recurrent, after, gradient,
    d_features, d_weight_ih, d_weight_hh, d_bias_ih, d_bias_hh,
):  # fmt: skip
    """gradient [S, H] of the memories. Fills d_features [S, F] and adds to the others."""
    size = memory.shape[1]
    for first in range(0, len(memory), BLOCK_ROWS):
        longest = min(BLOCK_ROWS, len(memory) - first)
        d_memory = np.zeros((longest, size), np.float32)
        all_gates, all_last = np.empty((longest, 3 * size), np.float32), np.empty((longest, size), np.float32)
        stop = len(features)
        for step in range(len(batch_sizes) - 1, -1, -1):
            count = batch_sizes[step]
            at = stop - count
            stop = at
            if count <= first:
                continue
            rows = slice(at + first, at + min(count, first + BLOCK_ROWS))
            n = rows.stop - rows.start
            if step == 0:
                before = memory[first : first + n]
            else:
                earlier = at - batch_sizes[step - 1] + first
                before = after[earlier : earlier + n]
            d_gates, d_last, d_before = all_gates[:n], all_last[:n], d_memory[:n]
            _step_backward(gradient[rows], gates[rows], recurrent[rows], before, d_gates, d_last, d_before)
            add_rows(d_bias_ih, d_gates)
            add_rows(d_bias_hh[2 * size :], d_last)
            # Through W_hh h: reset and update as they are, new scaled by the reset gate.
            product(d_gates[:, : 2 * size], weight_hh[: 2 * size], d_before, True)
            product(d_last, weight_hh[2 * size :], d_before, True)
            product(d_gates[:, : 2 * size].T, before, d_weight_hh[: 2 * size], True)
            product(d_last.T, before, d_weight_hh[2 * size :], True)
            product(d_gates, weight_ih, d_features[rows], False)
            product(d_gates.T, features[rows], d_weight_ih, True)
    add_row(d_bias_hh, d_bias_ih[: 2 * size])


@fused
def _step_backward(gradient, gates, recurrent, before, d_gates, d_last, d_memory):  # type: ignore[no-untyped-def]
    """d_memory: of the memory after the step on entry; what the update gate keeps of it on return."""
    rows, size = before.shape
    for i in range(rows):
        row, d_row, d_h, d_n = gates[i], d_gates[i], d_memory[i], d_last[i]
        reset, update, new = row[:size], row[size : 2 * size], row[2 * size :]
        d_reset, d_update, d_new = d_row[:size], d_row[size : 2 * size], d_row[2 * size :]
        g, h, r = gradient[i], before[i], recurrent[i]
        for j in range(size):
            d_h[j] += g[j]
        for j in range(size):
            d_update[j] = d_h[j] * (h[j] - new[j]) * update[j] * (ONE - update[j])
        for j in range(size):
            d_new[j] = d_h[j] * (ONE - update[j]) * (ONE - new[j] * new[j])
        for j in range(size):
            d_h[j] *= update[j]
        for j in range(size):
            d_n[j] = d_new[j] * reset[j]
        for j in range(size):
            d_reset[j] = d_n[j] * r[j] * (ONE - reset[j])
