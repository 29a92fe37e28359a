"""The bootstrap against rliable 1.2.0 (figures below: 50,000 resamples of it) and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from maip3o.report.intervals import estimate, iqm, probability_of_improvement, share_above

X = [np.array([310.0, 402.0, 355.0, 290.0, 480.0]), np.array([0.0, 5.0, 2.0, 9.0, 4.0])]
Y = [np.array([300.0, 410.0, 260.0, 330.0, 305.0]), np.array([1.0, 0.0, 3.0, 2.0, 1.0])]


def test_interquartile_mean_is_rliables() -> None:
    assert iqm(np.array([1.0, 2.0, 3.0, 100.0])) == 2.5
    assert iqm(np.array([1.0, 2.0, 9.0])) == 4.0  # three scores: a quarter is less than one of them
    metrics = pytest.importorskip("rliable.metrics")
    for size in range(1, 30):
        scores = np.random.default_rng(size).normal(size=(size, 1))
        assert iqm(scores[:, 0]) == pytest.approx(metrics.aggregate_iqm(scores))


def test_intervals_agree_with_rliable() -> None:
    both = estimate(X, resamples=50_000)
    assert both.value == pytest.approx(162.1667, abs=1e-3)
    assert (both.low, both.high) == pytest.approx((147.667, 201.667), abs=1.0)
    one = estimate(X[:1], resamples=50_000)
    assert (one.value, one.low, one.high) == pytest.approx((355.667, 296.667, 454.0), abs=1.0)


def test_probability_of_improvement_agrees_with_rliable() -> None:
    found = probability_of_improvement(X, Y, resamples=50_000)
    assert (found.value, found.low, found.high) == pytest.approx((0.72, 0.46, 0.94), abs=0.011)


def test_performance_profile_agrees_with_rliable() -> None:
    for threshold, expected in ((3.0, (0.8, 0.6, 1.0)), (350.0, (0.3, 0.1, 0.5))):
        found = estimate(X, share_above(threshold), resamples=20_000)
        assert (found.value, found.low, found.high) == pytest.approx(expected, abs=0.011)


def test_strata_may_differ_in_size_and_hold_gaps() -> None:
    found = estimate([np.array([1.0, 2.0, np.nan]), np.array([3.0])])
    assert found.value == 2.0
    assert found.low < found.high


def test_one_seed_has_no_interval_and_none_no_value() -> None:
    single = estimate([np.array([5.0])])
    assert single.value == 5.0
    assert np.isnan([single.low, single.high]).all()
    assert np.isnan(estimate([np.array([np.nan])]).value)
    assert np.isnan(probability_of_improvement([np.array([])], [np.array([1.0])]).value)


def test_ties_count_half_and_the_same_seed_gives_the_same_interval() -> None:
    same = [np.array([1.0, 1.0])]
    assert probability_of_improvement(same, same).value == 0.5
    assert estimate(X, seed=3) == estimate(X, seed=3)
