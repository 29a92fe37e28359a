"""Theorem 2: the worst-case error of optimising L instead of the constrained problem, estimated from samples."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from maip3o.algo.algorithm import Algorithm
from maip3o.algo.losses import constraint_loss
from maip3o.algo.view import PolicyData
from maip3o.data.returns import Returns


def theorem2_bound(
    kl: float, ratio: NDArray[np.float64], returns: Returns, data: PolicyData, algorithm: Algorithm
) -> dict[str, float]:
    """sqrt(2 delta) gamma eps_R / (1 - gamma) + sum_k eta_k [sqrt(2 delta) gamma eps_Ck / (1 - gamma) + |alpha log h|]

    delta: the KL of the update; eps = max_s |E_{a ~ pi}[A(s, a)]|, here max over samples of |r A| (one action per state
    is known, so this can only be larger); ratio: [S] after the update. For the penalties only.
    """
    constraints, algo = data.constraints, algorithm.algo
    weights = algorithm.weights(constraints)
    if weights is None:
        return {}
    spread = math.sqrt(2.0 * max(kl, 0.0))

    def policy_term(advantage: NDArray[np.float64], gamma: float) -> float:
        if gamma == 1.0:
            return math.inf
        return spread * gamma * float(np.abs(ratio * advantage).max()) / (1.0 - gamma)

    bound = policy_term(returns.advantage, algo.gamma)
    argument = constraint_loss(data.cost_advantage.mean(0), constraints.scale, constraints.violation)
    residual = algorithm.residual(argument, constraints)
    for k, weight in enumerate(weights.tolist()):
        if weight > 0.0:
            bound += weight * (policy_term(returns.cost_advantage[:, k], algo.cost_gamma) + float(residual[k]))
    return {"bound/theorem2": bound}
