"""Gradients and Adam's step of feed-forward layers, compiled: what the epochs of critics and actor share."""

from __future__ import annotations

import math

import numpy as np

from maip3o.jit import fused
from maip3o.models.compiled.layers import layer_backward, layer_forward, transposed

ZERO, ONE = np.float32(0.0), np.float32(1.0)


@fused
def forward(inputs, rows, weights, biases, outputs, relu):  # type: ignore[no-untyped-def]
    """Gather the rows [n] of inputs [S, I] into outputs[0] and run them through all layers, the last one a head.

    outputs: tuple of [at least n, size], inputs first.
    """
    n, layers = len(rows), len(weights)
    gather(inputs, rows, outputs[0])
    for k in range(layers):
        layer_forward(outputs[k][:n], transposed(weights[k]), biases[k], outputs[k + 1][:n], relu, k == layers - 1)


@fused
def backward(n, weights, outputs, d_outputs, d_weights, d_biases, relu):  # type: ignore[no-untyped-def]
    """Fill d_weights and d_biases from the last of d_outputs [at least n, size]; returns the sum of their squares."""
    total, layers = 0.0, len(weights)
    for k in range(layers - 1, -1, -1):
        d_weights[k].fill(ZERO)
        d_biases[k].fill(ZERO)
        d_before = d_outputs[k][: n if k > 0 else 0]
        before, after, d_after = outputs[k][:n], outputs[k + 1][:n], d_outputs[k + 1][:n]
        layer_backward(before, weights[k], after, d_after, relu, k == layers - 1, d_before, d_weights[k], d_biases[k])
        total += squares(d_weights[k].ravel()) + squares(d_biases[k])
    return total


@fused
def clipped(norm, max_norm):  # type: ignore[no-untyped-def]
    """The factor that brings a gradient of this norm down to max_norm at most."""
    return np.float32(max_norm / (norm + 1e-6)) if norm > max_norm else ONE


@fused
def adam(values, gradient, exp_avg, exp_avg_sq, scale, step, lr, beta1, beta2, eps):  # type: ignore[no-untyped-def]
    """Adam's step number `step` of values [n]; exp_avg and exp_avg_sq: of the gradient times scale."""
    rate, root = lr / (1.0 - beta1**step), math.sqrt(1.0 - beta2**step)
    keep1, keep2, rate32 = np.float32(beta1), np.float32(beta2), np.float32(rate)
    new1, new2 = np.float32(1.0 - beta1), np.float32(1.0 - beta2)
    root32, eps32 = np.float32(root), np.float32(eps)
    for i in range(len(values)):
        g = gradient[i] * scale
        exp_avg[i] = keep1 * exp_avg[i] + new1 * g
        exp_avg_sq[i] = keep2 * exp_avg_sq[i] + new2 * g * g
        values[i] -= rate32 * exp_avg[i] / (np.sqrt(exp_avg_sq[i]) / root32 + eps32)


@fused
def adam_layers(values, gradients, exp_avg, exp_avg_sq, scale, step, lr, beta1, beta2, eps):  # type: ignore[no-untyped-def]
    """The same for a tuple of arrays."""
    for k in range(len(values)):
        first, second = exp_avg[k].ravel(), exp_avg_sq[k].ravel()
        adam(values[k].ravel(), gradients[k].ravel(), first, second, scale, step, lr, beta1, beta2, eps)


@fused
def gather(inputs, rows, out):  # type: ignore[no-untyped-def]
    # By elements: an assignment of whole rows takes numba five seconds to compile, for its error messages.
    for i in range(len(rows)):
        source, row = inputs[rows[i]], out[i]
        for j in range(len(row)):
            row[j] = source[j]


@fused
def squares(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += np.float64(value) * np.float64(value)
    return total
