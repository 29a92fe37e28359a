"""A policy that acts step by step, outside of our own rollout: its memory of each agent is kept here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from maip3o.config.schema import ModelConfig
from maip3o.envs.contract import FloatArray
from maip3o.errors import UserError
from maip3o.models.compiled.act import NumpyActor


class Acting:
    """Draws as `rollout` does: with the episode's seed, and agents named in the order of their slots, it acts alike."""

    def __init__(self, weights: dict[str, FloatArray], model: ModelConfig, observation_size: int) -> None:
        self._actor = NumpyActor(weights, model)
        self._observation_size = observation_size
        self.reset(0)

    def reset(self, seed: int) -> None:
        self._noise = np.random.default_rng([seed, 1])
        self._row_of: dict[object, int] = {}
        self._memory = self._actor.initial_memory(0)

    def act(self, observations: FloatArray, names: list[object], deterministic: bool) -> FloatArray:
        """observations [A, O] of the agents with these names -> actions [A, U]."""
        if observations.ndim != 2 or observations.shape[1] != self._observation_size:
            raise UserError(
                f"observations of shape {observations.shape}: this policy reads {self._observation_size} numbers each"
            )
        rows = [self._row_of.setdefault(name, len(self._row_of)) for name in names]
        newcomers = len(self._row_of) - len(self._memory)
        self._memory = np.concatenate([self._memory, self._actor.initial_memory(newcomers)])
        noise = None
        if not deterministic:  # for all that were ever seen: whether one is left must not shift the others' noise
            noise = self._noise.standard_normal((len(self._row_of), self._actor.action_size), np.float32)[rows]
        action, _, self._memory[rows] = self._actor.act(observations, self._memory[rows], noise)
        return action


def stacked(observations: Mapping[str, FloatArray]) -> FloatArray:
    return np.stack([np.asarray(observation, np.float32) for observation in observations.values()])
