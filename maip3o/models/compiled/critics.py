"""A critic's epochs on a CPU as one compiled call: what torch does step by step in algo.critic_update.

With minibatches of 64 steps torch spends nearly all of its time on calls, which cost nothing here: a whole update of
one robot (5,000 steps, 10 passes, 790 minibatches) takes half the time, one of the cars (16 minibatches) 0.85 of it.
float32, sums of losses and norms in double precision.
"""

from __future__ import annotations

import math

import numpy as np

from maip3o.jit import fused
from maip3o.models.compiled.layers import layer_backward, layer_forward, transposed

ZERO, ONE = np.float32(0.0), np.float32(1.0)


@fused
def fit_critic(  # type: ignore[no-untyped-def]
    inputs, target, team_target, moment_start, order, bounds, mean, std, huber_delta, relu,
    weights, biases, weights_exp_avg, weights_exp_avg_sq, biases_exp_avg, biases_exp_avg_sq,
    steps_before, lr, beta1, beta2, eps, max_norm,
    outputs, d_outputs, d_weights, d_biases,
):  # fmt: skip
    """Adam over minibatches of moments: minibatch b is order[bounds[b] : bounds[b + 1]].

    inputs [S, I], target [S]; team_target [G]: if not empty, the sum over each moment is fitted to it instead; mean and
    std of the returns. Tuples over layers, the last one without activation: weights, biases, and Adam's averages of
    their gradients (exp_avg) and of the squares (exp_avg_sq), all of which are changed. The last line is scratch:
    outputs and d_outputs [at least the rows of any minibatch, outputs of a layer]; their first layer is the inputs.

    Returns the sums of the losses and of the gradient norms before clipping, and how many minibatches were fitted. That
    is fewer than there are if one was not finite; nothing of that one is applied.
    """
    layers, team = len(weights), len(team_target) > 0
    loss_sum, norm_sum, step = 0.0, 0.0, steps_before
    for b in range(len(bounds) - 1):
        moments = order[bounds[b] : bounds[b + 1]]
        rows = _rows(moments, moment_start)
        n = len(rows)
        _gather(inputs, rows, outputs[0])
        for k in range(layers):
            weight_t = transposed(weights[k])
            layer_forward(outputs[k][:n], weight_t, biases[k], outputs[k + 1][:n], relu, k == layers - 1)

        values, d_values = outputs[layers][:n, 0], d_outputs[layers][:n, 0]
        loss = _huber(values, d_values, rows, moments, moment_start, target, team_target, team, mean, std, huber_delta)

        squares = 0.0
        for k in range(layers - 1, -1, -1):
            d_weights[k].fill(ZERO)
            d_biases[k].fill(ZERO)
            before, after, d_after = outputs[k][:n], outputs[k + 1][:n], d_outputs[k + 1][:n]
            d_before = d_outputs[k][: n if k > 0 else 0]
            linear = k == layers - 1
            layer_backward(before, weights[k], after, d_after, relu, linear, d_before, d_weights[k], d_biases[k])
            squares += _squares(d_weights[k].ravel()) + _squares(d_biases[k])
        norm = math.sqrt(squares)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return loss_sum, norm_sum, b
        loss_sum, norm_sum, step = loss_sum + loss, norm_sum + norm, step + 1
        scale = np.float32(max_norm / (norm + 1e-6)) if norm > max_norm else ONE
        rate, root = lr / (1.0 - beta1**step), math.sqrt(1.0 - beta2**step)
        for k in range(layers):
            first, second = weights_exp_avg[k].ravel(), weights_exp_avg_sq[k].ravel()
            _adam(weights[k].ravel(), d_weights[k].ravel(), first, second, scale, rate, root, beta1, beta2, eps)
            _adam(biases[k], d_biases[k], biases_exp_avg[k], biases_exp_avg_sq[k], scale, rate, root, beta1, beta2, eps)
    return loss_sum, norm_sum, len(bounds) - 1


@fused
def _rows(moments, moment_start):  # type: ignore[no-untyped-def]
    count = 0
    for moment in moments:
        count += moment_start[moment + 1] - moment_start[moment]
    rows = np.empty(count, np.int64)
    at = 0
    for moment in moments:
        for row in range(moment_start[moment], moment_start[moment + 1]):
            rows[at] = row
            at += 1
    return rows


@fused
def _gather(inputs, rows, out):  # type: ignore[no-untyped-def]
    # By elements: an assignment of whole rows takes numba five seconds to compile, for its error messages.
    for i in range(len(rows)):
        source, row = inputs[rows[i]], out[i]
        for j in range(len(row)):
            row[j] = source[j]


@fused
def _huber(output, gradient, rows, moments, moment_start, target, team_target, team, mean, std, delta):  # type: ignore[no-untyped-def]
    """Mean loss of the values mean + std * output [n], or of their sums over moments; fills its gradient [n]."""
    loss, at = 0.0, 0
    # The team's error grows with the square root of the agents in it: back to the scale of one agent.
    unit = std * math.sqrt(len(rows) / len(moments)) if team else std
    for moment in moments:
        count = moment_start[moment + 1] - moment_start[moment]
        groups, size = (1, count) if team else (count, 1)
        for _ in range(groups):
            total = 0.0
            for i in range(at, at + size):
                total += mean + std * output[i]
            error = (total - (team_target[moment] if team else target[rows[at]])) / unit
            loss += 0.5 * error * error if abs(error) <= delta else delta * (abs(error) - 0.5 * delta)
            slope = min(max(error, -delta), delta) if error == error else error
            terms = len(moments) if team else len(rows)
            for i in range(at, at + size):
                gradient[i] = np.float32(slope * std / unit / terms)
            at += size
    return loss / (len(moments) if team else len(rows))


@fused
def _squares(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += np.float64(value) * np.float64(value)
    return total


@fused
def _adam(values, gradient, exp_avg, exp_avg_sq, scale, rate, root, beta1, beta2, eps):  # type: ignore[no-untyped-def]
    """values [n] move by rate; root: of the second moment's bias correction."""
    keep1, keep2, rate32 = np.float32(beta1), np.float32(beta2), np.float32(rate)
    new1, new2 = np.float32(1.0 - beta1), np.float32(1.0 - beta2)
    root32, eps32 = np.float32(root), np.float32(eps)
    for i in range(len(values)):
        g = gradient[i] * scale
        exp_avg[i] = keep1 * exp_avg[i] + new1 * g
        exp_avg_sq[i] = keep2 * exp_avg_sq[i] + new2 * g * g
        values[i] -= rate32 * exp_avg[i] / (np.sqrt(exp_avg_sq[i]) / root32 + eps32)
