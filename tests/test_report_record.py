"""Compact records of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from maip3o.errors import UserError
from maip3o.plot import plot
from maip3o.record import main, thinned, without_paths
from maip3o.report.reading import require_runs
from maip3o.report.records import read_records
from tests.toy_run import toy_config, train_inline


def line(kind: str, episodes: int, value: float | None) -> dict[str, object]:
    return {"kind": kind, "episodes": episodes, "seconds": float(episodes), "rollout/return": value}


def test_iterations_are_averaged_and_counters_are_those_of_the_last() -> None:
    lines = [line("iteration", n, float(n)) for n in range(1, 6)]
    kept = thinned(lines, 2)
    assert [(k["episodes"], k["rollout/return"]) for k in kept] == [(2, 1.5), (4, 3.5), (5, 5.0)]


def test_figures_that_were_not_finite_are_left_out_of_the_mean() -> None:
    lines = [line("iteration", 1, None), line("iteration", 2, 3.0), line("iteration", 3, None)]
    assert [kept["rollout/return"] for kept in thinned(lines, 2)] == [3.0, None]


def test_evaluations_stay_and_no_block_reaches_across_one() -> None:
    lines = [line("iteration", 1, 1.0), line("evaluation", 1, 9.0), line("iteration", 2, 3.0)]
    assert thinned(lines, 10) == lines


def test_a_record_reads_like_the_run_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    train_inline(toy_config(), run)
    main([str(run), f"out={out}", "every=2"])
    target = Path(capsys.readouterr().out.split()[-1])
    assert target.is_relative_to(tmp_path / "out.json.gz" / "toy" / "maip3o")
    (record,), (before,) = (require_runs([path])[0] for path in (target, run))
    assert record.records[-1]["episodes"] == before.records[-1]["episodes"]
    assert (record.scenario, record.algo, record.config_hash) == (before.scenario, before.algo, before.config_hash)
    assert len(record.records) < len(before.records)
    assert record.versions["packages"]["torch"]


def test_a_run_recorded_again_replaces_itself_and_another_stands_beside_it(tmp_path: Path) -> None:
    for seed in (0, 1, 1):
        train_inline(toy_config(seed=seed), tmp_path / f"run{seed}")
        main([str(tmp_path / f"run{seed}"), f"out={tmp_path / 'out'}"])
    assert [run.seed for run in read_records(tmp_path / "out.json.gz")] == [0, 1]


def test_the_printed_table_of_a_record_is_that_of_its_runs(tmp_path: Path) -> None:
    runs = [tmp_path / f"run{seed}" for seed in (0, 1)]
    for seed, run in enumerate(runs):
        train_inline(toy_config(seed=seed), run)
    main([*map(str, runs), f"out={tmp_path / 'out'}", "every=1"])
    rows = []
    for paths, name in ((runs, "of_runs"), ([tmp_path / "out.json.gz"], "of_record")):
        plot([*map(str, paths), f"out={tmp_path / name}"])
        rows.append((tmp_path / name / "results.md").read_text())
    assert rows[0] == rows[1]


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.json.gz").write_bytes(b"no gzip")
    train_inline(toy_config(total_episodes=4), tmp_path / "run")
    with pytest.raises(UserError, match="damaged"):
        main([str(tmp_path / "run"), f"out={tmp_path / 'out'}"])
    assert (tmp_path / "out.json.gz").read_bytes() == b"no gzip"


def test_paths_of_the_machine_are_left_out() -> None:
    assert without_paths('["/x/runs/a/seed0", "x=/y/b/c", "a/b"]') == '["seed0", "x=c", "a/b"]'


@pytest.mark.parametrize(
    "arguments", [[], ["out=x"], ["nowhere", "out=x"], ["."], ["nowhere", "out="], ["nowhere", "out=/proc/x"]]
)
def test_wrong_arguments_end_with_one_line(arguments: list[str]) -> None:
    with pytest.raises(UserError):
        main(arguments)
