"""One minibatch of a feed-forward actor on a CPU: everything but its loss, which is the algorithm's own.

The loss gives the gradients of the mean actions and of log std; backward pass, clipping and Adam follow in one call.
With minibatches of 64 steps torch needs more time for the calls than for the sums: a whole update, critics included, is
1.6 times as fast (5,000 steps of a robot, 10 passes).
"""

from __future__ import annotations

import math

from maip3o.jit import fused
from maip3o.models.compiled.training import adam, adam_layers, backward, clipped, squares


@fused
def actor_step(  # type: ignore[no-untyped-def]
    n, outputs, d_outputs, weights, biases, log_std, d_weights, d_biases, d_log_std, relu,
    weights_exp_avg, weights_exp_avg_sq, biases_exp_avg, biases_exp_avg_sq, log_std_exp_avg, log_std_exp_avg_sq,
    step, lr, beta1, beta2, eps, max_norm,
):  # fmt: skip
    """Adam's step number `step` from the gradients of the mean (the last of d_outputs [n, U]) and of log std.

    outputs: of training.forward; d_outputs, d_weights, d_biases: room to work in. Returns the gradient's norm before
    clipping; where it is not finite nothing is changed.
    """
    norm = math.sqrt(backward(n, weights, outputs, d_outputs, d_weights, d_biases, relu) + squares(d_log_std))
    if math.isfinite(norm):
        scale = clipped(norm, max_norm)
        adam_layers(weights, d_weights, weights_exp_avg, weights_exp_avg_sq, scale, step, lr, beta1, beta2, eps)
        adam_layers(biases, d_biases, biases_exp_avg, biases_exp_avg_sq, scale, step, lr, beta1, beta2, eps)
        adam(log_std, d_log_std, log_std_exp_avg, log_std_exp_avg_sq, scale, step, lr, beta1, beta2, eps)
    return norm
