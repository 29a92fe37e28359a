"""GAE against closed forms, and the ways in which a life can end."""

from __future__ import annotations

import numpy as np
import pytest
from toy_episodes import toy_config, toy_learner, toy_rollouts, with_slots

from maip3o.config.schema import AlgoConfig
from maip3o.data.advantage import gae
from maip3o.data.batch import make_batch
from maip3o.data.episode import Episode
from maip3o.data.returns import compute_returns
from maip3o.envs.contract import Cost
from maip3o.envs.driving.outcomes import Cause, driving_spec
from maip3o.envs.toy import ToyEnv

G, L = 0.9, 0.8


def labelled_episode() -> Episode:
    """Two slots, five steps. Slot 0: a car dies at 1, the next enters at 2, is timed out at 4. Slot 1: arrives at 2."""
    active = np.array([[1, 1], [1, 1], [1, 1], [1, 0], [1, 0]], bool)
    first = np.array([[1, 1], [0, 0], [1, 0], [0, 0], [0, 0]], bool)
    cause = np.zeros((5, 2), np.int8)
    cause[1, 0], cause[4, 0], cause[2, 1] = Cause.CRASH_VEHICLE, Cause.TIME_OUT, Cause.ARRIVED
    reward = np.array([[1, 10], [2, 20], [3, 30], [4, 0], [5, 0]], np.float32)
    cost = (cause == Cause.CRASH_VEHICLE).astype(np.float32)[..., None]
    ends = np.argwhere(cause != 0)
    return Episode(
        seed=0,
        observation=np.arange(10, dtype=np.float32).reshape(5, 2, 1),
        memory=np.zeros((5, 2, 0), np.float32),
        action=np.zeros((5, 2, 2), np.float32),
        log_prob=np.zeros((5, 2), np.float32),
        active=active,
        first=first,
        reward=reward,
        cost=cost,
        terminated=(cause == Cause.CRASH_VEHICLE) | (cause == Cause.ARRIVED),
        truncated=cause == Cause.TIME_OUT,
        outcome=cause,
        final_index=np.array([[4, 0]]),
        final_observation=np.array([[99.0]], np.float32),
        final_memory=np.zeros((1, 0), np.float32),
        life_end=ends,
        life_measurements=np.zeros((len(ends), 2), np.float32),
        world=driving_spec(1, 2, (Cost("termination", "event"),)),
        seconds_simulate=0.0,
        seconds_infer=0.0,
    )


# Rows of the batch: slot 0's first life (t = 0, 1), its second (2, 3, 4), slot 1's life (0, 1, 2).
VALUE = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 6.0, 7.0, 8.0])
FINAL = 9.0


def returns(credit: str = "decomposed") -> tuple:
    batch = make_batch([labelled_episode()])
    algo = AlgoConfig(gamma=G, gae_lambda=L, cost_gamma=G, cost_gae_lambda=L, credit=credit)
    value = np.stack((VALUE, VALUE / 10), -1)
    return batch, compute_returns(batch, value, np.array([[FINAL, FINAL / 10]]), algo)


def test_advantage_with_death_respawn_timeout_and_arrival_is_the_closed_form() -> None:
    _, result = returns()
    d = [1 + G * 1.5 - 0.5, 2 - 1.5]  # death: nothing after it
    e = [3 + G * 3.5 - 2.5, 4 + G * 4.5 - 3.5, 5 + G * FINAL - 4.5]  # time-out: bootstrapped
    f = [10 + G * 7 - 6, 20 + G * 8 - 7, 30 - 8]  # arrival: nothing after it
    k = G * L
    expected = [d[0] + k * d[1], d[1], e[0] + k * e[1] + k**2 * e[2], e[1] + k * e[2], e[2]]
    expected += [f[0] + k * f[1] + k**2 * f[2], f[1] + k * f[2], f[2]]
    np.testing.assert_allclose(result.advantage, expected, rtol=1e-12)
    np.testing.assert_allclose(result.target, np.array(expected) + VALUE, rtol=1e-12)


def test_step_of_death_carries_the_cost_and_the_next_life_in_the_slot_does_not() -> None:
    _, result = returns()
    v = VALUE / 10
    death = 1 - v[1]
    assert result.cost_advantage[1, 0] == pytest.approx(death)
    assert result.cost_advantage[0, 0] == pytest.approx(G * v[1] - v[0] + G * L * death)
    assert result.cost_advantage[4, 0] == pytest.approx(G * FINAL / 10 - v[4])


