"""Statistics of evaluated episodes against closed forms and hand-made episodes."""

from __future__ import annotations

import numpy as np
import pytest

from maip3o.data.episode import Episode
from maip3o.data.statistics import (
    bootstrap_ratio,
    clopper_pearson,
    cvar,
    estimates,
    life_starts,
    life_sums,
    share_of_lives,
    summarise,
    tabulate,
)
from maip3o.envs.driving.outcomes import Cause, driving_spec


def make_episode(seed: int, ends: list[tuple[int, int, Cause]], length: int, slots: int = 2) -> Episode:
    """Rewards of 1 per active step, cost 1 at an elimination; a slot acts again in the step after a life's end."""
    ends = sorted(ends)
    active = np.zeros((length, slots), dtype=bool)
    first = np.zeros_like(active)
    cause = np.zeros((length, slots), dtype=np.int8)
    start = dict.fromkeys(range(slots), 0)
    for step, slot, why in ends:
        active[start[slot] : step + 1, slot] = True
        first[start[slot], slot] = True
        cause[step, slot] = why
        start[slot] = step + 1
    eliminated = np.isin(cause, [Cause.CRASH_VEHICLE, Cause.OFF_ROAD])
    cut = np.isin(cause, [Cause.TIME_OUT, Cause.CUT])
    lives = np.array([(step, slot) for step, slot, _ in ends])
    empty = np.zeros((length, slots, 1), dtype=np.float32)
    return Episode(
        seed=seed,
        observation=empty,
        hidden=empty,
        action=np.zeros((length, slots, 2), dtype=np.float32),
        log_prob=empty[..., 0],
        active=active,
        first=first,
        reward=np.ones((length, slots), dtype=np.float32),  # also where nobody acts: must not count
        cost=eliminated[..., None].astype(np.float32),
        terminated=(cause != 0) & ~cut,
        truncated=cut,
        outcome=cause,
        final_index=np.argwhere(cut),
        final_observation=np.zeros((int(cut.sum()), 1), dtype=np.float32),
        final_hidden=np.zeros((int(cut.sum()), 1), dtype=np.float32),
        life_end=lives,
        life_measurements=np.tile(np.float32([0.5, 4.0]), (len(lives), 1)),
        world=driving_spec(1, 2, ("termination",)),
        seconds_simulate=0.0,
        seconds_infer=0.0,
    )


def test_lives_of_a_slot_that_is_used_twice_are_counted_apart() -> None:
    episode = make_episode(0, [(3, 0, Cause.CRASH_VEHICLE), (9, 0, Cause.TIME_OUT), (9, 1, Cause.ARRIVED)], 10)
    assert life_starts(episode).tolist() == [0, 4, 0]
    assert life_sums(episode, episode.reward).tolist() == [4, 6, 10]
    assert life_sums(episode, episode.cost).tolist() == [[1], [0], [0]]


def test_figures_are_shares_of_lives_and_means_over_episodes() -> None:
    one = make_episode(0, [(4, 0, Cause.CRASH_VEHICLE), (9, 1, Cause.ARRIVED)], 10)
    two = make_episode(1, [(9, 0, Cause.ARRIVED), (19, 1, Cause.TIME_OUT)], 20)
    figures = summarise([one, two])
    assert figures["return"] == pytest.approx((5 + 10 + 10 + 20) / 2)
    assert figures["worst_return"] == pytest.approx((5 + 10) / 2)
    assert figures["success"] == 0.5
    assert figures["crash_vehicle"] == figures["eliminated"] == figures["time_out"] == 0.25
    assert figures["off_road"] == figures["cut"] == 0.0
    assert figures["length"] == 15
    assert figures["route_completion"] == pytest.approx(0.5)
    assert figures["speed"] == pytest.approx(4.0)
    assert figures["efficiency"] == pytest.approx(100 * (2 - 1) / 30)
    assert {name: value.mean for name, value in estimates(tabulate([one, two])).items()} == pytest.approx(figures)


def test_bootstrap_agrees_with_the_normal_interval_of_many_episodes() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, 400)
    interval = bootstrap_ratio(values)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=0.03)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.03)


def test_bootstrap_resamples_episodes_not_lives() -> None:
    """Ten cars that always share their fate carry the information of one."""
    fate = np.random.default_rng(2).random(50) < 0.5
    clustered = share_of_lives(10.0 * fate, np.full(50, 10.0))
    alone = share_of_lives(1.0 * fate, np.ones(50))
    assert (clustered.low, clustered.high) == pytest.approx((alone.low, alone.high))


def test_clopper_pearson_known_values() -> None:
    # Published table values: 0 of 10, 5 of 10, 10 of 10.
    assert (clopper_pearson(0, 10).low, clopper_pearson(0, 10).high) == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert (clopper_pearson(5, 10).low, clopper_pearson(5, 10).high) == pytest.approx((0.1871, 0.8129), abs=1e-4)
    assert (clopper_pearson(10, 10).low, clopper_pearson(10, 10).high) == pytest.approx((0.6915, 1.0), abs=1e-4)
    with pytest.raises(ValueError, match="no share"):
        clopper_pearson(3, 2)


def test_what_never_happened_still_has_an_upper_bound() -> None:
    never = share_of_lives(np.zeros(100), np.full(100, 10.0))
    assert never.mean == never.low == 0.0
    assert never.high == pytest.approx(1 - 0.025 ** (1 / 100), rel=1e-6)
    assert share_of_lives(np.full(100, 10.0), np.full(100, 10.0)).low == pytest.approx(1 - never.high)


def test_cvar_counts_the_value_at_the_edge_in_part() -> None:
    values = np.arange(1.0, 11.0)
    assert cvar(values, 0.1) == 10.0
    assert cvar(values, 0.15) == pytest.approx((10 + 0.5 * 9) / 1.5)
    assert cvar(values, 1.0) == pytest.approx(values.mean())
