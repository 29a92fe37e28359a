"""The same tensors through OmniSafe 0.5 (tests/record_omnisafe.py) and through our algorithms.

Equal to 1e-6, or the deviation is named and shown to be theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from maip3o.algo.algorithm import make_algorithm
from maip3o.algo.losses import reward_loss, scale_advantage
from maip3o.algo.steps.multiplier import mixed_advantage
from maip3o.algo.steps.trust_region import Quadratic, fisher_product, flat, quadratic
from maip3o.algo.view import PolicyView, Sample
from maip3o.config.algorithms import TrustRegionSettings
from maip3o.config.schema import AlgoConfig
from maip3o.data.advantage import gae
from maip3o.models.actor import Actor
from tests.algo_case import make_actor, make_constraints, make_view

LIMIT, MULTIPLIER = 25.0, 0.7
CLOSE = {"rtol": 1e-6, "atol": 1e-9}


@cache
def recorded() -> dict[str, NDArray]:
    return dict(np.load(Path(__file__).parent / "data" / "omnisafe.npz"))


def theirs(name: str) -> Tensor:
    return torch.as_tensor(recorded()[name])


def load(actor: Actor, name: str) -> None:
    """Their weights, in our network."""
    layers = [layer for layer in actor.encoder if hasattr(layer, "weight")] + [actor.head]
    with torch.no_grad():
        for k, layer in enumerate(layers):
            layer.weight.copy_(theirs(f"{name}.mean.{2 * k}.weight"))
            layer.bias.copy_(theirs(f"{name}.mean.{2 * k}.bias"))
        actor.log_std.copy_(theirs(f"{name}.log_std"))


def view_of(cost: float, **algo: Any) -> PolicyView:
    """Their steps, with the policy that sampled them."""
    actor = make_actor(5, 3, (8, 8))
    load(actor, "before")
    columns = [theirs(f"batch.{key}") for key in ("obs", "act", "adv_r")]
    constraints = make_constraints([cost], [LIMIT], eta=20.0)
    return make_view(actor, *columns, theirs("batch.adv_c")[:, None], constraints, AlgoConfig(**algo))


def moved_sample(view: PolicyView) -> Sample:
    """All steps, in order, under the policy that has moved on."""
    load(view.actor, "after")
    (packed,) = view.everything()
    assert np.array_equal(packed.rows, np.arange(48))
    return view.evaluate(packed)


LAYERS = ("encoder.0", "encoder.2", "head")
ORDER = ["log_std", *(f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias"))]


def their_order(view: PolicyView, ours: Tensor) -> Tensor:
    """A vector over our actor's parameters, in the order of theirs."""
    named = dict(view.actor.named_parameters())
    parts = dict(zip(named, ours.split([p.numel() for p in named.values()]), strict=True))
    return torch.cat([parts[name] for name in ORDER])


def our_order(view: PolicyView, vector: Tensor) -> Tensor:
    named = dict(view.actor.named_parameters())
    parts = dict(zip(ORDER, vector.split([named[name].numel() for name in ORDER]), strict=True))
    return torch.cat([parts[name] for name in named])


def assert_same(view: PolicyView, loss: Tensor, name: str) -> None:
    torch.testing.assert_close(loss.detach(), theirs(f"{name}.loss"), **CLOSE)
    gradient = flat(torch.autograd.grad(loss, view.parameters))
    torch.testing.assert_close(their_order(view, gradient), theirs(f"{name}.gradient"), **CLOSE)


def algorithm(method: str, **algo: Any) -> Any:
    made = make_algorithm(AlgoConfig(method=method, **algo), 1)
    made.multiplier = torch.tensor([MULTIPLIER])
    return made


def test_ppo() -> None:
    view = view_of(0.0)
    assert_same(view, algorithm("ppo").loss(moved_sample(view)), "ppo")


@pytest.mark.parametrize("method", ["ppo_lagrangian", "cppo_pid"])
def test_mixed_advantage(method: str) -> None:
    view = view_of(0.0)
    assert_same(view, algorithm(method).loss(moved_sample(view)), method)


