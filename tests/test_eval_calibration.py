"""Calibration of the cost critic: closed forms, and that a perfect critic is called perfect."""

from __future__ import annotations

import numpy as np
import pytest
from test_eval_statistics import make_episode

from maip3o.envs.driving.outcomes import Cause
from maip3o.evaluation.calibration import Pairs, calibrate, cost_to_go, pairs


def test_cost_to_go_is_discounted_within_each_life() -> None:
    episode = make_episode(0, [(2, 0, Cause.CRASH_VEHICLE), (5, 0, Cause.ARRIVED), (5, 1, Cause.OFF_ROAD)], 6)
    observed, known = cost_to_go(episode, 0, 0.9)
    assert observed[:, 0] == pytest.approx([0.81, 0.9, 1, 0, 0, 0])
    assert observed[:, 1] == pytest.approx(0.9 ** np.arange(5, -1, -1))
    assert known.all()


def test_steps_shortly_before_a_cut_are_left_out() -> None:
    episode = make_episode(0, [(99, 0, Cause.TIME_OUT), (49, 1, Cause.ARRIVED)], 100)
    _, known = cost_to_go(episode, 0, 0.9)
    hidden = np.log(0.1) / np.log(0.9)  # 21.9 steps: beyond them a cost weighs less than a tenth
    assert known[:, 0].sum() == 100 - int(np.ceil(hidden))
    assert known[:, 1].sum() == 50


def test_without_discount_a_cut_life_is_never_known() -> None:
    episode = make_episode(0, [(99, 0, Cause.TIME_OUT), (49, 1, Cause.ARRIVED)], 100)
    _, known = cost_to_go(episode, 0, 1.0)
    assert known.sum(0).tolist() == [0, 50]


def test_a_perfect_critic_lies_on_the_diagonal() -> None:
    episodes = [make_episode(s, [(s % 7 + 2, 0, Cause.CRASH_VEHICLE), (9, 1, Cause.ARRIVED)], 10) for s in range(20)]
    truth = [cost_to_go(episode, 0, 0.9)[0] for episode in episodes]
    result = calibrate(pairs(episodes, truth, 0, 0.9))
    assert result is not None
    assert result.error == pytest.approx(0.0, abs=1e-9)
    assert result.correlation == pytest.approx(1.0)
    assert sum(part.steps for part in result.bins) == result.steps == sum(int(e.active.sum()) for e in episodes)


def test_an_overconfident_critic_is_found_out() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.uniform(0.0, 1.0, 20_000)
    happened = (rng.random(20_000) < 0.5 * predicted).astype(float)
    result = calibrate(Pairs(predicted, happened, np.repeat(np.arange(200), 100)))
    assert result is not None
    assert result.error == pytest.approx(0.25, abs=0.02)
    top = result.bins[-1]
    assert top.predicted == pytest.approx(0.95, abs=0.01)
    assert top.observed.low < 0.475 < top.observed.high
    assert top.observed.high < top.predicted


def test_nothing_known_is_no_calibration() -> None:
    empty = np.zeros(0)
    assert calibrate(Pairs(empty, empty, empty.astype(int))) is None
