"""Statistics of evaluated episodes against closed forms and hand-made episodes."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from maip3o.config.schema import Config, ConstraintConfig
from maip3o.data.episode import Episode
from maip3o.data.statistics import (
    EpisodeTable,
    bootstrap_ratio,
    clopper_pearson,
    cvar,
    estimates,
    life_starts,
    life_sums,
    means,
    tabulate,
)
from maip3o.envs.contract import Cost
from maip3o.envs.driving.outcomes import Cause, driving_spec
from maip3o.evaluation.card import card_table, make_card


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
        memory=empty,
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
        final_memory=np.zeros((int(cut.sum()), 1), dtype=np.float32),
        life_end=lives,
        life_measurements=np.tile(np.float32([0.5, 4.0]), (len(lives), 1)),
        world=driving_spec(1, 2, (Cost("termination", "event"),)),
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
    figures = means(tabulate([one, two]))
    assert figures["return"] == pytest.approx((5 + 10 + 10 + 20) / 2)
    assert figures["worst_return"] == pytest.approx((5 + 10) / 2)
    assert figures["arrived"] == 0.5
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


def fates(crashed: list[list[bool]]) -> EpisodeTable:
    """An episode per row, a car per column: it crashes in the end, or arrives."""
    ends = [
        [(9, slot, Cause.CRASH_VEHICLE if bad else Cause.ARRIVED) for slot, bad in enumerate(row)] for row in crashed
    ]
    return tabulate([make_episode(seed, row, 10, slots=len(row)) for seed, row in enumerate(ends)])


def test_cars_that_share_their_fate_carry_the_information_of_one() -> None:
    fate = np.random.default_rng(2).random(50) < 0.5
    together = estimates(fates([[bool(bad)] * 10 for bad in fate]))["eliminated"]
    alone = clopper_pearson(int(fate.sum()), 50)
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))
    apart = estimates(fates((np.random.default_rng(3).random((50, 10)) < 0.5).tolist()))["eliminated"]
    assert apart.high - apart.low < 0.5 * (together.high - together.low)


def test_one_kind_of_interval_for_one_kind_of_number_whatever_happened() -> None:
    for crashed in ([[False] * 3] * 4, [[True] * 3] * 4, [[True, False, False]] * 4, [[True, False, False]]):
        kinds = {name: figure.interval for name, figure in estimates(fates(crashed)).items()}
        shares = {"arrived", "eliminated", "crash_vehicle", "off_road", "time_out", "cut"}
        assert {kinds[name] for name in shares} == {"Clopper-Pearson"}
        assert {kinds[name] for name in ("return", "length", "speed", "cost/termination")} == {"bootstrap"}


def test_clopper_pearson_known_values() -> None:
    # Published table values: 0 of 10, 5 of 10, 10 of 10.
    assert (clopper_pearson(0, 10).low, clopper_pearson(0, 10).high) == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert (clopper_pearson(5, 10).low, clopper_pearson(5, 10).high) == pytest.approx((0.1871, 0.8129), abs=1e-4)
    assert (clopper_pearson(10, 10).low, clopper_pearson(10, 10).high) == pytest.approx((0.6915, 1.0), abs=1e-4)
    with pytest.raises(ValueError, match="no share"):
        clopper_pearson(3, 2)


def test_a_part_has_no_wider_interval_than_the_whole_because_it_did_not_happen() -> None:
    figures = estimates(fates([[bool(car == 0 and episode == 0) for car in range(10)] for episode in range(2)]))
    assert figures["crash_vehicle"].mean == 0.05
    assert figures["off_road"].mean == figures["off_road"].low == 0.0
    assert figures["off_road"].high < figures["crash_vehicle"].high


def test_cvar_counts_the_value_at_the_edge_in_part() -> None:
    values = np.arange(1.0, 11.0)
    assert cvar(values, 0.1) == 10.0
    assert cvar(values, 0.15) == pytest.approx((10 + 0.5 * 9) / 1.5)
    assert cvar(values, 1.0) == pytest.approx(values.mean())


def test_the_card_names_the_interval_of_each_row_by_the_declared_kind_of_its_cost() -> None:
    table = fates([[True, False, False], [False, False, False]])
    config = Config(constraints={"termination": ConstraintConfig(limit=0.1)})
    printed = {}
    for kind in ("event", "count"):  # the same numbers
        table.world = replace(table.world, costs=(Cost("termination", kind),))
        console = Console(width=120, record=True, file=io.StringIO())
        console.print(card_table("card", {"whole episodes": make_card(table, config, "full")}))
        printed[kind] = [line for line in console.export_text().splitlines() if "termination cost" in line]
    (share,), (total,) = printed.values()
    assert "16.7 %" in share
    assert "Clopper-Pearson" in share
    assert "0.17" in total
    assert "bootstrap" in total