def test_team_advantage_is_the_gae_of_the_cars_that_act() -> None:
    batch, result = returns("team")
    total = np.array([0.5 + 6, 1.5 + 7, 2.5 + 8, 3.5, 4.5])
    reward = np.array([11, 22, 33, 4, 5])
    after = np.append(total[1:], FINAL)
    after[1] -= 2.5  # the car that enters at 2 is worth nothing to the team at 1 ...
    delta = reward + G * after - total
    k = G * L
    e = [delta[2] + k * (delta[3] + k * delta[4]), delta[3] + k * delta[4], delta[4]]
    f1 = delta[1] + k * (30 - 8)  # ... nor is its advantage: of those who act at 1 only slot 1 goes on
    expected = np.array([delta[0] + k * f1, f1, *e])
    np.testing.assert_allclose(result.team_value, total)
    np.testing.assert_allclose(result.team_target, expected + total)
    np.testing.assert_allclose(result.advantage, expected[batch.moment])


def test_without_newcomers_the_team_advantage_is_the_gae_of_the_summed_rewards() -> None:
    """The team as one agent, as VDN has it: reward and value summed over the cars that live."""
    learner = toy_learner(toy_config())
    (episode,) = toy_rollouts(learner, ToyEnv(num_agents=4, horizon=12, hazard=0.15), 1)
    batch = make_batch([episode])
    rng = np.random.default_rng(3)
    value, final_value = rng.normal(size=(batch.steps, 2)), rng.normal(size=(len(batch.final_row), 2))
    result = compute_returns(batch, value, final_value, AlgoConfig(gamma=G, gae_lambda=L, credit="team"))
    steps = episode.length
    total, reward, cut = np.zeros(steps), np.zeros(steps), np.zeros(steps)
    np.add.at(total, batch.moment, value[:, 0])
    np.add.at(reward, batch.moment, batch.reward)
    np.add.at(cut, batch.moment[batch.final_row], final_value[:, 0])
    after = np.append(total[1:], 0.0) + cut
    expected = gae(reward, total, after, np.arange(steps) < steps - 1, G, L)
    np.testing.assert_allclose(result.advantage, expected[batch.moment], rtol=1e-9)


def test_lambda_one_is_the_discounted_return_minus_the_value() -> None:
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 6, 3))
    following = np.append(value[1:], np.zeros((1, 3)), 0)
    continues = np.ones((6, 3), bool)
    continues[-1] = False
    advantage = gae(reward, value, following, continues, G, 1.0)
    discounted = [sum(G ** (s - t) * reward[s] for s in range(t, 6)) for t in range(6)]
    np.testing.assert_allclose(advantage, np.array(discounted) - value, rtol=1e-12)


def test_timeout_bootstraps_with_the_stored_memory_of_that_step() -> None:
    learner = toy_learner(toy_config())
    episodes = toy_rollouts(learner, ToyEnv(num_agents=3, horizon=7, hazard=0.05), 4)
    batch = make_batch(episodes)
    assert len(batch.final_row) > 0
    assert np.abs(batch.final_memory.numpy()).min() > 0  # the memory after the last step, not a fresh one
    value, final_value = learner._values(learner.normaliser(batch.observation), batch)
    predicted = learner.predict_value(batch.final_observation.numpy(), batch.final_memory.numpy())
    np.testing.assert_allclose(final_value[:, 0], predicted, rtol=1e-6)
    algo = AlgoConfig(gae_lambda=0.0, gamma=G)
    result = compute_returns(batch, value, final_value, algo)
    rows = batch.final_row
    np.testing.assert_allclose(result.target[rows], batch.reward[rows] + G * predicted, rtol=1e-5)
    forgotten = learner.predict_value(batch.final_observation.numpy(), 0 * batch.final_memory.numpy())
    assert np.abs(forgotten - predicted).min() > 1e-4


def test_permuting_slots_permutes_advantages_and_leaves_the_team_alone() -> None:
    learner = toy_learner(toy_config())
    env = ToyEnv(num_agents=4, horizon=9, hazard=0.2, end_rule="half", respawn=True)
    episodes = toy_rollouts(learner, env, 3)
    order = np.array([2, 0, 3, 1])
    results = []
    for version in (episodes, with_slots(episodes, order)):
        batch = make_batch(version)
        value, final_value = learner._values(learner.normaliser(batch.observation), batch)
        result = compute_returns(batch, value, final_value, learner.algo)
        padded = np.zeros((batch.episodes, 9, 4))
        slot, t = np.concatenate([np.argwhere(x.active.T) for x in version]).T
        padded[np.repeat(np.arange(len(version)), [x.active.sum() for x in version]), t, slot] = result.advantage
        results.append((padded, result.team_value, result.team_target))
    (plain, team, target), (moved, moved_team, moved_target) = results
    np.testing.assert_allclose(moved, plain[:, :, order], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(moved_team, team, rtol=1e-6)
    np.testing.assert_allclose(moved_target, target, rtol=1e-6)
