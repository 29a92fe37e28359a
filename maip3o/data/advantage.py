"""Generalised advantage estimation, for rewards and costs alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maip3o.envs.contract import BoolArray, FloatArray


def gae(
    reward: FloatArray,
    value: FloatArray,
    next_value: FloatArray,
    continues: BoolArray,
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float64]:
    """Advantages [T, ...] of arrays [T, ...] that share their trailing axes.

    next_value: value of the state after the step. 0 where the life ended for good (death, arrival); the critic's value
    of the last observation where it was cut (time-out, end rule): cut is not death, so it is bootstrapped.
    continues: the same life acts at t + 1. False at every end, so nothing leaks from the next life of a slot.
    """
    delta = np.asarray(reward + gamma * next_value - value, np.float64)
    decay = gamma * gae_lambda * continues
    advantage = np.zeros_like(delta)
    running = np.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + decay[t] * running
        advantage[t] = running
    return advantage
