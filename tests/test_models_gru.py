"""The GRU, compiled (float32) and torch's own (float64), against torch.nn.GRU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import PackedSequence

from maip3o.models.compiled.layers import BLOCK_ROWS
from maip3o.models.gru import PackedGRU

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "batch_sizes", [[1], [3], [4, 4, 3, 1], [2, 2, 2], [5, 1, 1, 1, 1, 1], [2 * BLOCK_ROWS + 3, BLOCK_ROWS + 1, 9, 9]]
)
def test_values_and_gradients_equal_those_of_torch(batch_sizes: list[int], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    ours, theirs = PackedGRU(5, 37).to(dtype), torch.nn.GRU(5, 37).double()
    for name in NAMES:
        torch.nn.init.normal_(getattr(ours, name), std=0.3)
        getattr(theirs, f"{name}_l0").data.copy_(getattr(ours, name).data)
    features = torch.randn(sum(batch_sizes), 5, dtype=dtype)
    memory = torch.randn(batch_sizes[0], 37, dtype=dtype)
    weight = torch.randn(sum(batch_sizes), 37, dtype=dtype)
    x1, x2 = features.clone().requires_grad_(), features.double().requires_grad_()
    out = ours(x1, memory, np.array(batch_sizes))
    expected = theirs(PackedSequence(x2, torch.tensor(batch_sizes)), memory[None].double())[0].data
    tolerance = {"rtol": 0.0, "atol": 2e-6} if dtype == torch.float32 else {}
    torch.testing.assert_close(out.double(), expected, **tolerance)
    (out * weight).sum().backward()
    (expected * weight).sum().backward()
    pairs = [(x1.grad, x2.grad)]
    pairs += [(getattr(ours, name).grad, getattr(theirs, f"{name}_l0").grad) for name in NAMES]
    for gradient, right in pairs:
        scale = right.abs().max()
        torch.testing.assert_close(gradient.double() / scale, right / scale, **tolerance)


def test_gradient_can_be_taken_twice_from_one_graph() -> None:
    """The cosine between two gradients needs both from the same forward pass."""
    gru = PackedGRU(3, 4)
    out = gru(torch.randn(4, 3), torch.randn(2, 4), [2, 2])
    first = torch.autograd.grad(out.sum(), gru.weight_hh, retain_graph=True)[0]
    second = torch.autograd.grad(out.sum(), gru.weight_hh)[0]
    assert torch.equal(first, second)
