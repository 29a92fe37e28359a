"""Interquartile means and stratified bootstrap intervals over seeds (Agarwal et al., NeurIPS 2021).

The same estimators as the package rliable, which the tests compare with, but vectorised, seeded (rliable draws from
NumPy's global generator) and for any number of seeds per task: sweeps are often looked at before they have ended.
A stratum is the seeds of one task; a resample draws seeds with replacement within each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 5000
COVERAGE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A value and its interval. NaN bounds: one seed per task has no spread to resample."""

    value: float
    low: float
    high: float


def iqm(scores: Array) -> Array:
    """Interquartile mean over the last axis: [..., N] -> [...]. The lowest and highest quarter are left out."""
    cut = int(0.25 * scores.shape[-1])
    middle = np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut]
    return np.asarray(middle.mean(axis=-1))


def resample(strata: Sequence[Array], generator: np.random.Generator, resamples: int) -> list[Array]:
    """Per stratum [n] its bootstrap samples [resamples, n]."""
    return [scores[generator.integers(len(scores), size=(resamples, len(scores)))] for scores in strata]


def estimate(
    strata: Sequence[Array], statistic: Callable[[Array], Array] = iqm, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Statistic of the pooled scores with its percentile interval. NaN scores are left out."""
    known = [scores[np.isfinite(scores)] for scores in strata]
    known = [scores for scores in known if len(scores)]
    if not known:
        return Estimate(np.nan, np.nan, np.nan)
    value = float(statistic(np.concatenate(known)))
    if all(len(scores) == 1 for scores in known):
        return Estimate(value, np.nan, np.nan)
    drawn = resample(known, np.random.default_rng(seed), resamples)
    return Estimate(value, *_percentiles(statistic(np.concatenate(drawn, axis=-1))))


def share_above(threshold: float) -> Callable[[Array], Array]:
    """The statistic of a performance profile: share of scores [..., N] above the threshold."""
    return lambda scores: np.asarray((scores > threshold).mean(axis=-1))


def probability_of_improvement(
    x: Sequence[Array], y: Sequence[Array], seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Probability that a run of X beats a run of Y, averaged over tasks; x[i] and y[i] are seeds of the same task."""
    pairs = [(a[np.isfinite(a)], b[np.isfinite(b)]) for a, b in zip(x, y, strict=True)]
    pairs = [(a, b) for a, b in pairs if len(a) and len(b)]
    if not pairs:
        return Estimate(np.nan, np.nan, np.nan)
    value = float(np.mean([_beats(a, b) for a, b in pairs]))
    if all(len(a) == 1 and len(b) == 1 for a, b in pairs):
        return Estimate(value, np.nan, np.nan)
    generator = np.random.default_rng(seed)
    drawn_x = resample([a for a, _ in pairs], generator, resamples)
    drawn_y = resample([b for _, b in pairs], generator, resamples)
    draws = np.mean([_beats(a, b) for a, b in zip(drawn_x, drawn_y, strict=True)], axis=0)
    return Estimate(value, *_percentiles(draws))


def _beats(x: Array, y: Array) -> Array:
    """Mann-Whitney's U over its maximum: [..., n], [..., m] -> [...]; a tie counts half."""
    difference = x[..., :, None] - y[..., None, :]
    return np.asarray(((difference > 0) + 0.5 * (difference == 0)).mean(axis=(-2, -1)))


def _percentiles(draws: Array) -> tuple[float, float]:
    tail = 100.0 * (1.0 - COVERAGE) / 2.0
    low, high = np.percentile(draws, [tail, 100.0 - tail])
    return float(low), float(high)