@pytest.mark.parametrize("rule", ["adam", "adam_bounded", "pid"])
def test_multipliers_over_many_iterations(rule: str) -> None:
    settings = {"multiplier_max": 0.2} if rule == "adam_bounded" else {}
    ours = algorithm("cppo_pid" if rule == "pid" else "ppo_lagrangian", settings=settings).rule
    values = [float(ours.step(make_constraints([cost], [LIMIT]))) for cost in recorded()["costs"]]
    np.testing.assert_allclose(values, recorded()[f"multiplier.{rule}"], rtol=1e-6)


@pytest.mark.parametrize("cost", [24.0, 25.001, 30.0])
def test_p3o_without_the_clip_of_the_cost(cost: float) -> None:
    """Theirs leaves the paper: the cost's ratio is not clipped. algo.clip_cost=false is the same."""
    view = view_of(cost, clip_cost=False)
    assert_same(view, algorithm("p3o").loss(moved_sample(view)), f"p3o.{cost}")


def test_p3o_clips_the_cost_as_the_paper_does() -> None:
    view = view_of(30.0)
    sample = moved_sample(view)
    ratio, cost = sample.ratio[:, None], sample.cost_advantage
    clipped = torch.maximum(ratio * cost, ratio.clamp(0.8, 1.2) * cost).mean()
    expected = sample.reward_loss + 20.0 * (clipped + 5.0)
    torch.testing.assert_close(algorithm("p3o").loss(sample), expected, **CLOSE)
    assert expected.item() > float(theirs("p3o.30.0.loss"))


@pytest.mark.parametrize("cost", [24.0, 25.001, 30.0])
def test_ipo_is_a_multiplier_there(cost: float) -> None:
    """Theirs is PPO on a mixed advantage whose multiplier is the slope of our penalty, at J_C alone."""
    view = view_of(cost)
    view.data.constraints.alpha[:] = 0.01
    sample = moved_sample(view)
    multiplier = algorithm("ipo").slope(sample.constraints.violation, sample.constraints)
    advantage = mixed_advantage(sample.advantage, sample.cost_advantage, multiplier)
    assert_same(view, reward_loss(sample.ratio, advantage, 0.2), f"ipo.{cost}")


def test_focops_mixes_states_there() -> None:
    """Theirs subtracts the row of r A from the column of KLs: a matrix, in which no state meets its own indicator.

    The same matrix from our parts gives their loss. Each state by itself, as in the paper, gives ours.
    """
    view = view_of(0.0)
    sample = moved_sample(view)
    kl, near = sample.kl_to(sample.before), (sample.kl_to(sample.before) <= 0.02).double().detach()
    assert 0 < near.sum() < len(near)
    gain = sample.ratio * mixed_advantage(sample.advantage, sample.cost_advantage, torch.tensor([MULTIPLIER])) / 1.5
    assert_same(view, ((kl[:, None] - gain[None]) * near[:, None]).mean(), "focops")
    torch.testing.assert_close(algorithm("focops").loss(sample), ((kl - gain) * near).mean(), **CLOSE)


def test_cup_projection() -> None:
    """The projection of the policy that has moved on, with the first phase skipped."""
    view = view_of(0.0)
    loss = algorithm("cup").projection(moved_sample(view), view.before)
    assert_same(view, loss, "cup")


def test_fisher_product_is_averaged_over_the_actions_there() -> None:
    """Theirs is the mean over the three action dimensions: their steps are sqrt(3) longer. Ours is the KL."""
    view, vector = view_of(0.0), theirs("fisher.vector")
    ours = fisher_product(view, damping=0.0)(our_order(view, vector))
    torch.testing.assert_close(their_order(view, ours) / 3.0 + 0.1 * vector, theirs("fisher.product"), **CLOSE)


@dataclass
class Step:
    """One step of theirs before its line search, and what it starts from."""

    problem: Quadratic
    c: float
    x: Tensor

    def gain(self, x: Tensor) -> float:
        return float(self.problem.gain @ x)

    def cost(self, x: Tensor) -> float:
        """c + b.x, above 0: beyond the limit."""
        return self.c + float(self.problem.cost[0] @ x)


