"""A constrained task whose optimum is known: nine algorithms come near it within the limit, PPO runs through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from toy_episodes import toy_config, toy_learner, toy_rollouts

from maip3o.algo.learner import Learner
from maip3o.config.algorithms import METHODS
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


def outcome(speeds: Sequence[NDArray[np.float64] | float]) -> tuple[float, float]:
    """(expected return, share of crashes) of a car that draws one of these speeds at each step, exactly."""
    alive, total = 1.0, 0.0
    for speed in speeds:
        total += alive * float(np.mean(speed))
        alive *= 1.0 - HAZARD * float(np.mean(np.square(speed)))
    return total, 1.0 - alive


def constrained_optimum() -> tuple[float, float]:
    low, high = 0.0, 100.0
    for _ in range(60):
        price = (low + high) / 2
        low, high = (price, high) if outcome(best_speeds(price))[1] > LIMIT else (low, price)
    return outcome(best_speeds(high))


# Where the defaults are for limits of 25, or too slow for 40 iterations.
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo_lagrangian": {"settings": {"multiplier_start": 2.0, "multiplier_lr": 0.06}},
    "cppo_pid": {"settings": {"kp": 4.0, "ki": 1.0, "kd": 4.0, "smoothing": 0.5}},
    "focops": {"settings": {"multiplier_start": 3.0, "multiplier_lr": 0.1, "multiplier_max": 10.0}},
    "cup": {"settings": {"multiplier_start": 0.4, "multiplier_lr": 0.02}},
    "cpo": {"cost_scale": "life", "cost_advantage": "centred", "settings": {"cg_iterations": 8}},
    "pcpo": {"cost_scale": "life", "cost_advantage": "centred", "settings": {"cg_iterations": 8}},
}


def learn(method: str, iterations: int = 40) -> tuple[float, float]:
    """(return, share of crashes) of the last ten policies in the mean, their noise included."""
    model = {"hidden_sizes": [16], "recurrent": False}
    settings = {"epochs": 8, "minibatches": 2, "lr": 3e-3, "critic_lr": 4e-3, "kl_max": 0.05}
    config = toy_config(method, model, **settings, **SETTINGS.get(method, {}))
    config.constraints["termination"].limit = LIMIT
    config.algo.penalty.eta, config.algo.penalty.alpha = 5.0, 0.02 if method == "ipo" else 0.05
    learner = toy_learner(config)
    env = ToyEnv(100, HORIZON, HAZARD)
    outcomes = []
    for i in range(iterations):
        learner.update(toy_rollouts(learner, env, 4, first_seed=1_000_000 + 100 * i))
        outcomes.append(outcome(speeds_of(learner)))
    reward, crashes = np.mean(outcomes[-10:], axis=0)
    return float(reward), float(crashes)


def speeds_of(learner: Learner) -> list[NDArray[np.float64]]:
    """At each age the speeds of evenly spread quantiles of the policy."""
    actor = NumpyActor(learner.actor_weights(), learner.config.model)
    ages = np.arange(HORIZON) / HORIZON
    observation = np.stack((np.ones(HORIZON), ages, np.zeros(HORIZON)), -1).astype(np.float32)
    mean, _, _ = actor.act(observation, actor.initial_memory(HORIZON), None)
    noise = norm.ppf((np.arange(1000) + 0.5) / 1000) * float(learner.actor.log_std.detach().exp()[-1])
    return [np.clip(one + noise, 0.0, 1.0) for one in mean[:, -1]]


@pytest.mark.parametrize("method", [method for method in METHODS if method != "ppo"])
def test_within_the_limit_and_near_the_constrained_optimum(method: str) -> None:
    best, best_crashes = constrained_optimum()
    assert best_crashes == pytest.approx(LIMIT)
    reward, crashes = learn(method)
    assert crashes <= 1.05 * LIMIT  # J_C is known from 400 lives at a time
    assert reward >= 0.7 * best  # the optimum has no noise to pay for


def test_without_the_constraint_it_is_violated() -> None:
    reward, crashes = learn("ppo")
    assert crashes > 2 * LIMIT
    assert reward > 1.2 * constrained_optimum()[0]
