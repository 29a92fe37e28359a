"""The written-out GRU against torch's own, and against finite differences."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence

from maip3o.models.gru import PackedGRU

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@pytest.mark.parametrize("batch_sizes", [[1], [3], [4, 4, 3, 1], [2, 2, 2], [5, 1, 1, 1, 1, 1]])
def test_values_and_gradients_equal_those_of_torch(batch_sizes: list[int]) -> None:
    torch.manual_seed(0)
    ours, theirs = PackedGRU(5, 7).double(), torch.nn.GRU(5, 7).double()
    for name in NAMES:
        torch.nn.init.normal_(getattr(ours, name))
        getattr(theirs, f"{name}_l0").data.copy_(getattr(ours, name).data)
    features = torch.randn(sum(batch_sizes), 5, dtype=torch.double)
    memory = torch.randn(batch_sizes[0], 7, dtype=torch.double)
    weight = torch.randn(sum(batch_sizes), 7, dtype=torch.double)
    x1, x2 = features.clone().requires_grad_(), features.clone().requires_grad_()
    out = ours(x1, memory, batch_sizes)
    expected = theirs(PackedSequence(x2, torch.tensor(batch_sizes)), memory[None])[0].data
    torch.testing.assert_close(out, expected)
    (out * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(x1.grad, x2.grad)
    for name in NAMES:
        torch.testing.assert_close(getattr(ours, name).grad, getattr(theirs, f"{name}_l0").grad)


def test_gradient_equals_finite_differences() -> None:
    torch.manual_seed(1)
    gru = PackedGRU(3, 4).double()
    memory = torch.randn(3, 4, dtype=torch.double)
    features = torch.randn(6, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: gru(x, memory, [3, 2, 1]), features)


def test_gradient_can_be_taken_twice_from_one_graph() -> None:
    """The cosine between two gradients needs both from the same forward pass."""
    gru = PackedGRU(3, 4)
    out = gru(torch.randn(4, 3), torch.randn(2, 4), [2, 2])
    first = torch.autograd.grad(out.sum(), gru.weight_hh, retain_graph=True)[0]
    second = torch.autograd.grad(out.sum(), gru.weight_hh)[0]
    assert torch.equal(first, second)
