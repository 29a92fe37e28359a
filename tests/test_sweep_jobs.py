"""Sweeps: what is skipped, what goes on, what a dead job costs, and how cores are shared."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import loky
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from maip3o.config.overrides import FOLDER
from maip3o.errors import UserError
from maip3o.runners import checkpoint, sweep
from maip3o.runners.compose import compose as compose_run
from maip3o.runners.compose import register
from maip3o.runners.job import Ending, ending, execute
from maip3o.runners.launchers import _few_at_once
from maip3o.runners.sweep import Job, command_lines, cores_per_job, prepare, table

TOY = ["--config-dir", str(Path(__file__).parent / "conf")]
SHORT = [
    "+scenario=toy",
    "total_episodes=4",
    "episodes_per_iteration=2",
    "evaluation.every_episodes=0",
    "num_workers=1",
]


def job_of(number: int, state: str = "", message: str = "") -> Job:
    return Job(number, f"seed{number}", Path(f"seed{number}"), (), DictConfig({}), state, message)


def launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maip3o.train", *TOY, "-m", *SHORT, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def _set_length(path: Path, episodes: int) -> None:
    begun = checkpoint.load(path)
    begun.config.total_episodes = episodes
    checkpoint.save(path, begun)


@pytest.mark.slow
def test_a_sweep_skips_what_is_finished_and_goes_on_with_the_rest(tmp_path: Path) -> None:
    done = launch(tmp_path, "seed=0", "total_episodes=2")
    assert done.returncode == 0, done.stderr
    short = next(tmp_path.glob("runs/toy/maip3o/*/seed0"))
    first = compose_run([*SHORT, "seed=0"], TOY[1])[1]
    assert short != tmp_path / first  # another length is another run
    first = tmp_path / first
    shutil.copytree(short, first)
    _set_length(first / "checkpoints" / "last.pt", 4)  # as if it had been stopped half-way
    begun = (first / "metrics.jsonl").read_bytes()

    done = launch(tmp_path, "seed=0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1 of 1 jobs are finished"
    whole = (first / "metrics.jsonl").read_bytes()
    assert whole.startswith(begun)
    assert len(whole.splitlines()) == 2
    for name in ("output.log", "train.log"):  # both sessions, every message once
        assert (first / name).read_text().count("going on at episode 2") == 1

    before = {path: path.stat().st_mtime_ns for path in first.parent.rglob("*")}
    done = launch(tmp_path, "seed=0")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "runs" / "sweep.json").read_text())
    assert [(row["state"], row["episodes"]) for row in rows] == [("finished before", 4)]
    assert {path: path.stat().st_mtime_ns for path in first.parent.rglob("*")} == before


def test_a_bad_value_in_a_sweep_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    done = launch(tmp_path, "algo.gamma=0.9,1.5")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "algo.gamma" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_how_a_process_ended_is_told_by_its_code_and_last_line() -> None:
    assert ending(0, "anything") == Ending("finished")
    assert ending(2, "noise\nerror: algo.lr=-1: must be positive\n") == Ending(
        "refused", "algo.lr=-1: must be positive"
    )
    assert ending(1, "Traceback\nMemoryError: no\n\n") == Ending("failed", "MemoryError: no")
    assert ending(130, "") == Ending("interrupted")
    assert ending(-9, "half a li") == Ending("killed", "by SIGKILL")


def test_a_killed_job_is_one_line_and_the_others_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$3" in *seed1) kill -9 $$;; esac\necho "cores $LOKY_MAX_CPU_COUNT"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    jobs = [job_of(number) for number in range(3)]
    for job in jobs:
        (tmp_path / job.name).mkdir()
    run = lambda job: Ending(**execute(str(tmp_path / job.name), 3))  # noqa: E731
    ends = {job.number: end for job, end in _few_at_once(jobs, 2, run)}
    assert ends == {0: Ending("finished"), 1: Ending("killed", "by SIGKILL"), 2: Ending("finished")}
    assert (tmp_path / "seed0" / "output.log").read_text() == "cores 3\n"


def test_an_error_around_a_job_is_that_jobs_end() -> None:
    def run(job: Job) -> Ending:
        if job.number == 0:
            raise OSError("no such\nnode")
        return Ending("finished")

    ends = {job.number: end for job, end in _few_at_once([job_of(0), job_of(1)], 1, run)}
    assert ends == {0: Ending("lost", "no such node"), 1: Ending("finished")}


def test_a_directory_of_another_experiment_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(config: object, directory: Path) -> None:
        raise UserError("algo.lr=0.1: the run has algo.lr=0.2")

    monkeypatch.setattr("maip3o.runners.resume.find_start", refuse)
    config, _ = composed(["+scenario=intersection"])
    job = prepare(0, [], config, tmp_path, "job")
    assert (job.state, job.message) == ("refused", "algo.lr=0.1: the run has algo.lr=0.2")
    assert list(tmp_path.iterdir()) == []


def composed(overrides: list[str]) -> tuple[DictConfig, str]:
    register()
    with initialize_config_dir(str(FOLDER), version_base="1.3", job_name="train"):
        config = compose("config", overrides=overrides, return_hydra_config=True)
        HydraConfig.instance().set_config(config)
        return config, str(config.hydra.sweep.subdir)


def test_jobs_have_directories_that_depend_on_the_experiment_alone() -> None:
    _, plain = composed(["+scenario=intersection", "algo=mappo", "seed=3"])
    assert composed(["seed=3", "num_workers=7", "algo=mappo", "+scenario=intersection"])[1] == plain
    others = {composed(["+scenario=intersection", *more])[1] for more in (["algo.lr=1e-3"], ["seed=1"], ["algo=map3o"])}
    assert len(others | {plain}) == 4


@pytest.mark.parametrize("name", sorted(path.stem for path in (Path(FOLDER) / "experiment").glob("*.yaml")))
def test_every_experiment_is_a_valid_sweep(name: str) -> None:
    lines = command_lines([f"+experiment={name}", "seed=0,1"], None, multirun=True)
    assert len({tuple(line) for line in lines}) == len(lines) > 1
    some = lines[:: len(lines) // 12 + 1]  # an experiment on robots has two hundred
    assert len({composed(line)[1] for line in some}) == len(some)
    config, _ = compose_run([*lines[0], "init=null"])  # one of them goes on from another
    own_length = {"smoke": 8, "growing_penalty": 3000, "staggered_starts": 6000, "near_crowd": 6000}
    own_length |= {"respawn": 800, "respawn_parking_lot": 800, "respawn_crowd": 800}
    assert config.total_episodes == own_length.get(name, 2000)
    with pytest.raises(UserError, match="add -m"):
        command_lines([f"+experiment={name}"], None, multirun=False)


def test_the_command_line_replaces_what_an_experiment_sweeps_over() -> None:
    lines = command_lines(["+experiment=paper_metadrive", "seed=7", "algo=mappo"], None, multirun=True)
    assert len(lines) == 2
    assert all("seed=7" in line and "algo=mappo" in line for line in lines)


def test_cores_are_shared_among_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loky, "cpu_count", lambda: 16)
    assert cores_per_job("auto", pending=18) == (4, 4)
    assert cores_per_job("auto", pending=1) == (1, 16)
    assert cores_per_job(3, pending=18) == (3, 5)
    monkeypatch.setattr(loky, "cpu_count", lambda: 2)
    assert cores_per_job("auto", pending=18) == (1, 2)
    assert cores_per_job(8, pending=18) == (8, 1)


def test_the_table_names_every_job_and_the_exit_code_says_whether_all_are_finished(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job_of(1, "killed", "by SIGKILL"), job_of(0, "finished before")]
    lines = table(jobs).splitlines()
    assert lines[1].startswith("seed0  finished before")
    assert lines[2].endswith("by SIGKILL")
    assert lines[3] == "1 of 2 jobs are finished"
    monkeypatch.setattr(sweep, "DONE", jobs)
    assert sweep.report_ends() == 1
    monkeypatch.setattr(sweep, "DONE", jobs[1:])
    assert sweep.report_ends() == 0
    monkeypatch.setattr(sweep, "DONE", [])
    capsys.readouterr()
    assert sweep.report_ends() == 0
    assert capsys.readouterr().out == ""