def their_step(method: str, violation: float) -> Step:
    """With H^-1 g and H^-1 b as their conjugate gradients found them."""
    g, b = theirs("reward_gradient"), theirs("cost_gradient")
    natural, p = theirs("natural_gain"), theirs("natural_cost")
    return Step(Quadratic(g, b[None], natural, p[None], 0.0), violation, theirs(f"{method}.{violation}.step"))


def our_step(method: str, step: Step) -> tuple[Tensor, int]:
    """The same problem, solved by ours."""
    return algorithm(method).step(step.problem, torch.tensor([step.c], dtype=torch.float64))


def test_gradients_of_the_surrogates() -> None:
    view = view_of(0.0)
    problem = quadratic(view, TrustRegionSettings())
    torch.testing.assert_close(their_order(view, problem.gain), theirs("reward_gradient"), **CLOSE)
    torch.testing.assert_close(their_order(view, problem.cost[0]), theirs("cost_gradient"), **CLOSE)


@pytest.mark.parametrize("violation", [-1.0, 1.0])
def test_cpo_far_from_the_limit(violation: float) -> None:
    """The plain step of the trust region, and pure recovery. 1e-4: theirs has x'Hx for g.x of an inexact H^-1 g."""
    step = their_step("cpo", violation)
    ours, case = our_step("cpo", step)
    assert case == (2 if violation < 0 else 0)
    torch.testing.assert_close(ours, step.x, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("violation", [-0.01, -0.002, 0.01])
def test_cpo_near_the_limit_has_a_wrong_sign_there(violation: float) -> None:
    """Theirs puts the gradient of a gain into formulas of a loss: r must be -r.

    Their step loses reward where there is nothing to fear, and misses a limit that is within reach.
    """
    step = their_step("cpo", violation)
    ours, _ = our_step("cpo", step)
    assert step.cost(ours) <= 1e-6
    assert step.gain(ours) > 0
    assert step.gain(step.x) < 0 if violation < 0 else step.cost(step.x) > 0.5 * violation


@pytest.mark.parametrize("violation", [-1.0, -0.002, 0.01])
def test_pcpo_takes_the_plain_gradient_there(violation: float) -> None:
    """Theirs multiplies H^-1 g by H again: its step for the reward is g itself. With H^-1 g for it, it is ours."""
    step = their_step("pcpo", violation)
    g, natural, p = step.problem.gain, step.problem.natural_gain, step.problem.natural_cost[0]
    q, r, s = (float(part) for part in (step.problem.q, step.problem.r, step.problem.s))
    along = (0.02 / q) ** 0.5
    nu = max((along * r + violation) / s, 0.0)
    torch.testing.assert_close(step.x, along * g - nu * p, rtol=1e-3, atol=1e-4)  # H H^-1 g by conjugate gradients
    length = ((along**2 * q - 2 * along * nu * r + nu**2 * s) / 0.02) ** 0.5
    ours = (along * natural - nu * p) / max(length, 1.0)  # cut to the ball, which theirs leaves to the line search
    torch.testing.assert_close(our_step("pcpo", step)[0], ours, rtol=1e-6, atol=1e-8)


def test_advantages() -> None:
    """GAE over two episodes of one buffer, the second one cut. Theirs stores float32."""
    for name, value, gae_lambda, last in (("reward", "value_r", 0.95, 0), ("cost", "value_c", 0.9, 1)):
        values = recorded()[f"gae.{value}"]
        following = np.append(values[1:], recorded()["gae.last"][last])
        following[4] = 0.0
        goes_on = ~np.isin(np.arange(12), (4, 11))
        ours = gae(recorded()[f"gae.{name}"], values, following, goes_on, 0.99, gae_lambda)
        key = "adv_" + name[0]
        np.testing.assert_allclose(ours, recorded()[f"gae.raw_{key}"], rtol=1e-5, atol=1e-6)
        mode = "standardised" if name == "reward" else "centred"
        scaled = scale_advantage(torch.as_tensor(ours), mode)
        np.testing.assert_allclose(scaled, recorded()[f"gae.{key}"], rtol=1e-5, atol=1e-6)
