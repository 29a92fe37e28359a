"""A constrained task whose optimum is known: MAIP3O reaches it within the limit, MAPPO runs through it."""

from __future__ import annotations

import numpy as np
import pytest
from toy_episodes import toy_config, toy_learner, toy_rollouts

from maip3o.algo.learner import Learner
from maip3o.envs.toy import ToyEnv
from maip3o.models.compiled.act import NumpyActor

HORIZON, HAZARD, LIMIT = 8, 0.3, 0.2


def best_speeds(price: float) -> list[float]:
    """The speeds that maximise reward - price * P(crash): V_t = max_u u + (1 - h u^2) V_t+1 - price h u^2."""
    value, speeds = 0.0, []
    for _ in range(HORIZON):
        weight = HAZARD * (value + price)
        speed = min(1.0, 1.0 / (2.0 * weight)) if weight > 0 else 1.0
        value += speed - weight * speed**2
        speeds.append(speed)
    return speeds[::-1]


def outcome(speeds: list[float]) -> tuple[float, float]:
    """(expected return, share of crashes) of a car that drives these speeds, exactly."""
    alive, total = 1.0, 0.0
    for speed in speeds:
        total += alive * speed
        alive *= 1.0 - HAZARD * speed**2
    return total, 1.0 - alive


def constrained_optimum() -> tuple[float, float]:
    low, high = 0.0, 100.0
    for _ in range(60):
        price = (low + high) / 2
        low, high = (price, high) if outcome(best_speeds(price))[1] > LIMIT else (low, price)
    return outcome(best_speeds(high))


def learn(method: str, iterations: int = 40) -> tuple[Learner, float]:
    """The learner, and the share of crashes in the last ten iterations' rollouts."""
    model = {"hidden_sizes": [16], "recurrent": False}
    config = toy_config(method, model, epochs=8, minibatches=2, lr=4e-3, critic_lr=4e-3, kl_max=0.05)
    config.constraints["termination"].limit = LIMIT
    config.algo.penalty.eta, config.algo.penalty.alpha = 5.0, 0.05
    learner = toy_learner(config)
    env = ToyEnv(10, HORIZON, HAZARD)
    crashes = []
    for i in range(iterations):
        metrics = learner.update(toy_rollouts(learner, env, 20, first_seed=1_000_000 + 100 * i))
        crashes.append(metrics["constraint/termination/mean"])
    return learner, float(np.mean(crashes[-10:]))


def mean_speeds(learner: Learner) -> list[float]:
    actor = NumpyActor(learner.actor_weights(), learner.config.model)
    ages = np.arange(HORIZON) / HORIZON
    observation = np.stack((np.ones(HORIZON), ages, np.zeros(HORIZON)), -1).astype(np.float32)
    action, _, _ = actor.act(observation, actor.initial_memory(HORIZON), None)
    return [float(speed) for speed in np.clip(action[:, -1], 0.0, 1.0)]


@pytest.mark.slow
def test_maip3o_is_near_the_constrained_optimum_within_the_limit_and_mappo_violates_it() -> None:
    best_return, best_crashes = constrained_optimum()
    assert best_crashes == pytest.approx(LIMIT)

    learner, sampled_crashes = learn("ip3o")
    achieved, crashes = outcome(mean_speeds(learner))
    assert crashes <= LIMIT
    assert sampled_crashes <= 1.15 * LIMIT
    assert achieved >= 0.85 * best_return

    learner, sampled_crashes = learn("ppo")
    achieved, crashes = outcome(mean_speeds(learner))
    assert crashes > 2 * LIMIT
    assert sampled_crashes > 2 * LIMIT
    assert achieved > 1.2 * best_return
