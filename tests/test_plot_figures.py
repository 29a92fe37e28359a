"""Figures and the numbers behind them, from synthetic runs."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from synthetic_runs import write_run, write_sweep

from maip3o.plot import plot
from maip3o.report import style
from maip3o.report.gallery import drawings
from maip3o.report.groups import Group, group_runs
from maip3o.report.reading import read_runs
from maip3o.report.summaries import ablation_rows, cost_rows, curve_rows, improvement_rows, outcome_rows


def groups_of(root: Path) -> list[Group]:
    return group_runs(read_runs([root])[0])


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sweep(tmp_path_factory.mktemp("sweep"), episodes=300)


def test_a_sweep_gives_every_figure_as_png_svg_and_csv(sweep: Path, tmp_path: Path) -> None:
    plot([str(sweep / "intersection"), f"out={tmp_path}"])
    stems = {path.stem for path in tmp_path.glob("*.png")}
    usual = {"return_by_episodes", "speed_by_episodes", "constraints", "outcomes"}
    assert stems == usual | {"improvement_return", "training_time"}
    plot([str(sweep / "intersection"), f"out={tmp_path}", "all=true"])
    stems = {path.stem for path in tmp_path.glob("*.png")}
    assert {"return_by_env_steps", "return_by_seconds", "profile_return", "profile_arrived"} <= stems
    for stem in stems:
        assert (tmp_path / f"{stem}.svg").read_text().count("<svg") == 1
        rows = list(csv.DictReader((tmp_path / f"{stem}.csv").open()))
        assert rows
        image = matplotlib.image.imread(tmp_path / f"{stem}.png")
        assert image.shape[1] == round(style.COLUMN_WIDTH * 300)
        assert 0.01 < (image[..., :3].min(axis=2) < 0.95).mean() < 0.9  # something is drawn, and it is not a blot


def test_the_curve_is_the_interquartile_mean_of_the_seeds(sweep: Path) -> None:
    groups = groups_of(sweep)
    rows = curve_rows(groups, "evaluation/full/return", "episodes")
    group = groups[0]
    mine = [row for row in rows if (row["scenario"], row["label"]) == (group.scenario, group.label)]
    assert [row["episodes"] for row in mine] == [100, 200, 300]
    for row in mine:
        values = [dict(zip(*run.series("evaluation/full/return"), strict=True))[row["episodes"]] for run in group.runs]
        assert row["iqm"] == pytest.approx(np.mean(values))  # of three scores, none is cut
        assert min(values) <= row["low"] <= row["iqm"] <= row["high"] <= max(values)


def test_a_curve_says_how_many_seeds_came_so_far_and_ends_when_most_have(tmp_path: Path) -> None:
    for seed, episodes in enumerate((300, 200, 100)):
        write_run(tmp_path / str(seed), seed=seed, episodes=episodes)
    rows = curve_rows(groups_of(tmp_path), "evaluation/full/return", "episodes")
    assert [(row["episodes"], row["runs"]) for row in rows] == [(100, 3), (200, 2)]


def test_costs_carry_the_limit_that_each_group_was_trained_for(tmp_path: Path) -> None:
    for limit in (0.05, 0.2):
        write_run(tmp_path / str(limit), limit=limit, episodes=100)
    rows = cost_rows(groups_of(tmp_path), "termination", "episodes")
    assert {(row["label"], row["limit"]) for row in rows} == {("MAIP3O, limit=0.05", 0.05), ("MAIP3O, limit=0.2", 0.2)}


def test_outcome_shares_of_a_bar_sum_to_one(sweep: Path) -> None:
    rows = outcome_rows(groups_of(sweep))
    for bar in {(row["scenario"], row["label"]) for row in rows}:
        assert sum(r["share"] for r in rows if (r["scenario"], r["label"]) == bar) == pytest.approx(1.0)


def test_improvement_compares_only_scenarios_that_both_were_run_on(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / f"a{seed}", seed=seed)
        write_run(tmp_path / f"b{seed}", seed=seed, algo="mappo")
        write_run(tmp_path / f"c{seed}", seed=seed, scenario="parking_lot")
    (row,) = improvement_rows(groups_of(tmp_path), "return")
    assert (row["x"], row["y"], row["scenarios"], row["probability"]) == ("MAIP3O", "MAPPO", "intersection", 1.0)


def test_an_ablation_has_its_own_figure(tmp_path: Path) -> None:
    for alpha in (0.01, 0.1, 1.0):
        for seed in (0, 1):
            write_run(tmp_path / f"{alpha}" / f"{seed}", seed=seed, alpha=alpha, episodes=100)
    groups = groups_of(tmp_path)
    assert {row["value"] for row in ablation_rows(groups, "algo.penalty.alpha")} == {0.01, 0.1, 1.0}
    assert "ablation_alpha_intersection" in {drawing.name for drawing in drawings(groups, everything=True)}


def test_one_short_run_without_evaluations_is_plotted_from_training(tmp_path: Path) -> None:
    write_run(tmp_path / "run", episodes=40)
    names = {drawing.name for drawing in drawings(groups_of(tmp_path))}
    assert names == {"training_return_by_episodes", "constraints", "outcomes", "training_time"}


def test_a_single_point_is_no_curve(tmp_path: Path) -> None:
    write_run(tmp_path / "run", episodes=20)
    names = {drawing.name for drawing in drawings(groups_of(tmp_path), everything=True)}
    assert names == {"outcomes", "training_time"}


def test_episodes_have_whole_numbers_and_shares_end_at_one(tmp_path: Path) -> None:
    write_run(tmp_path / "run", episodes=40)
    for drawing in drawings(groups_of(tmp_path)):
        (panel,) = drawing.figure.axes
        if drawing.name == "outcomes":
            assert panel.get_xlim() == (0, 1)
        elif drawing.name != "training_time":
            assert all(tick == int(tick) for tick in panel.get_xticks())


def test_names_with_signs_of_markup_are_drawn_as_they_are(tmp_path: Path) -> None:
    write_run(tmp_path / "run", scenario="$x_{<b>&", episodes=20)
    for drawing in drawings(groups_of(tmp_path)):
        style.save(drawing.figure, tmp_path / "figure")


def test_the_command_leaves_out_what_is_broken_and_fails_on_nothing(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "good", episodes=20)
    (tmp_path / "runs" / "empty").mkdir()
    command = [sys.executable, "-m", "maip3o.plot"]
    done = subprocess.run([*command, "runs", "out=plots"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["runs/empty: left out: empty"]
    assert (tmp_path / "plots" / "outcomes.svg").exists()
    for arguments in (
        ["runs/empty", "out=none"],
        ["runs", "output=none"],
        ["runs", "out="],
        ["runs", "out=/proc/x"],
        [],
    ):
        done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "none").exists()
