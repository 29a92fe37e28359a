"""Losses and penalties against the formulas written out."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from maip3o.algo.algorithm import make_algorithm
from maip3o.algo.constraints import Constraints, penalty_weight
from maip3o.algo.losses import constraint_loss, cost_surrogate, explained_variance, huber, reward_loss, scale_advantage
from maip3o.algo.p3o import P3O
from maip3o.config.algorithms import check_method
from maip3o.config.schema import AlgoConfig, PenaltyConfig
from maip3o.errors import UserError

ALPHA, FLOOR = 0.3, 0.1
X = torch.tensor([-5.0, -0.5, -0.05, 1e-6, 0.4, 3.0], dtype=torch.double)


def constraints(size: int) -> Constraints:
    """`size` equal constraints: each element of X is one of them."""
    one = torch.ones(size, dtype=torch.double)
    return Constraints(tuple("abcdefgh"[:size]), 0 * one, 0 * one, ALPHA * one, one, 1.0)


def penalty_of(method: str, floor: float | None = None) -> P3O:
    algorithm = make_algorithm(AlgoConfig(method=method, penalty=PenaltyConfig(floor_h=floor)), 1)
    assert isinstance(algorithm, P3O)
    return algorithm


def value_and_slope(method: str, x: Tensor, floor: float | None = None) -> tuple[Tensor, Tensor]:
    algorithm, given = penalty_of(method, floor), constraints(len(x))
    return algorithm.penalty(x, given), algorithm.slope(x, given)


def written_out(method: str, x: Tensor) -> Tensor:
    """Each penalty as the literature writes it, element by element."""
    below = x < 0
    if method == "ip3o":
        return torch.where(below, ALPHA * (torch.exp(x / ALPHA) - 1), x)
    if method == "p3o":
        return torch.where(below, 0 * x, x)
    barrier = -ALPHA * torch.log(torch.where(x < -ALPHA, -x, torch.ones_like(x)))
    return torch.where(x < -ALPHA, barrier, x + ALPHA - ALPHA * math.log(ALPHA))


@pytest.mark.parametrize("method", ["ip3o", "p3o", "ipo"])
def test_value_and_gradient_of_each_penalty_equal_the_formula_written_out(method: str) -> None:
    formula = X.clone().requires_grad_()
    expected = written_out(method, formula)
    value, slope = value_and_slope(method, X)
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(slope, torch.autograd.grad(expected.sum(), formula)[0])


def test_celu_is_value_continuous_slope_continuous_and_pushes_down_on_both_sides() -> None:
    edge = torch.tensor([-1e-9, 1e-9], dtype=torch.double)
    value, slope = value_and_slope("ip3o", edge)
    torch.testing.assert_close(value, edge)
    torch.testing.assert_close(slope, torch.ones(2).double())
    _, slopes = value_and_slope("ip3o", X)
    assert (slopes > 0).all()
    assert (slopes.diff() >= 0).all()
    assert value_and_slope("ip3o", torch.tensor([-100.0]))[0].item() == pytest.approx(-ALPHA)
    # Slope at J_C = 0 with limit d: exp(-d / alpha).
    _, slope = value_and_slope("ip3o", torch.tensor([-0.1], dtype=torch.double))
    assert slope.item() == pytest.approx(math.exp(-0.1 / ALPHA))


def test_each_constraint_has_an_alpha_of_its_own() -> None:
    given = constraints(2)
    given.alpha[:] = torch.tensor([0.1, 5.0])
    slope = penalty_of("ip3o").slope(torch.tensor([-0.1, -5.0]), given)
    torch.testing.assert_close(slope, torch.full((2,), math.exp(-1.0)))


def test_floor_stops_the_gradient_at_alpha_log_h() -> None:
    stop = ALPHA * math.log(FLOOR)
    x = torch.tensor([stop - 0.01, stop + 0.01], dtype=torch.double)
    value, slope = value_and_slope("ip3o", x, FLOOR)
    assert slope[0] == 0
    assert slope[1] > 0
    assert value[0].item() == pytest.approx(-ALPHA * (1 - FLOOR))


@given(st.floats(0, 1e6))
def test_celu_equals_relu_while_violated(x: float) -> None:
    argument = torch.tensor([x], dtype=torch.double)
    assert value_and_slope("ip3o", argument)[0] == value_and_slope("p3o", argument)[0]


@pytest.mark.parametrize(("competence", "eta"), [(0.0, 0.0), (0.2, 0.25), (0.75, 3.0), (0.9, 4.0), (1.0, 4.0)])
def test_the_weight_by_odds_is_bounded_by_eta(competence: float, eta: float) -> None:
    assert penalty_weight(PenaltyConfig(growth="odds"), 4.0, 0.5, competence) == pytest.approx(eta)


def test_unknown_method_is_the_users_error() -> None:
    with pytest.raises(UserError, match=r"algo\.method=ip3oo: .*did you mean ip3o"):
        check_method("ip3oo", {})


def test_reward_loss_is_pessimistic_in_both_directions() -> None:
    ratio = torch.tensor([0.5, 0.5, 1.0, 1.5, 1.5])
    advantage = torch.tensor([1.0, -1.0, 2.0, 1.0, -1.0])
    expected = -(0.5 + -0.8 + 2.0 + 1.2 + -1.5) / 5
    assert reward_loss(ratio, advantage, 0.2).item() == pytest.approx(expected)


def test_cost_surrogate_is_pessimistic_in_the_other_direction() -> None:
    ratio = torch.tensor([0.5, 0.5, 1.5, 1.5])
    advantage = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    assert cost_surrogate(ratio, advantage, 0.2).item() == pytest.approx((0.8 - 0.5 + 1.5 - 1.2) / 4)
    assert cost_surrogate(ratio, advantage, None).item() == pytest.approx(0.0)


def test_losses_at_ratio_one_have_the_policy_gradient() -> None:
    """d L_R / d log-prob = -A / n and d L_C / d log-prob = scale A_C / n, whatever the action's dimension."""
    log_prob = torch.zeros(4, requires_grad=True)
    advantage = torch.tensor([1.0, -2.0, 0.5, 3.0])
    reward_loss(torch.exp(log_prob), advantage, 0.2).backward()
    torch.testing.assert_close(log_prob.grad, -advantage / 4)
    log_prob.grad = None
    constraint = constraint_loss(
        cost_surrogate(torch.exp(log_prob), advantage[:, None], 0.2), 100.0, torch.tensor([0.3])
    )
    constraint.sum().backward()
    torch.testing.assert_close(log_prob.grad, 100 * advantage / 4)
    assert constraint.item() == pytest.approx(100 * advantage.mean().item() + 0.3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_huber_is_linear_beyond_delta_for_errors_of_either_sign(sign: float) -> None:
    small, large = torch.tensor([0.5 * sign]), torch.tensor([7.0 * sign])
    assert huber(small, 2.0).item() == pytest.approx(0.125)
    assert huber(large, 2.0).item() == pytest.approx(2.0 * (7.0 - 1.0))


def test_advantages_are_scaled_column_by_column() -> None:
    advantage = torch.stack((torch.arange(5.0), 100 * torch.arange(5.0) + 7), -1)
    standardised = scale_advantage(advantage, "standardised")
    torch.testing.assert_close(standardised[:, 0], standardised[:, 1])
    torch.testing.assert_close(standardised.square().mean(0), torch.ones(2))
    torch.testing.assert_close(scale_advantage(advantage, "centred")[:, 1], 100 * (torch.arange(5.0) - 2))
    assert scale_advantage(advantage, "raw") is advantage
    assert torch.isfinite(scale_advantage(torch.zeros(5, 1), "standardised")).all()


def test_explained_variance() -> None:
    target = torch.tensor([1.0, 2.0, 3.0])
    assert explained_variance(target, target) == 1.0
    assert explained_variance(torch.full((3,), 9.0), target) == 0.0
    assert math.isnan(explained_variance(target, torch.ones(3)))
