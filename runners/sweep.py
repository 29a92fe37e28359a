"""Sweeps: many runs, each in its own directory, which says what remains to be done.

Running the same sweep again skips what is finished and goes on with what is not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from maip3o.config.budget import budget_of
from maip3o.config.overrides import FOLDER
from maip3o.config.overrides import jobs as jobs_of
from maip3o.errors import UserError
from maip3o.files import write_json
from maip3o.runners.compose import to_config, told_in_one_line
from maip3o.runners.directory import require_free
from maip3o.runners.job import OUTPUT

WORKERS_OF_A_JOB = 4  # `jobs: auto` gives every job this many cores if there are enough
SETTLED = ("finished", "finished before")


@dataclass(frozen=True)
class Job:
    """One point of the sweep. `state` is "" until something has happened to it."""

    number: int
    name: str  # its directory below that of the sweep
    directory: Path
    overrides: tuple[str, ...]
    config: DictConfig  # with Hydra's own
    state: str = ""
    message: str = ""
    episodes: int = 0
    seconds: float = 0.0
    result: float = float("nan")  # what a sweeper optimises


DONE: list[Job] = []
"""Every job that this process has seen the end of, for the table at the end."""


def command_lines(overrides: Sequence[str], config_dir: str | None, multirun: bool) -> list[list[str]]:
    """The command line of every job: one, or with -m all combinations, those of an experiment included."""
    swept = [text for override in overrides for text in _experiment_sweep(override, config_dir)]
    if not multirun:
        if swept:
            raise UserError(f"{' '.join(overrides)}: an experiment is a sweep, add -m")
        return [list(overrides)]
    return jobs_of([*swept, *overrides])


def _experiment_sweep(override: str, config_dir: str | None) -> list[str]:
    """What `+experiment=name` sweeps over, as overrides."""
    key, _, name = override.partition("=")
    if key.lstrip("+") != "experiment":
        return []
    for folder in (FOLDER, *([Path(config_dir)] if config_dir else [])):
        path = folder / "experiment" / f"{name}.yaml"
        if path.is_file():
            with told_in_one_line():
                params = OmegaConf.select(OmegaConf.load(path), "hydra.sweeper.params") or {}
            return [f"{key}={value}" for key, value in params.items()]
    return []


def prepare(number: int, overrides: Sequence[str], config: DictConfig, sweep_directory: Path, name: str) -> Job:
    """Find out what is left of a job; if anything is, write its config where the job will look for it."""
    directory = (sweep_directory / name).resolve()
    job = Job(number, name, directory, tuple(overrides), config)
    from maip3o.runners.resume import find_start  # torch takes seconds to import: not for --help

    try:
        settings = to_config(config)
        start = find_start(settings, directory)
        if start is not None and budget_of(settings).finished(start.counters):
            return with_progress(replace(job, state="finished before", result=float(start.counters["result"])))
        require_free(directory)
    except UserError as error:
        return replace(job, state="refused", message=str(error))
    with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
        config.hydra.runtime.output_dir = str(directory)
    _write_config(config, directory / ".hydra")
    return job


def _write_config(config: DictConfig, folder: Path) -> None:
    """The three files that Hydra itself writes for a run."""
    folder.mkdir(parents=True, exist_ok=True)
    task = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    OmegaConf.save(task, folder / "config.yaml")
    OmegaConf.save(OmegaConf.masked_copy(config, ["hydra"]), folder / "hydra.yaml")
    OmegaConf.save(config.hydra.overrides.task, folder / "overrides.yaml")


def with_progress(job: Job) -> Job:
    """The job with what its directory tells: episodes, seconds and the last result."""
    episodes, seconds, result = 0, 0.0, float("nan")
    try:
        lines = (job.directory / "metrics.jsonl").read_bytes().splitlines()
    except OSError:
        return job
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # the line that was being written when the job died
        episodes, seconds = record.get("episodes", episodes), record.get("seconds", seconds)
        found = record.get("evaluation/full/return", record.get("rollout/return"))
        result = result if found is None else float(found)
    kept = result if job.state in ("finished", "") else job.result
    return replace(job, episodes=int(episodes), seconds=float(seconds), result=kept)


def stopped(job: Job) -> Job:
    """A job that had not ended when the sweep was stopped."""
    begun = (job.directory / OUTPUT).exists()
    return with_progress(replace(job, state="interrupted" if begun else "not started"))


def cores_per_job(jobs: int | str, pending: int) -> tuple[int, int]:
    """(jobs at once, cores for each) on this machine. `auto`: as many as can have a few cores each."""
    import loky

    cores = int(loky.cpu_count())
    at_once = max(1, cores // WORKERS_OF_A_JOB) if jobs == "auto" else int(jobs)
    at_once = max(1, min(at_once, pending))
    return at_once, max(1, cores // at_once)


def table(jobs: Sequence[Job]) -> str:
    """One line per job, aligned, and a summary."""
    rows = [("job", "state", "episodes", "hours", "result", "message")]
    for job in sorted(jobs, key=lambda job: job.number):
        result = "-" if job.result != job.result else f"{job.result:.1f}"
        rows.append((job.name, job.state, str(job.episodes), f"{job.seconds / 3600:.2f}", result, job.message))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows
    ]
    good = sum(job.state in SETTLED for job in jobs)
    return "\n".join([*lines, f"{good} of {len(jobs)} jobs are finished"])


def report_ends() -> int:
    """Print the table of this process's sweep; the exit code that it deserves."""
    if not DONE:
        return 0
    print(table(DONE), flush=True)
    return 0 if all(job.state in SETTLED for job in DONE) else 1


def save_table(jobs: Sequence[Job], directory: Path) -> None:
    """sweep.json: the same for programs. Written whole or not at all."""
    content: list[dict[str, Any]] = [
        {
            "directory": job.name,
            "overrides": list(job.overrides),
            "state": job.state,
            "message": job.message,
            "episodes": job.episodes,
            "seconds": job.seconds,
            "result": job.result,
        }
        for job in jobs
    ]
    write_json(directory / "sweep.json", content)
