"""Compact records of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maip3o.errors import UserError
from maip3o.record import main, thinned, without_paths
from maip3o.report.reading import read_run
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
    (run / ".hydra").mkdir(exist_ok=True)
    (run / ".hydra" / "config.yaml").write_text("seed: 3\nscenario: {name: toy}\nalgo: {name: maip3o}\n")
    main([str(run), f"out={out}", "every=2"])
    target = Path(capsys.readouterr().out.split()[-1])
    assert target == out / "toy" / "maip3o" / "seed3"
    record, _ = read_run(target)
    before, _ = read_run(run)
    assert record.records[-1]["episodes"] == before.records[-1]["episodes"]
    assert (record.scenario, record.algo, record.settings) == (before.scenario, before.algo, before.settings)
    assert not (target / "checkpoints").exists()
    assert len(record.records) < len(before.records)
    assert json.loads((target / "versions.json").read_text())["packages"]["torch"]
    main([str(run), f"out={out}"])  # the same run again
    with (run / ".hydra" / "config.yaml").open("a") as stream:
        stream.write("total_episodes: 9\nnum_workers: 2\n")
    main([str(run), f"out={out}"])  # prolonged
    config = (run / ".hydra" / "config.yaml").read_text()  # and resumed by a version with a new option
    (run / ".hydra" / "config.yaml").write_text(config + "algo.kl_test: minibatch\n")
    main([str(run), f"out={out}"])
    (run / ".hydra" / "config.yaml").write_text(config)
    with (run / ".hydra" / "config.yaml").open("a") as stream:
        stream.write("init: /somewhere/stage_1/seed3\n")
    other = tmp_path / "second_stage"
    for _ in range(2):  # a record of it holds no path
        main([str(run), f"out={other}"])
    (run / ".hydra" / "config.yaml").write_text("seed: 3\nscenario: {name: toy}\nalgo: {name: maip3o, lr: 1}\n")
    with pytest.raises(UserError, match="holds a run with other settings"):
        main([str(run), f"out={out}"])


def test_paths_of_the_machine_are_left_out() -> None:
    assert without_paths('["/x/runs/a/seed0", "x=/y/b/c", "a/b"]') == '["seed0", "x=c", "a/b"]'


@pytest.mark.parametrize(
    "arguments", [[], ["out=x"], ["nowhere", "out=x"], ["."], ["nowhere", "out="], ["nowhere", "out=/proc/x"]]
)
def test_wrong_arguments_end_with_one_line(arguments: list[str]) -> None:
    with pytest.raises(UserError):
        main(arguments)
