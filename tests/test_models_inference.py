"""The workers' actor against the one that learns."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from maip3o.algo.learner import Learner
from maip3o.config.schema import AlgoConfig, Config, ModelConfig
from maip3o.envs.contract import WorldSpec
from maip3o.models.actor import gaussian_kl, log_prob
from maip3o.models.compiled.act import NumpyActor, _sigmoid, _tanh

MODELS = {
    "gru": ModelConfig(),
    "relu": ModelConfig(activation="relu"),
    "odd sizes": ModelConfig(hidden_sizes=[7, 5, 3], memory_size=9),
    "feed-forward": ModelConfig(recurrent=False),
    "raw observation": ModelConfig(normalise_observation=False),
}


def twins(model: ModelConfig, observation_size: int = 11) -> tuple[Learner, NumpyActor]:
    learner = Learner(Config(algo=AlgoConfig(name="mappo"), model=model), WorldSpec(observation_size, 2))
    with torch.no_grad():
        for parameter in learner.actor.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    learner.normaliser.update(3.0 + 5.0 * torch.randn(100, observation_size))
    return learner, NumpyActor(learner.actor_weights(), model)


@pytest.mark.parametrize("name", MODELS)
def test_actions_log_probs_and_memories_equal_those_of_torch(name: str) -> None:
    torch.manual_seed(0)
    learner, actor = twins(MODELS[name])
    rng = np.random.default_rng(0)
    memory = actor.initial_memory(6)
    for _ in range(20):
        observation = (3.0 + 8.0 * rng.normal(size=(6, 11))).astype(np.float32)
        noise = rng.normal(size=(6, 2)).astype(np.float32)
        action, stored, after = actor.act(observation, memory, noise)
        with torch.no_grad():
            normalised = learner.normaliser(torch.as_tensor(observation))
            mean = learner.actor(normalised, torch.as_tensor(memory), [6])
            std = learner.actor.log_std.exp()
            expected = log_prob(torch.as_tensor(action), mean, learner.actor.log_std)
        np.testing.assert_allclose(action, (mean + std * torch.as_tensor(noise)).numpy(), atol=3e-6)
        np.testing.assert_allclose(stored, expected.numpy(), atol=2e-5)
        memory = after


def test_without_noise_the_mean_is_taken() -> None:
    _, actor = twins(ModelConfig())
    observation = np.ones((4, 11), np.float32)
    mean, at_mean, _ = actor.act(observation, actor.initial_memory(4), None)
    zero, _, _ = actor.act(observation, actor.initial_memory(4), np.zeros((4, 2), np.float32))
    np.testing.assert_array_equal(mean, zero)
    _, elsewhere, _ = actor.act(observation, actor.initial_memory(4), np.ones((4, 2), np.float32))
    assert (at_mean > elsewhere).all()


def test_an_agent_is_computed_by_itself_bit_for_bit() -> None:
    """Permuting the agents permutes the outputs, and absent agents change nothing."""
    _, actor = twins(ModelConfig())
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(8, n)).astype(np.float32) for n in (11, actor.memory_size, 2)]
    full = actor.act(*inputs)
    order = rng.permutation(8)[:5]
    some = actor.act(*(x[order] for x in inputs))
    for whole, part in zip(full, some, strict=True):
        np.testing.assert_array_equal(whole[order], part)


def test_compiled_tanh_and_sigmoid_are_exact_to_float_precision() -> None:
    x = np.linspace(-100, 100, 200_001, dtype=np.float32)
    tanh, sigmoid = x.copy(), x.copy()
    _tanh(tanh), _sigmoid(sigmoid)
    np.testing.assert_allclose(tanh, np.tanh(x.astype(float)), atol=2e-7)
    np.testing.assert_allclose(sigmoid, 1 / (1 + np.exp(-x.astype(float))), atol=2e-7)


def test_the_first_actions_are_those_of_the_world() -> None:
    model = ModelConfig()
    world = WorldSpec(5, 2, initial_mean=(0.0, 0.4), initial_std=(0.5, 0.2))
    learner = Learner(Config(algo=AlgoConfig(name="mappo"), model=model), world)
    actor = NumpyActor(learner.actor_weights(), model)
    mean, _, _ = actor.act(np.zeros((1, 5), np.float32), actor.initial_memory(1), None)
    np.testing.assert_allclose(mean, [[0.0, 0.4]], atol=1e-6)
    moved, _, _ = actor.act(np.zeros((1, 5), np.float32), actor.initial_memory(1), np.ones((1, 2)))
    np.testing.assert_allclose(moved - mean, [[0.5, 0.2]], rtol=1e-5)


def test_log_prob_is_the_sum_over_action_dimensions_of_the_unclipped_gaussian() -> None:
    action, mean, log_std = torch.tensor([[5.0, -2.0]]), torch.tensor([[0.5, 0.0]]), torch.tensor([0.1, -0.4])
    normal = torch.distributions.Normal(mean, log_std.exp())
    torch.testing.assert_close(log_prob(action, mean, log_std), normal.log_prob(action).sum(-1))


def test_kl_is_that_of_new_to_old() -> None:
    mean, old_mean = torch.tensor([[0.5, 0.0]]), torch.tensor([[0.2, 0.3]])
    log_std, old_log_std = torch.tensor([-1.0, -0.5]), torch.tensor([-0.7, -0.9])
    new = torch.distributions.Normal(mean, log_std.exp())
    old = torch.distributions.Normal(old_mean, old_log_std.exp())
    expected = torch.distributions.kl_divergence(new, old).sum(-1)
    torch.testing.assert_close(gaussian_kl(mean, log_std, old_mean, old_log_std), expected)
    assert math.isclose(float(gaussian_kl(mean, log_std, mean, log_std)), 0.0, abs_tol=1e-7)
