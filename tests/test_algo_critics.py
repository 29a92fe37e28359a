"""The critics' compiled epochs against torch's, step by step."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from maip3o.algo.critic_update import CriticData, update_critics
from maip3o.algo.finite import NonFiniteError
from maip3o.config.schema import AlgoConfig, ModelConfig
from maip3o.models.critic import Critic

AGENTS = np.array([3, 1, 4, 2, 5, 1, 2, 4, 3, 3])  # that act at each moment
STEPS = int(AGENTS.sum())


def case() -> CriticData:
    rng = np.random.default_rng(5)
    inputs = torch.as_tensor(rng.normal(size=(STEPS, 7)), dtype=torch.float32)
    # The reward's return is far from the cost's in scale, and some of it lies beyond Huber's delta.
    target = torch.as_tensor(rng.standard_t(2, size=(STEPS, 2)) * [30.0, 0.1] + [50.0, 0.2], dtype=torch.float32)
    start = np.append(0, np.cumsum(AGENTS))
    team_target = torch.stack([part.sum() for part in target[:, 0].split(AGENTS.tolist())])
    return CriticData(inputs, target, team_target, start)


def critics_and_optimiser(compiled: str = "auto", activation: str = "tanh") -> tuple[dict[str, Critic], Any]:
    torch.manual_seed(1)
    model = ModelConfig(hidden_sizes=[9, 20], memory_size=3, activation=activation, compiled=compiled)
    critics = {name: Critic(4, model) for name in ("value", "termination")}
    parameters = [p for critic in critics.values() for p in critic.parameters()]
    return critics, torch.optim.Adam(parameters, lr=3e-3, eps=1e-5, fused=True)


def settings(**algo: Any) -> AlgoConfig:
    return replace(AlgoConfig(name="maip3o", epochs=3, minibatches=4, huber_delta=0.7, max_grad_norm=0.4), **algo)


def fitted(compiled: str, activation: str, updates: int, **algo: Any) -> Any:
    """Weights, optimiser state and metrics after some updates."""
    critics, optimiser = critics_and_optimiser(compiled, activation)
    for update in range(updates):
        metrics = update_critics(critics, optimiser, case(), settings(**algo), np.random.default_rng(update))
    weights = {name: critic.state_dict() for name, critic in critics.items()}
    return weights, optimiser.state_dict()["state"], metrics


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(
    "algo", [{"value_target": "team"}, {"value_target": "agent"}, {"minibatch_steps": 3}, {"max_grad_norm": 1e6}]
)
def test_compiled_epochs_are_those_of_torch(activation: str, algo: dict[str, Any]) -> None:
    ours, theirs = (fitted(compiled, activation, 3, **algo) for compiled in ("auto", "off"))
    for mine, torchs in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(mine, torchs, rtol=2e-4, atol=2e-6)
    assert ours[2] == pytest.approx(theirs[2], rel=1e-4)


def test_torch_goes_on_where_the_compiled_epochs_stopped() -> None:
    """A run that moves from a CPU to another device keeps its optimiser."""
    critics, optimiser = critics_and_optimiser()
    for update, compiled in enumerate((True, False)):
        for critic in critics.values():
            critic.body.compiled = compiled
        update_critics(critics, optimiser, case(), settings(), np.random.default_rng(update))
    theirs, state, _ = fitted("off", "tanh", 2)
    ours = {name: critic.state_dict() for name, critic in critics.items()}
    torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-6)
    torch.testing.assert_close(optimiser.state_dict()["state"], state, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["value", "termination"])
def test_what_is_not_finite_is_named_and_not_applied(name: str) -> None:
    critics, optimiser = critics_and_optimiser()
    data = case()
    update_critics(critics, optimiser, data, settings(), np.random.default_rng(0))
    with torch.no_grad():
        critics[name].head.weight[0, 2] = float("inf")
    before = copy.deepcopy(critics[name].body.state_dict())
    with pytest.raises(NonFiniteError, match=f"critic {name}"):
        update_critics(critics, optimiser, data, settings(), np.random.default_rng(1))
    torch.testing.assert_close(critics[name].body.state_dict(), before)
