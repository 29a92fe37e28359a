"""One run in one directory: starts it, goes on with it, or finds it finished. What sweeps and `resume=` build on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import loky
import torch
from omegaconf import OmegaConf

from maip3o.config.budget import budget_of, fewest_episodes
from maip3o.config.schema import Config
from maip3o.errors import RunError
from maip3o.runners.checkpoint import Checkpoint
from maip3o.runners.directory import only_one_trainer
from maip3o.runners.loop import train
from maip3o.runners.resume import find_start


def run(config: Config, directory: Path, prolong: bool = False) -> float:
    """Train in `directory` to the end of its budget, from the directory's checkpoint if it has one.

    A run of another length is another run, unless it is to `prolong` the one that is there.

    Returns the last evaluation's return (without evaluations: the last iteration's), the figure for sweepers.
    """
    with only_one_trainer(directory), _terminate_like_interrupt():
        start = find_start(config, directory, prolong)
        if start is not None and budget_of(config).finished(start.counters):
            if not config.logger.quiet:
                print(f"{directory}: finished before, {start.counters['episodes']} episodes")
            return float(start.counters["result"])
        _write_config(config, directory / ".hydra")
        return train(_settle(config, start), directory, start)


def _settle(config: Config, start: Checkpoint | None) -> Config:
    """Replace every `auto` by what it means here. The update's threads stay those of the run's beginning:
    they decide the order of sums, so the last bits of the weights."""
    cores = loky.cpu_count()
    threads = start.config.torch_threads if start is not None else 1  # small networks: more threads only wait
    return replace(
        config,
        # More processes than episodes would only hold memory.
        num_workers=min(cores, fewest_episodes(config)) if config.num_workers == "auto" else config.num_workers,
        torch_threads=threads if config.torch_threads == "auto" else config.torch_threads,
        device=("cuda" if torch.cuda.is_available() else "cpu") if config.device == "auto" else config.device,
        resume=None,
    )


def _write_config(config: Config, folder: Path) -> None:
    """What `resume=` and the reports read, where Hydra has not written it (a run from Python) or no more (resumed)."""
    try:
        folder.mkdir(exist_ok=True)
        OmegaConf.save(OmegaConf.structured(config), folder / "config.yaml")
        if not (folder / "overrides.yaml").exists():
            (folder / "overrides.yaml").write_text("[]\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error.strerror}") from error


@contextmanager
def _terminate_like_interrupt() -> Iterator[None]:
    """SIGTERM, as a cluster sends it before it kills, ends a run like Ctrl-C."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
