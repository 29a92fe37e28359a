"""The actor without torch, for workers: the same float32 arithmetic, one compiled call per step.

Each agent's row is computed by itself in a fixed order, so the result depends neither on the other agents nor on any
BLAS library or thread count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from maip3o.config.schema import ModelConfig
from maip3o.jit import fused

Float32 = NDArray[np.float32]
HALF_LOG_2_PI = np.float32(0.5 * math.log(2.0 * math.pi))
OBSERVATION_CLIP = np.float32(10.0)
LOG2_E = np.float32(1.0 / math.log(2.0))
LN2_HIGH = np.float32(0.693359375)  # exact in few bits: n * LN2_HIGH does not round
LN2_LOW = np.float32(math.log(2.0) - 0.693359375)
TAYLOR = tuple(np.float32(1.0 / math.factorial(n)) for n in range(8))


class NumpyActor:
    """Twin of models.actor.Actor for one step of A agents. O observation, H memory, U action."""

    def __init__(self, weights: dict[str, Float32], model: ModelConfig) -> None:
        self.memory_size = model.memory_size if model.recurrent else 0
        self.action_size = len(weights["log_std"])
        self._relu = model.activation == "relu"
        names = [f"encoder.{2 * i}" for i in range(len(model.hidden_sizes))]
        self._sizes = np.array([len(weights["shift"]), *model.hidden_sizes], np.int64)
        parts = [weights["shift"], weights["scale"]]
        for name in names:
            parts += [weights[f"{name}.weight"].T, weights[f"{name}.bias"]]
        if self.memory_size:
            parts += [weights["gru.weight_ih"].T, weights["gru.bias_ih"]]
            parts += [weights["gru.weight_hh"].T, weights["gru.bias_hh"]]
        parts += [weights["head.weight"].T, weights["head.bias"], weights["log_std"], np.exp(weights["log_std"])]
        self._weights = np.concatenate([np.ascontiguousarray(part, np.float32).reshape(-1) for part in parts])

    def initial_memory(self, agents: int) -> Float32:
        return np.zeros((agents, self.memory_size), np.float32)

    def act(
        self, observation: Float32, memory: Float32, noise: NDArray[np.floating] | None
    ) -> tuple[Float32, Float32, Float32]:
        """observation [A, O], memory [A, H], noise [A, U] or None for the mean.

        Returns action [A, U], log_prob [A], memory [A, H].
        """
        if noise is None:
            noise = np.zeros((len(observation), self.action_size), np.float32)
        return _act(
            np.ascontiguousarray(observation, np.float32),
            np.ascontiguousarray(memory, np.float32),
            np.ascontiguousarray(noise, np.float32),
            self._weights,
            self._sizes,
            self._relu,
        )


@fused
def _act(observation, memory, noise, weights, sizes, relu):  # type: ignore[no-untyped-def]
    agents, memory_size, action_size = observation.shape[0], memory.shape[1], noise.shape[1]
    shift, at = _take(weights, 0, sizes[0])
    scale, at = _take(weights, at, sizes[0])
    x = np.empty_like(observation)
    for a in range(agents):
        for i in range(sizes[0]):
            value = (observation[a, i] - shift[i]) * scale[i]
            x[a, i] = min(max(value, -OBSERVATION_CLIP), OBSERVATION_CLIP)
    for layer in range(len(sizes) - 1):
        x, at = _linear(x, weights, at, sizes[layer + 1])
        if relu:
            _relu(x)
        else:
            _tanh(x)
    after = memory
    if memory_size > 0:
        inputs, at = _linear(x, weights, at, 3 * memory_size)
        recurrent, at = _linear(memory, weights, at, 3 * memory_size)
        after = _gru(inputs, recurrent, memory)
        x = after
    action, at = _linear(x, weights, at, action_size)
    log_std, at = _take(weights, at, action_size)
    std, at = _take(weights, at, action_size)
    log_prob = np.zeros(agents, np.float32)
    for a in range(agents):
        for u in range(action_size):
            z = noise[a, u]
            action[a, u] += std[u] * z
            log_prob[a] += np.float32(-0.5) * z * z - log_std[u] - HALF_LOG_2_PI
    return action, log_prob, after


@fused
def _take(weights, at, size):  # type: ignore[no-untyped-def]
    """The next `size` numbers of the flat weights, and where they end."""
    return weights[at : at + size], at + size


@fused
def _linear(x, weights, at, outputs):  # type: ignore[no-untyped-def]
    """x @ weight + bias, with the weight [inputs, outputs] and then the bias taken from `weights` at `at`."""
    agents, inputs = x.shape
    weight = weights[at : at + inputs * outputs].reshape(inputs, outputs)
    at += inputs * outputs
    bias = weights[at : at + outputs]
    out = np.empty((agents, outputs), np.float32)
    whole = inputs - inputs % 4
    for a in range(agents):
        row = out[a]
        for j in range(outputs):
            row[j] = bias[j]
        for i in range(0, whole, 4):
            x0, x1, x2, x3 = x[a, i], x[a, i + 1], x[a, i + 2], x[a, i + 3]
            w0, w1, w2, w3 = weight[i], weight[i + 1], weight[i + 2], weight[i + 3]
            for j in range(outputs):
                row[j] += x0 * w0[j] + x1 * w1[j] + x2 * w2[j] + x3 * w3[j]
        for i in range(whole, inputs):
            x0, w0 = x[a, i], weight[i]
            for j in range(outputs):
                row[j] += x0 * w0[j]
    return out, at + outputs


@fused
def _exp_negative(x):  # type: ignore[no-untyped-def]
    """exp(x) for x <= 0, flat array, in a form that vectorises: 2^n times the Taylor series of the rest."""
    exponent = np.empty(x.size, np.int32)
    series = np.empty(x.size, np.float32)
    for i in range(x.size):
        value = max(x[i], np.float32(-87.0))
        n = np.int32(value * LOG2_E - np.float32(0.5))
        r = (value - n * LN2_HIGH) - n * LN2_LOW
        total = TAYLOR[7]
        total = total * r + TAYLOR[6]
        total = total * r + TAYLOR[5]
        total = total * r + TAYLOR[4]
        total = total * r + TAYLOR[3]
        total = total * r + TAYLOR[2]
        total = total * r + TAYLOR[1]
        series[i] = total * r + TAYLOR[0]
        exponent[i] = (n + 127) << 23
    power = exponent.view(np.float32)
    for i in range(x.size):
        series[i] *= power[i]
    return series


@fused
def _tanh(x):  # type: ignore[no-untyped-def]
    """In place: sign(x) (1 - e) / (1 + e) with e = exp(-2 |x|)."""
    flat = x.reshape(-1)
    e = np.empty_like(flat)
    for i in range(flat.size):
        e[i] = np.float32(-2.0) * abs(flat[i])
    e = _exp_negative(e)
    for i in range(flat.size):
        flat[i] = math.copysign((np.float32(1.0) - e[i]) / (np.float32(1.0) + e[i]), flat[i])


@fused
def _sigmoid(flat):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x)), by exp(-|x|), which cannot overflow."""
    e = np.empty_like(flat)
    for i in range(flat.size):
        e[i] = -abs(flat[i])
    e = _exp_negative(e)
    for i in range(flat.size):
        numerator = e[i] if flat[i] < 0 else np.float32(1.0)
        flat[i] = numerator / (np.float32(1.0) + e[i])


@fused
def _relu(x):  # type: ignore[no-untyped-def]
    flat = x.reshape(-1)
    for i in range(flat.size):
        flat[i] = max(flat[i], np.float32(0.0))


@fused
def _gru(inputs, recurrent, memory):  # type: ignore[no-untyped-def]
    agents, size = memory.shape
    gates = np.empty((agents, 2 * size), np.float32)
    new = np.empty((agents, size), np.float32)
    for a in range(agents):
        for j in range(2 * size):
            gates[a, j] = inputs[a, j] + recurrent[a, j]
    _sigmoid(gates.reshape(-1))
    for a in range(agents):
        for j in range(size):
            new[a, j] = inputs[a, 2 * size + j] + gates[a, j] * recurrent[a, 2 * size + j]
    _tanh(new)
    for a in range(agents):
        for j in range(size):
            new[a, j] += gates[a, size + j] * (memory[a, j] - new[a, j])
    return new
