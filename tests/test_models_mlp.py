"""The written-out feed-forward layers against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from maip3o.models.mlp import BLOCK_ROWS, MLP, tanh_


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (BLOCK_ROWS,), (2 * BLOCK_ROWS + 1,)])
def test_values_and_gradients_equal_those_of_torch(activation: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    ours = MLP(4, [6, 5, 3], activation).double()
    theirs = nn.Sequential(*ours)
    x1, x2 = (torch.randn(*shape, 4, dtype=torch.double, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    x1.requires_grad_()
    x2.requires_grad_()
    out, expected = ours(x1), theirs(x2)
    torch.testing.assert_close(out, expected)
    weight = torch.randn(*shape, 3, dtype=torch.double)
    gradients = torch.autograd.grad((out * weight).sum(), [x1, *ours.parameters()])
    wanted = torch.autograd.grad((expected * weight).sum(), [x2, *theirs.parameters()])
    for gradient, right in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, right)


def test_inputs_that_need_no_gradient_get_none() -> None:
    net = MLP(4, [3], "tanh")
    x = torch.randn(7, 4)
    net(x).sum().backward()
    assert x.grad is None
    assert all(p.grad is not None for p in net.parameters())


def test_tanh_by_the_sigmoid_is_tanh() -> None:
    x = torch.linspace(-20, 20, 100_001)
    assert (tanh_(x.clone()) - torch.tanh(x.double())).abs().max() < 3e-7
