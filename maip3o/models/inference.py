"""The actor without torch, for workers: the same float32 arithmetic in numpy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from maip3o.config import ModelConfig

Float32 = NDArray[np.float32]
LOG_2_PI = math.log(2.0 * math.pi)
OBSERVATION_CLIP = np.float32(10.0)


class NumpyActor:
    """Twin of models.actor.Actor for one step of A agents. O observation, H memory, U action."""

    def __init__(self, weights: dict[str, Float32], model: ModelConfig) -> None:
        self.memory_size = model.memory_size if model.recurrent else 0
        self.activation = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}[model.activation]
        self.weights = weights
        self.layers = [
            (np.ascontiguousarray(weights[f"encoder.{2 * i}.weight"].T), weights[f"encoder.{2 * i}.bias"])
            for i in range(len(model.hidden_sizes))
        ]
        self.std = np.exp(weights["log_std"])

    def initial_memory(self, agents: int) -> Float32:
        return np.zeros((agents, self.memory_size), np.float32)

    def act(
        self, observation: Float32, memory: Float32, noise: NDArray[np.floating] | None
    ) -> tuple[Float32, Float32, Float32]:
        """observation [A, O], memory [A, H], noise [A, U] or None for the mean -> action [A, U], log_prob [A], memory [A, H]"""
        w = self.weights
        x = np.clip((observation - w["shift"]) * w["scale"], -OBSERVATION_CLIP, OBSERVATION_CLIP)
        for weight, bias in self.layers:
            x = self.activation(x @ weight + bias)
        if self.memory_size:
            memory = x = self._gru(x, memory)
        mean = x @ w["head.weight"].T + w["head.bias"]
        z = np.zeros_like(mean) if noise is None else noise.astype(np.float32)
        log_prob = (-0.5 * z * z - w["log_std"] - np.float32(0.5 * LOG_2_PI)).sum(-1, dtype=np.float32)
        return mean + self.std * z, log_prob, memory

    def _gru(self, x: Float32, h: Float32) -> Float32:
        w = self.weights
        inputs = x @ w["gru.weight_ih_l0"].T + w["gru.bias_ih_l0"]
        hidden = h @ w["gru.weight_hh_l0"].T + w["gru.bias_hh_l0"]
        size = self.memory_size
        gates = 1.0 / (1.0 + np.exp(-(inputs[:, : 2 * size] + hidden[:, : 2 * size])))
        reset, update = gates[:, :size], gates[:, size:]
        new = np.tanh(inputs[:, 2 * size :] + reset * hidden[:, 2 * size :])
        return new + update * (h - new)
