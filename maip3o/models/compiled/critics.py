"""A critic's epochs on a CPU as one compiled call: what torch does step by step in algo.critic_update.

With minibatches of 64 steps torch spends nearly all of its time on calls, which cost nothing here: a whole update of
one robot (5,000 steps, 10 passes, 790 minibatches) takes half the time, one of the cars (16 minibatches) 0.85 of it.
float32, sums of losses and norms in double precision.
"""

from __future__ import annotations

import math

import numpy as np

from maip3o.jit import fused
from maip3o.models.compiled.training import adam_layers, backward, clipped, forward


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
    team = len(team_target) > 0
    loss_sum, norm_sum, step = 0.0, 0.0, steps_before
    for b in range(len(bounds) - 1):
        moments = order[bounds[b] : bounds[b + 1]]
        rows = _rows(moments, moment_start)
        n = len(rows)
        forward(inputs, rows, weights, biases, outputs, relu)
        values, d_values = outputs[len(weights)][:n, 0], d_outputs[len(weights)][:n, 0]
        loss = _huber(values, d_values, rows, moments, moment_start, target, team_target, team, mean, std, huber_delta)
        norm = math.sqrt(backward(n, weights, outputs, d_outputs, d_weights, d_biases, relu))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return loss_sum, norm_sum, b
        loss_sum, norm_sum, step = loss_sum + loss, norm_sum + norm, step + 1
        scale = clipped(norm, max_norm)
        adam_layers(weights, d_weights, weights_exp_avg, weights_exp_avg_sq, scale, step, lr, beta1, beta2, eps)
        adam_layers(biases, d_biases, biases_exp_avg, biases_exp_avg_sq, scale, step, lr, beta1, beta2, eps)
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
