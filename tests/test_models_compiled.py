"""The compiled path against torch's, which is the reference: values, gradients, a whole update, second derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_episodes import toy_config, toy_learner, toy_rollouts

from maip3o.config.schema import ModelConfig
from maip3o.envs.contract import WorldSpec
from maip3o.envs.toy import ToyEnv
from maip3o.models.actor import Actor
from maip3o.models.mlp import torch_path

SIZES = np.array([5, 5, 3, 1])


def actor_and_rows(recurrent: bool, compiled: str = "auto") -> tuple[Actor, list[torch.Tensor]]:
    torch.manual_seed(2)
    actor = Actor(
        WorldSpec(4, 2), ModelConfig(hidden_sizes=[9, 7], memory_size=6, recurrent=recurrent, compiled=compiled)
    )
    return actor, [torch.randn(int(SIZES.sum()), 4), torch.randn(int(SIZES[0]), 6 if recurrent else 0)]


@pytest.mark.parametrize("recurrent", [True, False])
def test_values_and_gradients_of_the_whole_actor_are_those_of_torch(recurrent: bool) -> None:
    results = []
    for compiled in ("auto", "off"):
        actor, rows = actor_and_rows(recurrent, compiled)
        mean = actor(*rows, SIZES)
        parameters = [p for name, p in actor.named_parameters() if name != "log_std"]
        results.append([mean, *torch.autograd.grad(mean.square().sum(), parameters)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    assert any(not torch.equal(a, b) for a, b in zip(*results, strict=True))  # two paths, not one twice


@pytest.mark.parametrize("recurrent", [True, False])
def test_a_second_derivative_is_refused_by_compiled_layers_and_taken_by_torch(recurrent: bool) -> None:
    actor, rows = actor_and_rows(recurrent)
    parameters = [p for name, p in actor.named_parameters() if name != "log_std"]

    def curvature() -> tuple[torch.Tensor, ...]:
        gradients = torch.autograd.grad(actor(*rows, SIZES).square().sum(), parameters, create_graph=True)
        return torch.autograd.grad(torch.stack([g.square().sum() for g in gradients]).sum(), parameters)

    with pytest.raises(RuntimeError, match="no second derivative"):
        curvature()
    with torch_path():
        assert all(bool(h.abs().sum() > 0) for h in curvature())


def test_an_update_by_torch_alone_learns_the_same() -> None:
    learners = [toy_learner(toy_config(model={"compiled": compiled})) for compiled in ("auto", "off")]
    episodes = toy_rollouts(learners[0], ToyEnv(4, 11, hazard=0.2), 5)
    metrics = [learner.update(episodes) for learner in learners]
    for name, tensor in learners[0].actor.state_dict().items():
        torch.testing.assert_close(tensor, learners[1].actor.state_dict()[name], rtol=1e-3, atol=1e-5)
    assert metrics[0] == pytest.approx(metrics[1], rel=1e-2, abs=1e-4, nan_ok=True)
