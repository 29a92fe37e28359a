"""The first-order algorithms where the answer is known: penalties, multipliers, where FOCOPS and CUP settle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from maip3o.algo.algorithm import Algorithm, make_algorithm
from maip3o.algo.constraints import Constraints
from maip3o.algo.view import PolicyView
from maip3o.config.algorithms import check_method
from maip3o.config.schema import AlgoConfig, PenaltyConfig
from maip3o.errors import UserError
from maip3o.runners.compose import compose
from tests.algo_case import make_actor, make_constraints, make_view

STEPS, STD, SLOPE, COST_SLOPE = 400, 0.5, 0.3, 0.8


def algorithm(method: str, constraints: int = 1, floor_h: float | None = None, **algo: Any) -> Algorithm:
    return make_algorithm(AlgoConfig(method=method, penalty=PenaltyConfig(floor_h=floor_h), **algo), constraints)


def bandit(**algo: Any) -> PolicyView:
    """One state, one action a ~ N(0, STD): A_R = SLOPE a and A_C = COST_SLOPE a, on evenly spread quantiles.

    E_old[r a] is then the new mean, and E[KL] that of two Gaussians, so a fixed point follows by hand.
    """
    actor = make_actor(1, 1, std=STD)
    with torch.no_grad():
        actor.head.weight.zero_()
    quantile = norm.ppf((np.arange(STEPS) + 0.5) / STEPS)
    action = torch.as_tensor(STD * quantile / quantile.std())[:, None]
    gain, cost, nothing = SLOPE * action[:, 0], COST_SLOPE * action, torch.zeros_like(action)
    settings = {"epochs": 120, "minibatches": 1, "kl_max": 1e9, "lr": 5e-3, "max_grad_norm": 1e9, **algo}
    return make_view(actor, nothing, action, gain, cost, make_constraints([3.0], [1.0]), AlgoConfig(**settings))


def gaussian(view: PolicyView) -> tuple[float, float]:
    """Mean and std of the only policy there is."""
    return float(view.actor.head.bias), float(view.actor.log_std.exp())


def settle(view: PolicyView, made: Algorithm) -> dict[str, float]:
    made.algo = view.algo
    return made.update(view, view.data)


def test_focops_settles_where_its_paper_says() -> None:
    """argmin KL(N(m, STD) || N(0, STD)) - (gain of m) / temperature: m = STD^2 (gain per action) / temperature."""
    view, made = bandit(), algorithm("focops", settings={"multiplier_start": 0.5, "multiplier_lr": 0.0, "radius": 9.0})
    settle(view, made)
    mixed = (SLOPE - 0.5 * COST_SLOPE) / 1.5  # the advantage of multiplier 0.5
    mean, std = gaussian(view)
    assert mean == pytest.approx(STD**2 * mixed / 1.5, rel=0.01)
    assert std == pytest.approx(STD, rel=0.01)


def test_focops_leaves_states_alone_that_have_moved_too_far() -> None:
    view, made = bandit(), algorithm("focops", settings={"radius": 1e-3})
    with torch.no_grad():
        view.actor.head.bias.fill_(STD)  # KL 0.5 in every state
    (packed,) = view.minibatches()
    gradients = torch.autograd.grad(made.loss(view.evaluate(packed)), view.parameters)  # type: ignore[attr-defined]
    assert all(not bool(gradient.any()) for gradient in gradients)


def test_cup_settles_where_its_paper_says() -> None:
    """Phase 1 is PPO, ended here by its clip; phase 2 goes from there against the cost: m = m_1 - STD^2 weight."""
    settings = {"multiplier_start": 0.02, "multiplier_lr": 0.0}
    view, made = bandit(cost_gamma=0.9, cost_gae_lambda=0.5), algorithm("cup", settings=settings)
    improved: list[Any] = []
    projection = made.projection  # type: ignore[attr-defined]
    made.projection = lambda sample, reference: improved.append(reference) or projection(sample, reference)  # type: ignore[attr-defined]
    metrics = settle(view, made)
    weight = 0.02 * (1 - 0.9 * 0.5) / (1 - 0.9) * COST_SLOPE
    start, mean = float(improved[0].mean[0]), gaussian(view)[0]
    assert start > 0.01
    std = float(improved[0].log_std.exp())
    assert mean == pytest.approx(start - std**2 * weight, rel=0.03)
    assert metrics["policy/projection_kl"] == pytest.approx((std * weight) ** 2 / 2, rel=0.06)
    assert metrics["policy/projection_steps"] == 120


def test_ppo_climbs_until_it_is_clipped_and_a_multiplier_turns_it_round() -> None:
    up, down = bandit(), bandit()
    settle(up, algorithm("ppo"))
    settle(down, algorithm("ppo_lagrangian", settings={"multiplier_start": 9.0, "multiplier_lr": 0.0}))
    assert gaussian(up)[0] > 0.05
    assert gaussian(down)[0] < -0.05


def constraints_of(cost: float, limit: float = 25.0) -> Constraints:
    return make_constraints([cost], [limit])


def test_multiplier_rises_while_violated_and_falls_to_nothing_after() -> None:
    rule = algorithm("ppo_lagrangian", settings={"multiplier_max": 0.3}).rule  # type: ignore[attr-defined]
    rising = [float(rule.step(constraints_of(60.0))) for _ in range(12)]
    assert rising[0] == pytest.approx(0.001 + 0.035, rel=1e-4)  # Adam's first move is its rate, whatever J_C is
    assert rising == sorted(rising)
    assert rising[-1] == pytest.approx(0.3)
    falling = [float(rule.step(constraints_of(0.0))) for _ in range(60)]
    assert falling[-1] == 0.0


def test_pid_response_to_a_step_of_the_cost() -> None:
    """J_C jumps to 35 and stays for 20 iterations, then to 5: each term in closed form, and no wind-up below 0."""
    rule = algorithm("cppo_pid").rule  # type: ignore[attr-defined]
    error, jump, b = 10.0, 35.0, 0.95
    for n in range(1, 21):
        value = float(rule.step(constraints_of(35.0)))
        rise = (1 - b**n) * jump - (1 - b ** max(n - 10, 0)) * jump
        assert value == pytest.approx(0.1 * (1 - b**n) * error + 0.001 + n * 0.01 * error + 0.01 * rise, rel=1e-6)
    integral = float(rule.integral)
    for n in range(1, 41):
        value = float(rule.step(constraints_of(5.0)))
        assert float(rule.integral) == pytest.approx(max(integral - n * 0.2, 0.0), abs=1e-12)
    assert value == 0.0
    assert float(rule.step(constraints_of(25.0 + 500.0))) > 5.0  # at once: the integral has nothing to make up for


@pytest.mark.parametrize("method", ["ppo_lagrangian", "cppo_pid", "focops", "cup"])
def test_an_exploding_cost_meets_the_bound_of_the_multiplier(method: str) -> None:
    made = algorithm(method, settings={"multiplier_max": 2.0})
    view = bandit(epochs=2)
    view.data.constraints.cost[:] = 1e30
    for _ in range(100):
        made.rule.step(view.data.constraints)  # type: ignore[attr-defined]
    metrics = settle(view, made)
    assert metrics["constraint/cost0/multiplier"] == 2.0
    assert all(bool(torch.isfinite(p).all()) for p in view.parameters)


X = torch.tensor([[-3.0, -0.4], [-0.2, -0.05], [0.0, 0.0], [0.3, 2.0]], dtype=torch.float64)


def two(alpha: tuple[float, float]) -> Constraints:
    constraints = make_constraints([0.0, 0.0], [1.0, 1.0])
    constraints.alpha[:] = torch.tensor(alpha)
    return constraints


def penalty(made: Any, x: Tensor, constraints: Constraints) -> Tensor:
    return made.penalty(x, constraints)


def test_ip3o_is_celu_each_constraint_with_its_own_alpha() -> None:
    made, constraints = algorithm("ip3o", 2), two((0.5, 0.1))
    expected = torch.stack([torch.nn.functional.celu(X[:, k], a) for k, a in enumerate((0.5, 0.1))], 1)
    torch.testing.assert_close(penalty(made, X, constraints), expected)
    slope = torch.where(X >= 0, 1.0, torch.exp(X / torch.tensor([0.5, 0.1])))
    torch.testing.assert_close(made.slope(X, constraints), slope)
    far = torch.tensor([[-1e4, 1e4]], dtype=torch.float64)
    assert made.slope(far, constraints).tolist() == [[0.0, 1.0]]


def test_ip3o_with_a_floor_stops_pushing_at_alpha_log_h() -> None:
    h, alpha = 0.05, 0.5
    made, constraints = algorithm("ip3o", 2, floor_h=h), two((alpha, alpha))
    at = alpha * math.log(h)
    x = torch.tensor([[at - 1e-6, at + 1e-6]], dtype=torch.float64)
    torch.testing.assert_close(penalty(made, x, constraints), torch.full_like(x, -alpha * (1 - h)), rtol=1e-5, atol=0.0)
    below, above = made.slope(x, constraints)[0].tolist()
    assert below == 0.0
    assert above == pytest.approx(h, rel=1e-4)
    assert made.residual(x[0], constraints).tolist() == pytest.approx([-at, -at])


def test_p3o_is_silent_below_the_limit() -> None:
    made, constraints = algorithm("p3o", 2), two((0.5, 0.1))
    assert torch.equal(penalty(made, X, constraints), X.clamp(min=0.0))
    assert torch.equal(made.slope(X, constraints), (X > 0).double())


def test_ipo_is_a_barrier_inside_and_its_tangent_from_there_on() -> None:
    made, constraints = algorithm("ipo", 2), two((0.1, 0.1))
    x = torch.tensor([[-3.0, -0.1 - 1e-9], [-0.1 + 1e-9, -0.05], [0.0, 7.0]], dtype=torch.float64)
    inside = -0.1 * torch.log(-x[0])
    torch.testing.assert_close(penalty(made, x, constraints)[0], inside)
    slopes = made.slope(x, constraints).flatten().tolist()
    assert slopes == pytest.approx([0.1 / 3.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    step = penalty(made, x, constraints)[1, 0] - penalty(made, x, constraints)[0, 1]
    assert float(step) == pytest.approx(2e-9, rel=1e-3)  # continuous
    # 1 / t = eta alpha, the gap of a barrier: where a unit of cost is worth m, it stops 1 / (t m) before the limit.
    m, eta = 0.5, 2.0
    best = -eta * 0.1 / m
    assert eta * float(made.slope(torch.tensor([[best, best]]), constraints)[0, 0]) == pytest.approx(m)
    assert made.residual(x[0], constraints).tolist() == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize("method", ["ip3o", "p3o", "ipo"])
def test_penalty_in_the_loss_is_eta_times_its_value(method: str) -> None:
    view = bandit()
    made = algorithm(method)
    view.data.constraints.eta[:] = 4.0
    (packed,) = view.minibatches()
    sample = view.evaluate(packed)
    expected = sample.reward_loss + 4.0 * penalty(made, sample.constraint_loss, sample.constraints).sum()
    torch.testing.assert_close(made.loss(sample), expected)  # type: ignore[attr-defined]
    assert float(sample.constraint_loss.detach()) == pytest.approx(2.0)  # J_C - d, where every ratio is 1


@pytest.mark.parametrize(
    ("method", "settings", "cure"),
    [
        ("focops", {"temperature": 0.0}, "algo.settings.temperature=0.0: must be above 0"),
        ("cpo", {"delta": 0}, "algo.settings.delta=0: must be above 0"),
        ("pcpo", {"backtrack": 1.0}, "algo.settings.backtrack=1.0: must be below 1"),
        ("cpo", {"cg_iterations": 1.5}, "must be a whole number"),
        ("cppo_pid", {"smoothing": 1.0}, "algo.settings.smoothing=1.0: must be below 1"),
        ("cup", {"multiplier_max": math.nan}, "must be a number of 0 or above"),
    ],
)
def test_settings_that_would_divide_by_zero_or_never_end_are_refused(method: str, settings: Any, cure: str) -> None:
    with pytest.raises(UserError, match=cure):
        check_method(method, settings)


def test_cup_needs_discounted_costs() -> None:
    with pytest.raises(UserError, match=r"algo\.cost_gamma=1\.0: algo\.method=cup divides by"):
        compose(["+scenario=intersection", "algo=cup", "algo.cost_gamma=1"])
