"""A feed-forward actor's minibatches as compiled calls: the same steps as torch's, whatever the algorithm's loss."""

from __future__ import annotations

import math

import pytest
import torch

from maip3o.algo.algorithm import make_algorithm
from maip3o.algo.finite import NonFiniteError
from maip3o.algo.steps.networks import CompiledNetwork
from maip3o.algo.view import PolicyView
from maip3o.config.algorithms import METHODS
from maip3o.config.schema import AlgoConfig
from tests.algo_case import make_actor, make_constraints, random_view

BY_MINIBATCH = [method for method in METHODS if method not in ("cpo", "pcpo")]


def view_of(compiled: str, activation: str = "tanh", hidden: tuple[int, ...] = (12, 9), **algo: object) -> PolicyView:
    actor = make_actor(7, 3, hidden, std=0.4, double=False, compiled=compiled, activation=activation)
    settings = {"epochs": 3, "minibatch_steps": 32, "kl_max": math.inf, "lr": 2e-3, **algo}
    view = random_view(actor, 150, make_constraints([1.2, 0.3], [1.0, 1.0], eta=2.0, alpha=0.5), AlgoConfig(**settings))  # type: ignore[arg-type]
    assert CompiledNetwork.fits(view) == (compiled == "auto")
    return view


def learn(view: PolicyView, method: str) -> dict[str, float]:
    return make_algorithm(AlgoConfig(method=method), 2).update(view, view.data)


def assert_same(one: PolicyView, other: PolicyView) -> None:
    """Weights, and Adam's memory of each."""
    for mine, theirs in zip(one.parameters, other.parameters, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=2e-6)
        for key, value in one.optimiser.state[mine].items():
            torch.testing.assert_close(value, other.optimiser.state[theirs][key], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", BY_MINIBATCH)
def test_every_loss_takes_the_steps_of_torch(method: str) -> None:
    views = [view_of(compiled) for compiled in ("auto", "off")]
    before = [p.detach().clone() for p in views[0].parameters]
    metrics = [learn(view, method) for view in views]
    assert_same(*views)
    assert metrics[0] == pytest.approx(metrics[1], rel=1e-4, abs=1e-6)
    assert metrics[0]["policy/steps"] == 15
    assert all(not torch.equal(a, b) for a, b in zip(before, views[0].parameters, strict=True))


@pytest.mark.parametrize("hidden", [(5,), (8, 8, 8)])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_every_shape_with_clipped_gradients_and_an_entropy_bonus(activation: str, hidden: tuple[int, ...]) -> None:
    settings = {"max_grad_norm": 0.05, "entropy_bonus": 0.3, "kl_max": 0.05, "kl_test": "epoch"}
    views = [view_of(compiled, activation, hidden, **settings) for compiled in ("auto", "off")]
    for view in views:
        for _ in range(2):  # the second update goes on with Adam's memory
            assert learn(view, "ip3o")["policy/grad_norm"] > 0.05
    assert_same(*views)


def test_what_is_not_finite_is_refused_by_name_and_not_applied() -> None:
    for spoil, name in ((no_number, "L_R"), (overflow, "gradient norm of actor")):
        view = view_of("auto", "relu", minibatch_steps=None, minibatches=1)
        spoil(view)
        before = [p.detach().clone() for p in view.parameters]
        with pytest.raises(NonFiniteError, match=name):
            learn(view, "ppo")
        assert all(torch.equal(a, b) for a, b in zip(before, view.parameters, strict=True))


def no_number(view: PolicyView) -> None:
    view.data.advantage.fill_(math.nan)


def overflow(view: PolicyView) -> None:
    """The loss is finite, and its gradient is not."""
    view.data.observation *= 1e3
    view.before = view.replay()
    view.data.advantage.fill_(1e36)
