"""Tables of results: the numbers, where they come from, and names that would break the markup."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic_runs import write_evaluation, write_run, write_sweep

from maip3o.report.groups import Group, group_runs
from maip3o.report.reading import read_runs
from maip3o.report.tables import HEADINGS, comma_separated, latex, markdown, result_rows


def groups_of(root: Path) -> list[Group]:
    return group_runs(read_runs([root])[0])


def test_a_row_has_the_last_scores_and_their_origin(tmp_path: Path) -> None:
    for seed in (3, 4):
        directory = write_run(tmp_path / str(seed), seed=seed, episodes=200)
        (directory / "versions.json").write_text(json.dumps({"commit": "abcdef0123", "uncommitted_changes": seed == 4}))
    (group,) = groups = groups_of(tmp_path)
    (row,) = result_rows(groups)
    last = [run.records[-1]["evaluation/full/return"] for run in group.runs]
    assert row["return"] == pytest.approx(np.mean(last))
    assert row["return_low"] == pytest.approx(min(last))
    assert (row["seeds"], row["episodes"], row["commit"]) == ("3 4", "200", "abcdef01 abcdef01+")
    assert row["best_in_training"] == pytest.approx(np.mean([run.best("rollout/arrived") for run in group.runs]))
    assert row["hours"] == pytest.approx(200 * 2.35 / 3600)
    assert row["config"] == group.runs[0].config_hash


def test_markdown_and_latex_have_a_full_row_per_group(tmp_path: Path) -> None:
    groups = groups_of(write_sweep(tmp_path, seeds=2, episodes=100))
    body = [line for line in markdown(groups).splitlines() if line.startswith("| ")]
    assert len(body) == 1 + 6
    assert {line.count("|") for line in body} == {len(HEADINGS) + 1}
    rows = [line for line in latex(groups).splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + 6
    assert {line.count(" & ") for line in rows} == {len(HEADINGS) - 1}
    assert r"parking\_lot" in latex(groups)
    assert len(comma_separated(groups).splitlines()) == 1 + 6


def test_names_cannot_break_the_tables(tmp_path: Path) -> None:
    write_run(tmp_path / "run", scenario=r"a|b&c\d_%", episodes=100)
    groups = groups_of(tmp_path)
    assert r"a\|b&c\d_%" in markdown(groups)
    assert r"a|b\&c\textbackslash{}d\_\%" in latex(groups)


def test_one_seed_is_given_without_an_interval(tmp_path: Path) -> None:
    write_run(tmp_path / "run", episodes=100)
    assert "[" not in markdown(groups_of(tmp_path)).splitlines()[2]


def test_an_evaluation_after_training_replaces_the_last_one_during_it_if_all_runs_have_it(tmp_path: Path) -> None:
    directories = [write_run(tmp_path / str(seed), seed=seed, episodes=100) for seed in (0, 1)]
    write_evaluation(directories[0], episodes=100)
    assert result_rows(groups_of(tmp_path))[0]["return"] != 512.0
    write_evaluation(directories[1], episodes=80)  # of an earlier checkpoint: not the run as it ended
    assert result_rows(groups_of(tmp_path))[0]["return"] != 512.0
    write_evaluation(directories[1], episodes=100, horizon=1000)  # of another world
    assert result_rows(groups_of(tmp_path))[0]["return"] != 512.0
    write_evaluation(directories[1], episodes=100)
    assert result_rows(groups_of(tmp_path))[0]["return"] == 512.0
    assert "evaluation.json" in markdown(groups_of(tmp_path))
