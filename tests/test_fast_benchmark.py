"""The command python -m maip3o.benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maip3o import benchmark
from maip3o.errors import UserError


def test_lists_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main([])
    listed = capsys.readouterr().out.splitlines()[-1]
    assert {"equality", "lidar", "simulation", "update"} <= set(listed.removeprefix("benchmarks: ").split(", "))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["speed"], "unknown benchmark 'speed'"),
        (["equality", "episode=3"], "did you mean episodes"),
        (["equality", "episodes=many"], "episodes=many: must be a number of type int"),
        (["equality", "lidar=radar"], "lidar=radar: must be exact or analytic"),
        (["simulation", "driver=mad"], "driver=mad: must be one of"),
        (["simulation", "out=/no/such/folder/x.json"], "there is no folder"),
        (["lidar"], "checkpoint= is missing"),
        (["training", "scenario=ant_velocity", "backends=fast"], "backends=fast: only cars have several"),
        (["training", "backends=quick"], "backends=quick: must be fast, stock or both"),
        (["simulation", "episodes=0"], "episodes=0: must be 1 or above"),
        (["equality", "groups=0"], "groups=0: must be 1 or above"),
        (["equality", "first_seed=-1"], "first_seed=-1: must be 0 or above"),
        (["simulation", "scenario=bottleneck"], "knows the maps intersection, parking_lot, not bottleneck"),
        (["equality", "out=/proc/x.json"], "out=/proc: this directory cannot be written"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        benchmark.main(arguments)


def test_writes_the_result_as_json(tmp_path: Path) -> None:
    out = tmp_path / "update.json"
    benchmark.main(["update", "steps=200", "epochs=1", "repeats=1", "workers=1", f"out={out}"])
    assert json.loads(out.read_text())["agent_steps"] >= 200
