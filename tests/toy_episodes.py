"""Episodes of the toy environment for the tests of data and algorithm."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from maip3o.algo.learner import Learner
from maip3o.config.schema import AlgoConfig, Config, ConstraintConfig, ModelConfig, PenaltyConfig
from maip3o.data.episode import Episode
from maip3o.envs.toy import ToyEnv
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.rollout import rollout


def toy_config(method: str = "ip3o", model: dict[str, Any] | None = None, **algo: Any) -> Config:
    settings = {"name": method, "method": method, "penalty": PenaltyConfig(), "epochs": 2, "chunk_length": 5, **algo}
    sizes = {"hidden_sizes": [8], "memory_size": 6, **(model or {})}
    constraints = {"termination": ConstraintConfig(limit=0.1)}
    return Config(constraints=constraints, algo=AlgoConfig(**settings), model=ModelConfig(**sizes), seed=3)


def toy_learner(config: Config) -> Learner:
    return Learner(config, ToyEnv().spec)


def toy_rollouts(learner: Learner, env: ToyEnv, count: int, first_seed: int = 1_000_000) -> list[Episode]:
    actor = NumpyActor(learner.actor_weights(), learner.config.model)
    return [rollout(env, actor, first_seed + i, deterministic=False) for i in range(count)]


def with_garbage(episodes: list[Episode], rng: np.random.Generator) -> list[Episode]:
    """The same episodes with NaN, infinities and random numbers wherever no agent acted."""
    spoilt = copy.deepcopy(episodes)
    for episode in spoilt:
        dead = ~episode.active
        for name in ("observation", "memory", "action", "log_prob", "reward", "cost"):
            array = getattr(episode, name)
            array[dead] = rng.choice([np.nan, np.inf, -np.inf, 1e30, 7.0], size=array[dead].shape)
        episode.outcome[dead] = rng.integers(0, 8, dead.sum())
    return spoilt


def with_slots(episodes: list[Episode], order: np.ndarray) -> list[Episode]:
    """The same episodes with the cars in other slots: slot order[a] becomes slot a."""
    moved = copy.deepcopy(episodes)
    for episode in moved:
        for name in ("observation", "memory", "action", "log_prob", "active", "first", "reward", "cost", "outcome"):
            setattr(episode, name, getattr(episode, name)[:, order])
        episode.terminated, episode.truncated = episode.terminated[:, order], episode.truncated[:, order]
        for name in ("final_index", "life_end"):
            getattr(episode, name)[:, 1] = np.argsort(order)[getattr(episode, name)[:, 1]]
    return moved
