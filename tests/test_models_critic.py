"""Normalisers and critics."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maip3o.config.schema import ModelConfig
from maip3o.models.critic import Critic, critic_inputs, team_value
from maip3o.models.normaliser import ObservationNormaliser, ValueNormaliser


def test_observation_statistics_merge_to_those_of_all_data() -> None:
    parts = [torch.randn(n, 4) * (i + 1) + i for i, n in enumerate((3, 50, 1, 20))]
    normaliser = ObservationNormaliser(4, enabled=True)
    for part in parts:
        normaliser.update(part)
    rows = torch.cat(parts).double()
    torch.testing.assert_close(normaliser.mean, rows.mean(0))
    torch.testing.assert_close(normaliser.variance, rows.var(0, unbiased=False))
    out = normaliser(torch.cat(parts))
    torch.testing.assert_close(out.mean(0), torch.zeros(4), atol=1e-5, rtol=0)


def test_normalisers_are_in_the_state_dict_and_come_back() -> None:
    critic = Critic(3, ModelConfig())
    critic.update_normaliser(torch.tensor([1.0, 5.0, 6.0]))
    other = Critic(3, ModelConfig())
    other.load_state_dict(critic.state_dict())
    assert other.normaliser.statistics() == critic.normaliser.statistics() != (0.0, 1.0)


def test_a_feature_that_never_moved_cannot_explode() -> None:
    normaliser = ObservationNormaliser(1, enabled=True)
    normaliser.update(torch.ones(100, 1))
    assert float(normaliser(torch.tensor([[1.0]]))) == 0.0
    assert abs(float(normaliser(torch.tensor([[50.0]])))) <= 10.0


def test_new_statistics_change_no_prediction() -> None:
    torch.manual_seed(0)
    critic = Critic(3, ModelConfig())
    inputs = critic_inputs(torch.randn(9, 3), torch.randn(9, 64))
    before = critic(inputs)
    for scale in (100.0, 0.01, 3.0):
        critic.update_normaliser(scale * torch.randn(50) + scale)
        torch.testing.assert_close(critic(inputs), before, rtol=1e-4, atol=1e-4)


def test_statistics_follow_the_returns() -> None:
    normaliser = ValueNormaliser(enabled=True)
    assert normaliser.statistics() == (0.0, 1.0)
    normaliser.update(torch.tensor([2.0, 4.0]))
    assert normaliser.statistics() == pytest.approx((3.0, 1.0))
    for _ in range(200):
        normaliser.update(torch.tensor([10.0, 20.0]))
    assert normaliser.statistics() == pytest.approx((15.0, 5.0))
    off = ValueNormaliser(enabled=False)
    off.update(torch.tensor([2.0, 4.0]))
    assert off.statistics() == (0.0, 1.0)


def test_team_value_is_the_sum_over_the_living() -> None:
    value = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    moment = torch.tensor([0, 2, 0, 1, 2])
    np.testing.assert_array_equal(team_value(value, moment, 4), [4.0, 4.0, 7.0, 0.0])


def test_critic_of_a_feed_forward_policy_needs_no_memory() -> None:
    critic = Critic(3, ModelConfig(recurrent=False))
    assert critic(critic_inputs(torch.randn(5, 3), torch.zeros(5, 0))).shape == (5,)
