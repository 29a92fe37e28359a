"""Does the cost critic know the danger it is in? Its predictions against what then happened.

The critic predicts a discounted cost to go, so the observation is discounted alike: for the constraint `termination`
a car that is eliminated n steps later observed gamma^n, one that arrives observed 0. Steps shortly before a cut
(time-out) are left out: what would have happened to them is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maip3o.data.episode import Episode
from maip3o.data.statistics import RESAMPLES, Estimate, life_starts
from maip3o.envs.contract import BoolArray, FloatArray, IntArray

UNKNOWN_SHARE = 0.1  # a step is left out when a cost after the cut could still have weighed this much
BINS = 10


@dataclass(slots=True)
class Pairs:
    """Predictions and observations of N agent steps."""

    predicted: FloatArray  # [N]
    observed: FloatArray  # [N]
    episode: IntArray  # [N] which episode a step belongs to

    @staticmethod
    def joined(parts: Sequence[Pairs]) -> Pairs:
        return Pairs(
            *(np.concatenate([getattr(p, name) for p in parts]) for name in ("predicted", "observed", "episode"))
        )


@dataclass(frozen=True, slots=True)
class Bin:
    """Steps of similar prediction."""

    predicted: float
    observed: Estimate
    steps: int


@dataclass(frozen=True, slots=True)
class Calibration:
    bins: list[Bin]
    steps: int
    mean_predicted: float
    mean_observed: float
    error: float  # expected calibration error: mean |predicted - observed| over bins, weighted by steps
    correlation: float  # of prediction and observation


def cost_to_go(episode: Episode, constraint: int, gamma: float) -> tuple[FloatArray, BoolArray]:
    """Observed discounted cost to go [T, A] within each life, and where it is known [T, A]."""
    observed = np.zeros(episode.active.shape, dtype=np.float64)
    known = np.zeros(episode.active.shape, dtype=bool)
    enough = math.inf if gamma == 1.0 else np.log(UNKNOWN_SHARE) / np.log(gamma) if gamma > 0.0 else 0.0
    for (end, slot), start in zip(episode.life_end, life_starts(episode), strict=True):
        total = 0.0
        for step in range(end, start - 1, -1):
            total = float(episode.cost[step, slot, constraint]) + gamma * total
            observed[step, slot] = total
        last = max(end - enough, start - 1) if episode.truncated[end, slot] else end
        known[start : int(last) + 1, slot] = True
    return observed, known & episode.active


def pairs(episodes: Sequence[Episode], predicted: Sequence[FloatArray], constraint: int, gamma: float) -> Pairs:
    """Predictions [T, A] of each episode beside what was observed."""
    parts = []
    for episode, prediction in zip(episodes, predicted, strict=True):
        observed, known = cost_to_go(episode, constraint, gamma)
        parts.append(Pairs(prediction[known].astype(np.float64), observed[known], np.full(known.sum(), episode.seed)))
    return Pairs.joined(parts)


def calibrate(data: Pairs) -> Calibration | None:
    """Ten bins of equally many steps, with bootstrap intervals over episodes; None without any known step."""
    steps = len(data.predicted)
    if steps == 0:
        return None
    order = np.argsort(data.predicted, kind="stable")
    _, episode = np.unique(data.episode, return_inverse=True)
    resamples = np.random.default_rng(0).integers(episode.max() + 1, size=(RESAMPLES, episode.max() + 1))
    bins = [_bin(data, episode, rows, resamples) for rows in np.array_split(order, min(BINS, steps))]
    gaps = [abs(part.predicted - part.observed.mean) * part.steps for part in bins]
    varies = data.predicted.std() > 0 and data.observed.std() > 0
    return Calibration(
        bins=bins,
        steps=steps,
        mean_predicted=float(data.predicted.mean()),
        mean_observed=float(data.observed.mean()),
        error=float(sum(gaps) / steps),
        correlation=float(np.corrcoef(data.predicted, data.observed)[0, 1]) if varies else float("nan"),
    )


def _bin(data: Pairs, episode: IntArray, rows: IntArray, resamples: IntArray) -> Bin:
    """rows: the steps of this bin; resamples: [B, E] episodes drawn with replacement."""
    count = int(episode.max()) + 1
    sums = np.bincount(episode[rows], weights=data.observed[rows], minlength=count)
    sizes = np.bincount(episode[rows], minlength=count)
    drawn_sizes = sizes[resamples].sum(axis=1)
    drawn = sums[resamples].sum(axis=1)[drawn_sizes > 0] / drawn_sizes[drawn_sizes > 0]
    low, high = np.quantile(drawn, [0.025, 0.975])
    observed = Estimate(float(data.observed[rows].mean()), float(low), float(high))
    return Bin(float(data.predicted[rows].mean()), observed, len(rows))
