"""Where the numbers of a run go: metrics.jsonl, TensorBoard (and so Weights & Biases), progress line, status.json."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from maip3o.config.budget import budget_of
from maip3o.config.schema import Config
from maip3o.config.versions import versions
from maip3o.data.statistics import EpisodeTable
from maip3o.envs.registry import find_world
from maip3o.errors import RunError
from maip3o.files import write_json
from maip3o.runners.board import Board
from maip3o.runners.last_words import last_words, short
from maip3o.runners.progress import ProgressLine, format_line

log = logging.getLogger(__name__)

COUNTERS = ("iteration", "episodes", "env_steps", "agent_steps", "seconds")


class RunLog:
    """The log of one run; nothing ever reads a number back from it."""

    def __init__(self, directory: Path, config: Config, counters: Mapping[str, Any]) -> None:
        """counters: of the checkpoint from which the run goes on; what metrics.jsonl holds beyond it is dropped."""
        self.directory, self.config = directory, config
        self.progress = ProgressLine(config.logger.quiet)
        try:
            self._messages = MessageFile(directory / "train.log")
            self._metrics = open(directory / "metrics.jsonl", "ab")  # noqa: SIM115
            # No longer than it is: truncating would fill up what somebody has taken away with zero bytes.
            self._metrics.truncate(min(counters["metrics_bytes"], self._metrics.tell()))
        except OSError as error:
            raise RunError(f"cannot write {error.filename}: {error.strerror}") from error
        self._wandb = _weights_and_biases(directory, config)  # before the writer that it is to watch
        self._board = _board(directory, config, counters["episodes"])
        self._kinds = find_world(config.scenario).costs(config.scenario)
        self._pace: tuple[float, float] | None = None  # clock and progress after the session's first iteration
        self._last_evaluation: EpisodeTable | None = None
        _write_json(directory / "versions.json", versions(directory / "versions.json"))
        self.saved(counters)

    @property
    def metrics_bytes(self) -> int:
        return self._metrics.tell()

    def iteration(self, counters: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
        self._write("iteration", counters, numbers)
        budget = budget_of(self.config)
        left = self._seconds_left(budget.progress(counters))
        line = format_line(budget.done(counters), budget.total, budget.unit, left, numbers, self._kinds)
        self.progress.show(line, last=budget.finished(counters))

    def _seconds_left(self, progress: float) -> float:
        """By the pace since this session's first iteration, which may have compiled; NaN before there is one."""
        if self._pace is None:
            self._pace = time.monotonic(), progress
        begun, before = self._pace
        done = progress - before
        return (time.monotonic() - begun) / done * (1.0 - progress) if done > 0 else math.nan

    def evaluation(self, counters: Mapping[str, Any], numbers: Mapping[str, float], table: EpisodeTable) -> None:
        """`table`: the episodes of the protocol that tells more, for the last words of the run."""
        self._write("evaluation", counters, numbers)
        self._last_evaluation = table
        if self._board is not None:
            self._board.episodes(table, counters["episodes"])

    def _write(self, kind: str, counters: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
        record: dict[str, Any] = {"kind": kind, **{name: counters[name] for name in COUNTERS}}
        record.update({name: value if math.isfinite(value) else None for name, value in numbers.items()})
        try:
            self._metrics.write(json.dumps(record).encode() + b"\n")
            self._metrics.flush()
            os.fsync(self._metrics.fileno())
        except OSError as error:
            raise RunError(f"cannot write {self.directory / 'metrics.jsonl'}: {error.strerror}") from error
        if self._board is not None:
            self._board.write(numbers, counters["episodes"])

    def saved(self, counters: Mapping[str, Any]) -> None:
        """The checkpoint of this state is on disk."""
        self.episodes = counters["episodes"]
        self._status("running", "")

    def _status(self, state: str, message: str) -> None:
        content = {"state": state, "episodes": self.episodes, "message": message}
        _write_json(self.directory / "status.json", content)

    def __enter__(self) -> RunLog:
        logging.getLogger().addHandler(self._messages)
        logging.getLogger("maip3o").addHandler(self.progress)
        logging.getLogger("maip3o").setLevel(logging.DEBUG)  # the file takes all of it, the console INFO and above
        log.info(
            "%s: %s", short(self.directory), f"going on at episode {self.episodes}" if self.episodes else "training"
        )
        if self.progress.live:
            self.progress.show("first iteration: starting the workers, compiling what is new, once")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.progress.finish()
        again = shlex.join(["python", "-m", "maip3o.train", f"resume={short(self.directory)}"])
        if error is None:
            self._status("finished", "")
            log.info("%s: finished, %d episodes", short(self.directory), self.episodes)
            for line in last_words(self.directory, self.config, self._last_evaluation):
                log.info("%s", line)
        elif isinstance(error, KeyboardInterrupt):
            log.info("interrupted; the checkpoint holds %d episodes. Go on with: %s", self.episodes, again)
            self._status("interrupted", f"go on with {again}")
        else:
            with suppress(RunError):  # the disk may be full: the first error is the one to report
                self._status("failed", f"{type(error).__name__}: {error}")
            log.debug("failed", exc_info=error)  # the user sees one line, whoever looks for the cause finds it here
        logging.getLogger("maip3o").removeHandler(self.progress)
        logging.getLogger().removeHandler(self._messages)
        self._messages.close()
        self._metrics.close()
        if self._board is not None:
            self._board.close()
        if self._wandb is not None:
            self._wandb.finish()


class MessageFile(logging.FileHandler):
    """train.log: every message of all sessions, those of libraries included."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")
        self.setFormatter(logging.Formatter("[%(asctime)s][%(name)s][%(levelname)s] - %(message)s"))

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk is reported once, by what cannot do without it."""


def _weights_and_biases(directory: Path, config: Config) -> Any:
    """wandb, told to read TensorBoard's events; None unless a project is named."""
    if config.logger.wandb_project is None:
        return None
    import wandb

    wandb.init(
        project=config.logger.wandb_project,
        # The same directory is the same run, however often resumed; below another folder it is another one.
        id=hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:16],
        name="-".join(directory.resolve().parts[-4:]),
        resume="allow",
        dir=directory,
        config=asdict(config),
        sync_tensorboard=True,
    )
    return wandb


def _board(directory: Path, config: Config, episodes: int) -> Board | None:
    if not config.logger.tensorboard:
        return None
    return Board(directory, list(config.constraints), config.algo.constraint_estimate, episodes)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    try:
        write_json(path, content)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
