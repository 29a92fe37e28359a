"""J_C: what the policy costs now, per constraint.

`mean` is the plain mean over car lives. The end rule `half` makes it nearly constant early in training: an episode
stops once more than half of the cars are eliminated, so about that share is eliminated whatever the policy does.

`uncensored` asks instead: what would a life have cost had nobody stopped it? Each life is followed by its age u. Cuts
are censoring; elimination and arrival are ends. With S(u) the product-limit (Kaplan-Meier) estimate of the chance to
be still driving at age u, and m(u) the mean cost at age u of the lives at risk,

    J_C = sum_u S(u) m(u).

For a cost that is 1 at elimination, m(u) is the hazard of elimination and J_C is the Aalen-Johansen estimate of its
cumulative incidence: the share of cars that are eliminated before they arrive. Arrival competes with elimination, so it
must not be treated as censoring: one minus Kaplan-Meier would give the share eliminated in a world in which nobody can
arrive, which is always larger. For any other cost (speed, closeness ...) the same sum is the mean cost of an uncut
life. Without censoring both reduce to the plain mean.

Time-outs count as censoring as well. A car's time runs from its own beginning, so that changes nothing: they happen at
the greatest age there is. Only cars that waited for their start (`start_spread`) are timed out younger, and are
censored in truth.

What remains: the sum stops at the greatest age observed, and cuts are independent of a car's own risk only
approximately (the cars that trigger the cut drive in the same episode).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maip3o.data.batch import Batch


def plain_mean(life_cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean total cost of a life. [M, K] -> [K]"""
    return life_cost.mean(0)


def uncensored_mean(
    age: NDArray[np.int64], cost: NDArray[np.float64], life_length: NDArray[np.int64], ended: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """sum_u S(u) m(u). age [S], cost [S, K] of active steps; life_length [M], ended [M]: not cut. Returns [K]."""
    ages = int(life_length.max())
    at_risk = np.bincount(age, minlength=ages)
    ends = np.bincount(life_length[ended] - 1, minlength=ages)
    survival = np.cumprod(1.0 - ends / at_risk)
    driving = np.append(1.0, survival[:-1])  # S(u): still driving when step u begins
    cost_at_age = np.zeros((ages, cost.shape[1]))
    np.add.at(cost_at_age, age, cost)
    return (driving / at_risk) @ cost_at_age


def estimate_costs(batch: Batch, unit: str) -> dict[str, NDArray[np.float64]]:
    """J_C [K] by either estimate. unit: per_agent (one agent's life) or per_team (all lives of an episode together)."""
    factor = unit_factor(batch, unit)
    life_cost = np.add.reduceat(batch.cost, batch.life_start, axis=0)
    uncensored = uncensored_mean(batch.age, batch.cost, batch.life_length, ~batch.life_cut)
    return {"mean": factor * plain_mean(life_cost), "uncensored": factor * uncensored}


def unit_factor(batch: Batch, unit: str) -> float:
    """Lives per unit: 1, or the mean number of lives in an episode."""
    return 1.0 if unit == "per_agent" else len(batch.life_start) / batch.episodes
