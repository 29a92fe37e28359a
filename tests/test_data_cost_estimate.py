"""J_C: plain, and as it would be had nobody been cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_episodes import toy_config, toy_learner, toy_rollouts

from maip3o.data.batch import make_batch
from maip3o.data.cost_estimate import estimate_costs, uncensored_mean
from maip3o.envs.toy import ToyEnv


def lives(lengths: list[int], eliminated: list[bool], ended: list[bool]) -> tuple:
    """age, cost, life_length, ended of lives whose only cost is 1 at elimination."""
    length = np.array(lengths)
    age = np.concatenate([np.arange(n) for n in lengths])
    cost = np.zeros((len(age), 1))
    cost[np.cumsum(length) - 1, 0] = eliminated
    return age, cost, length, np.array(ended)


def test_aalen_johansen_by_hand() -> None:
    # At age 0 (5 at risk): one eliminated. At age 1 (4): one arrives, one is cut. At age 2 (2): one eliminated.
    # At age 3 (1): cut. The plain mean says 2 / 5.
    case = lives([1, 2, 2, 3, 4], [True, False, False, True, False], [True, True, False, True, False])
    # S(1) = 4/5, S(2) = 4/5 * 3/4 (the arrival is an end, the cut is not).
    assert uncensored_mean(*case)[0] == pytest.approx(1 / 5 + (4 / 5) * (3 / 4) * (1 / 2))


def test_arrival_competes_with_elimination() -> None:
    """Half of the cars arrive at once, the rest are eliminated later. 1 - Kaplan-Meier would say 1."""
    case = lives([1, 1, 2, 2], [False, False, True, True], [True] * 4)
    assert uncensored_mean(*case)[0] == pytest.approx(0.5)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), agents=st.integers(1, 5))
def test_without_cuts_both_estimates_agree_for_any_cost(seed: int, agents: int) -> None:
    learner = toy_learner(toy_config())
    costs = ("termination", "speed")
    env = ToyEnv(agents, horizon=10, hazard=0.4, distance=2.0, end_rule="all", cost_names=costs)
    batch = make_batch(toy_rollouts(learner, env, 4, first_seed=seed))
    estimate = estimate_costs(batch, "per_agent")
    np.testing.assert_allclose(estimate["mean"], estimate["uncensored"], rtol=1e-12)
    for name, team in estimate_costs(batch, "per_team").items():
        np.testing.assert_allclose(team, agents * estimate[name])


def half_rule_episodes(hazard: float, arrival: float, rng: np.random.Generator) -> tuple:
    """400 episodes of ten cars with constant risks per step, stopped when more than five are eliminated."""
    lengths, eliminated, ended = [], [], []
    for _ in range(400):
        crash, arrive = rng.geometric(hazard, 10), rng.geometric(arrival, 10)
        stop = np.sort(np.where(crash <= arrive, crash, 10**9))[5]
        length = np.minimum(np.minimum(crash, arrive), stop)
        lengths += list(length)
        eliminated += list((crash <= arrive) & (crash <= stop))
        ended += list(np.minimum(crash, arrive) <= stop)
    return lives(lengths, eliminated, ended)


def test_uncensored_estimate_finds_the_true_risk_where_the_half_rule_hides_it() -> None:
    rng = np.random.default_rng(0)
    plain, estimate, truth = [], [], []
    for hazard in (0.05, 0.2):
        arrival = 0.02
        case = half_rule_episodes(hazard, arrival, rng)
        plain.append(case[1].sum() / len(case[2]))
        estimate.append(uncensored_mean(*case)[0])
        # Of a crash and an arrival drawn per step, the crash comes first, or in the same step.
        truth.append(hazard / (1 - (1 - hazard) * (1 - arrival)))
    assert truth[1] - truth[0] > 0.15
    assert abs(plain[1] - plain[0]) < 0.07
    np.testing.assert_allclose(estimate, truth, atol=0.06)


def test_running_costs_of_cut_lives_are_completed() -> None:
    """A cost of 1 per step: its uncensored mean is the mean length of an uncut life."""
    rng = np.random.default_rng(1)
    true_length, stop = rng.integers(1, 21, 4000), rng.integers(1, 30, 4000)
    length = np.minimum(true_length, stop)
    age = np.concatenate([np.arange(n) for n in length])
    mean = uncensored_mean(age, np.ones((len(age), 1)), length, true_length <= stop)[0]
    assert mean == pytest.approx(10.5, abs=0.4)
    assert length.mean() < 8.5
