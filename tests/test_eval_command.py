"""The commands evaluate, replay and export: bad input in one line, and whole evaluations on the simulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from eval_policies import make_run

from maip3o import export, replay
from maip3o.config import options
from maip3o.config.schema import RunnerConfig
from maip3o.data.episode import Episode
from maip3o.envs.driving.outcomes import ELIMINATED
from maip3o.errors import UserError
from maip3o.evaluation import command as evaluate
from maip3o.evaluation import run as evaluation_run
from maip3o.evaluation.request import READERS, Request
from maip3o.policy import load_policy
from maip3o.runners.evaluation import evaluate_policy, evaluation_job
from maip3o.runners.pool import make_pool
from maip3o.video.recording import record_episode


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose untrained policy drives into things within seventy steps."""
    return make_run(tmp_path_factory.mktemp("runs") / "run", num_agents=4, horizon=70)


def refused(command: object, *arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        command.run(list(arguments))  # type: ignore[attr-defined]
    return " ".join(str(caught.value).split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["episodes=0"], "episodes=0: must be a whole number from 1"),
        (["episodes=ten"], "episodes=ten: must be a whole number"),
        (["episodes=2000000"], "from 1 to 1000000"),
        (["protocol=half"], "protocol=half: must be one of both, first, full"),
        (["deterministic=maybe"], "deterministic=maybe: must be true or false"),
        (["first_seed=-1"], "first_seed=-1: must be a whole number"),
        (["first_seed=999999", "episodes=2"], "reach the seeds of training"),
        (["num_agents=5,5"], "names a number twice"),
        (["num_agents=0"], "num_agents=0: must be a whole number from 1"),
        (["horizon=0"], "horizon=0: must be a whole number from 1"),
        (["scenario=moon"], "unknown scenario 'moon'"),
        (["episode=3"], "did you mean episodes?"),
        (["video"], "video: a value is missing"),
        (["episodes=1", "episodes=2"], "episodes is given twice"),
        (["gif=true", "video=false"], "video=false"),
        (["num_workers=0"], "num_workers=0: must be a whole number from 1"),
    ],
)
def test_wrong_options_are_named(arguments: list[str], words: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert words in refused(evaluate, f"checkpoint={run}", f"out={out}", *arguments)
    assert not out.exists()


@pytest.mark.parametrize("command", [evaluate, replay, export])
def test_a_missing_or_foreign_checkpoint_is_refused(command: object, tmp_path: Path) -> None:
    assert "checkpoint=" in refused(command)
    assert "no run directory, file or shipped policy" in refused(command, f"checkpoint={tmp_path / 'nowhere'}")
    assert "last.pt" in refused(command, f"checkpoint={tmp_path}")
    foreign = tmp_path / "foreign.pt"
    torch.save({"weights": torch.zeros(3)}, foreign)
    assert "not a checkpoint" in refused(command, f"checkpoint={foreign}")
    foreign.write_bytes(b"\x00" * 100)
    assert "not a checkpoint" in refused(command, f"checkpoint={foreign}")


def test_weights_of_another_shape_are_refused(run: Path, tmp_path: Path) -> None:
    content = torch.load(run / "checkpoints" / "last.pt", weights_only=True)
    content["learner"]["actor"]["head.weight"] = torch.zeros(2, 5)
    torch.save(content, tmp_path / "bent.pt")
    assert "its weights do not fit its configuration" in refused(evaluate, f"checkpoint={tmp_path / 'bent.pt'}")


@pytest.mark.parametrize(("command", "name"), [(evaluate, "out"), (replay, "r.html"), (export, "p.onnx")])
def test_a_folder_that_cannot_be_made_is_refused_before_anything_runs(
    command: object, name: str, run: Path, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert "this directory cannot be written" in refused(
        command, f"checkpoint={run}", f"out={blocked / 'below' / name}"
    )


@pytest.mark.parametrize(("command", "ending"), [(replay, ".html"), (export, ".onnx")])
def test_a_file_is_asked_for_by_its_ending(command: object, ending: str, run: Path, tmp_path: Path) -> None:
    assert ending in refused(command, f"checkpoint={run}", f"out={tmp_path / 'thing'}")


def test_the_command_ends_with_one_line_and_code_2(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "maip3o.evaluate", f"checkpoint={tmp_path / 'no such run'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert len(answer.stderr.strip().splitlines()) == 1


def test_help_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    readers_of = {evaluate: READERS, replay: replay.READERS, export: ("checkpoint", "out")}
    for command, readers in readers_of.items():
        with pytest.raises(SystemExit) as ended:
            command.run(["--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        assert all(f"{name}=" in shown for name in readers)


def test_workers_are_counted() -> None:
    assert options.workers("num_workers", "auto") >= 1
    assert options.workers("num_workers", "3") == 3


@pytest.mark.simulator
def test_an_observation_of_another_size_is_refused(tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", observation_size=50, num_agents=2)
    words = refused(evaluate, f"checkpoint={other}", "episodes=1", "num_workers=1", f"out={tmp_path / 'out'}")
    assert "trained on observations of size 50 and actions of size 2, but scenario intersection has 91 and 2" in words


@pytest.mark.simulator
def test_what_cannot_be_driven_is_refused_before_anything_is(run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", observation_size=50, num_agents=2)
    out, driven = f"out={tmp_path / 'out'}", "drove episodes before it refused"

    def drive(*_: object) -> None:
        raise AssertionError(driven)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation_run, "evaluate", drive)
        words = refused(evaluate, f"checkpoint={run}", "num_agents=2,60", "num_workers=1", out)
        assert "holds at most 48 cars" in words
        words = refused(evaluate, f"checkpoint={run}", f"versus={other}", "num_workers=1", out)
        assert "trained on observations of size 50" in words


def test_few_cars_can_be_evaluated_with_settings_for_many(run: Path) -> None:
    request = Request(str(run))
    policy = load_policy(str(run))
    policy.config.algo.minibatches = 100  # more than the chunks of an iteration with one car
    assert evaluation_run.evaluated_config(policy, request, 1).scenario.num_agents == 1


def test_the_horizon_is_that_of_training_unless_it_is_given(run: Path) -> None:
    policy = load_policy(str(run))
    assert evaluation_run.evaluated_config(policy, Request(str(run)), None).scenario.horizon == 70
    assert evaluation_run.evaluated_config(policy, Request(str(run), horizon=9), None).scenario.horizon == 9


def same(one: Episode, two: Episode) -> bool:
    skip = ("seconds_simulate", "seconds_infer")
    names = [name for name in one.__slots__ if name not in skip]
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


@pytest.mark.simulator
@pytest.mark.slow
def test_protocols_recordings_and_workers_agree(run: Path) -> None:
    """`first` is the beginning of `full`; a filmed episode is the evaluated one; workers change nothing."""
    policy = load_policy(str(run))
    config, weights = policy.config, policy.weights
    with make_pool(RunnerConfig(), 2) as pool:
        full = evaluate_policy(pool, config, weights, range(3), "full", True)
        first = evaluate_policy(pool, config, weights, range(3), "first", True)
        recording = pool.ask(record_episode, (evaluation_job(config, weights, "full", True), 1))
    with make_pool(RunnerConfig(), 1) as pool:
        alone = evaluate_policy(pool, config, weights, [2, 0, 1], "full", True)
    assert all(same(full[seed], alone[place]) for place, seed in enumerate([2, 0, 1]))
    for short, long in zip(first, full, strict=True):
        failures = np.flatnonzero(np.isin(long.outcome, ELIMINATED).any(axis=1))
        assert short.length == failures[0] + 1
        assert np.array_equal(short.observation, long.observation[: short.length])
        assert np.array_equal(short.reward, long.reward[: short.length])
    assert same(recording.episode, full[1])
    tracks = recording.tracks
    assert len(tracks.present) == full[1].length + 1
    assert np.all(tracks.present[:-1][full[1].active])
    assert sorted(route.slot for route in tracks.routes) == [0, 1, 2, 3]
    moved = np.linalg.norm(np.diff(tracks.position[:40, 0], axis=0), axis=-1)
    assert moved.sum() == pytest.approx(tracks.speed[1:40, 0].sum() * 0.1, rel=0.1)


@pytest.mark.simulator
@pytest.mark.slow
def test_evaluate_writes_what_it_promises(run: Path, tmp_path: Path) -> None:
    arguments = ["episodes=3", "first_seed=5", "num_workers=2", "video=true", "replay=true", f"versus={run}"]
    arguments.append(f"out={tmp_path}")
    answer = subprocess.run(
        [sys.executable, "-m", "maip3o.evaluate", f"checkpoint={run}", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    content = json.loads((tmp_path / "evaluation.json").read_text())
    assert content["policy"] == "maip3o_intersection_seed0"
    assert content["seeds"] == [5, 7]
    for protocol in ("first", "full"):
        figures = content["protocols"][protocol]["figures"]
        causes = ("arrived", "eliminated", "time_out", "cut")
        assert sum(figures[name]["mean"] for name in causes) == pytest.approx(1.0)
        assert all(part["low"] <= part["mean"] <= part["high"] for part in figures.values())
        assert [row["seed"] for row in content["episodes"][protocol]] == [5, 6, 7]
    assert content["protocols"]["first"]["constraints"]["termination"]["verdict"] == "not judged"
    assert "collective return" in answer.stdout
    files = {clip["file"] for clip in content["videos"]}
    assert "versus_maip3o_intersection_seed0.mp4" in files
    assert "replay.html" in files
    assert all((tmp_path / name).stat().st_size > 5000 for name in [*files, "reliability.png"])


@pytest.mark.simulator
@pytest.mark.slow
def test_the_example_drives_the_exported_policy(run: Path, tmp_path: Path) -> None:
    """onnxruntime alone earns the return that the evaluation measured."""
    file = export.run([f"checkpoint={run}", f"out={tmp_path / 'policy.onnx'}"])
    example = Path(__file__).parent.parent / "examples" / "drive_onnx.py"
    answer = subprocess.run([sys.executable, str(example), str(file), "1"], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("intersection, seed 1: return ")
    again = subprocess.run([sys.executable, str(example), str(file), "1"], capture_output=True, text=True, check=False)
    assert again.stdout == answer.stdout
    wrong = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
