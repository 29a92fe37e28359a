"""Theorem 2: the worst-case error of optimising L instead of the constrained problem, estimated from samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maip3o.algo.returns import Returns
from maip3o.config.schema import AlgoConfig, PenaltyConfig


def theorem2_bound(
    kl: float, ratio: NDArray[np.float64], returns: Returns, arguments: Sequence[float], algo: AlgoConfig
) -> float:
    """sqrt(2 delta) gamma eps_R / (1 - gamma) + eta sum_k [sqrt(2 delta) gamma eps_Ck / (1 - gamma) + |alpha log h|]

    delta: the KL of the update; eps = max_s |E_{a ~ pi}[A(s, a)]|, here max over samples of |r A| (one action per state
    is known, so this can only be larger); ratio: [S] after the update; arguments: L_C per constraint.
    """
    spread = math.sqrt(2.0 * max(kl, 0.0))

    def policy_term(advantage: NDArray[np.float64], gamma: float) -> float:
        if gamma == 1.0:
            return math.inf
        return spread * gamma * float(np.abs(ratio * advantage).max()) / (1.0 - gamma)

    bound = policy_term(returns.advantage, algo.gamma)
    if algo.penalty.name == "none":
        return bound
    for k, argument in enumerate(arguments):
        cost_term = policy_term(returns.cost_advantage[:, k], algo.cost_gamma)
        bound += algo.penalty.eta * (cost_term + residual(argument, algo.penalty))
    return bound


def residual(argument: float, penalty: PenaltyConfig) -> float:
    """|alpha log h|: how far below the limit CELU keeps pushing.

    h is the slope at which the updates stop. Without a floor they never stop, so h is the slope reached,
    exp(L_C / alpha), and the term is the distance below the limit itself. ReLU stops at the limit.
    """
    if penalty.name != "celu":
        return 0.0
    reached = max(-argument, 0.0)
    return reached if penalty.floor_h is None else abs(penalty.alpha * math.log(penalty.floor_h))
