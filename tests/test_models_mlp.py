"""The feed-forward layers, compiled (float32) and torch's own (float64), against torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from maip3o.models.compiled.layers import BLOCK_ROWS
from maip3o.models.mlp import MLP


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (BLOCK_ROWS,), (2 * BLOCK_ROWS + 1,)])
def test_values_and_gradients_equal_those_of_torch(activation: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    ours = MLP(4, [33, 5, 3], activation).to(dtype)
    theirs = nn.Sequential(*MLP(4, [33, 5, 3], activation)).double()
    theirs.load_state_dict(ours.state_dict())
    x1 = torch.randn(*shape, 4, dtype=dtype, requires_grad=True)
    x2 = x1.detach().double().requires_grad_()
    weight = torch.randn(*shape, 3, dtype=dtype)
    out, expected = ours(x1), theirs(x2)
    tolerance = {"rtol": 0.0, "atol": 3e-6} if dtype == torch.float32 else {}
    torch.testing.assert_close(out.double(), expected, **tolerance)
    gradients = torch.autograd.grad((out * weight).sum(), [x1, *ours.parameters()])
    wanted = torch.autograd.grad((expected * weight).sum(), [x2, *theirs.parameters()])
    for gradient, right in zip(gradients, wanted, strict=True):
        scale = right.abs().max() + 1e-9 if right.numel() else 1.0
        torch.testing.assert_close(gradient.double() / scale, right / scale, **tolerance)


def test_inputs_that_need_no_gradient_get_none() -> None:
    net = MLP(4, [3], "tanh")
    x = torch.randn(7, 4)
    net(x).sum().backward()
    assert x.grad is None
    assert all(p.grad is not None for p in net.parameters())


def test_compiled_tanh_is_tanh() -> None:
    x = torch.linspace(-20, 20, 100_001)[:, None]
    net = MLP(1, [1], "tanh")
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        assert (net(x) - torch.tanh(x.double())).abs().max() < 3e-7


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_nan_and_infinity_are_not_swallowed(activation: str, value: float) -> None:
    net = MLP(4, [6, 3], activation)
    x = torch.zeros(9, 4)
    x[4, 2] = value
    out, right = net(x).detach(), nn.Sequential(*net)(x).detach()
    torch.testing.assert_close(out, right, equal_nan=True)
    with torch.no_grad():
        net[2].bias.fill_(10.0)  # relu lets the gradient through
    net(torch.zeros(2, 4)).backward(torch.tensor([[1.0, 1.0, 1.0], [1.0, value, 1.0]]))
    assert not torch.isfinite(net[2].bias.grad).all()
