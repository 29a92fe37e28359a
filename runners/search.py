"""One trial of a search: overrides drawn from a search space, trained in a process, watched, stopped when hopeless."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep
from hydra.errors import HydraException

from maip3o.errors import UserError
from maip3o.runners.job import ending

if TYPE_CHECKING:
    import optuna

POLL_SECONDS = 1.0


class TrialFailed(Exception):
    """The training of a trial died; the search goes on with the next."""


@dataclass(frozen=True)
class SearchSpace:
    """Overrides of one training run, some of them fixed and some to be drawn."""

    fixed: tuple[str, ...]
    drawn: tuple[Override, ...]
    config_dir: str | None = None  # with config groups of the user's own

    def suggest(self, trial: optuna.Trial) -> list[str]:
        """The overrides of this trial."""
        return [*self.fixed, *(f"{override.get_key_element()}={_suggest(trial, override)}" for override in self.drawn)]

    def example(self) -> list[str]:
        """The overrides of some trial, to check before anything is started."""
        return [*self.fixed, *(f"{override.get_key_element()}={_first(override.value())}" for override in self.drawn)]


def parse_space(overrides: Sequence[str], config_dir: str | None = None) -> SearchSpace:
    """`algo.lr=tag(log,interval(1e-4,1e-3))`, `range(2,9)` and comma-separated values are drawn, the rest is fixed."""
    fixed: list[str] = []
    drawn: list[Override] = []
    for text in overrides:
        try:
            override = OverridesParser.create().parse_override(text)
        except HydraException:
            raise UserError(f"{text}: not of the form key=value (a range needs quotes in the shell)") from None
        if override.is_sweep_override():
            _require_room(text, override.value())
            drawn.append(override)
        else:
            fixed.append(text)
    return SearchSpace(tuple(fixed), tuple(drawn), config_dir)


def _require_room(text: str, value: Any) -> None:
    if isinstance(value, ChoiceSweep):
        return
    low, high = value.start, value.end if isinstance(value, IntervalSweep) else value.stop
    if not low < high:
        raise UserError(f"{text}: its lower end must be below its upper end")
    if "log" in value.tags and not low > 0:
        raise UserError(f"{text}: a logarithmic scale must begin above 0")


def _suggest(trial: optuna.Trial, override: Override) -> Any:
    key, value = override.key_or_group, override.value()
    if isinstance(value, ChoiceSweep):
        choices: list[Any] = value.list
        return trial.suggest_categorical(key, choices)
    assert isinstance(value, (RangeSweep, IntervalSweep))
    log = "log" in value.tags
    low: Any = value.start
    if isinstance(value, RangeSweep):
        high: Any = value.stop
        if all(isinstance(number, int) for number in (low, high, value.step)):
            return trial.suggest_int(key, low, high - 1, step=1 if log else int(value.step), log=log)
        return trial.suggest_float(key, low, high, step=None if log else float(value.step), log=log)
    high = value.end
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(key, low, high, log=log)
    return trial.suggest_float(key, low, high, log=log)


def _first(value: Any) -> Any:
    return value.list[0] if isinstance(value, ChoiceSweep) else value.start


def trial_directory(folder: Path, overrides: Sequence[str]) -> Path:
    """The same overrides have the same directory: a repeated or interrupted trial goes on, or is found finished."""
    name = hashlib.sha256(json.dumps(sorted(overrides)).encode()).hexdigest()[:12]
    return folder / "trials" / name


def training_command(overrides: Sequence[str], config_dir: str | None) -> list[str]:
    return ["-m", "maip3o.train", *(["--config-dir", config_dir] if config_dir else []), *overrides]


def run_trial(trial: optuna.Trial, space: SearchSpace, folder: Path, metric: str, cores: int) -> float:
    """Train; report every new value of `metric` to the trial; raise TrialPruned if it is hopeless."""
    import optuna

    overrides = space.suggest(trial)
    directory = trial_directory(folder, overrides)
    directory.mkdir(parents=True, exist_ok=True)
    trial.set_user_attr("directory", str(directory))
    trial.set_user_attr("overrides", overrides)
    command = [sys.executable, *training_command(overrides, space.config_dir), f"hydra.run.dir={directory}"]
    environment = {**os.environ, "LOKY_MAX_CPU_COUNT": str(cores), "OMP_NUM_THREADS": str(cores)}
    output = directory / "output.log"
    reported: dict[int, float] = {}
    with output.open("ab") as stream:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while process.poll() is None:
                time.sleep(POLL_SECONDS)
                if _report(trial, directory, metric, reported) and trial.should_prune():
                    raise optuna.TrialPruned
                if not reported:
                    require_measured(directory, metric)
        finally:
            if process.poll() is None:
                process.terminate()  # the run saves itself
                process.wait()
    if process.returncode != 0:
        end = ending(process.returncode, output.read_text(encoding="utf-8", errors="replace"))
        raise TrialFailed(f"{end.state} {end.message}".strip())
    _report(trial, directory, metric, reported)
    if not reported:
        require_measured(directory, metric)
        raise TrialFailed(f"no {metric} in {directory / 'metrics.jsonl'}")
    return reported[max(reported)]


def _report(trial: optuna.Trial, directory: Path, metric: str, reported: dict[int, float]) -> bool:
    """Tell the trial what is new in metrics.jsonl; whether anything was."""
    fresh = [(episodes, value) for episodes, value in measured(directory, metric) if episodes not in reported]
    for episodes, value in fresh:
        trial.report(value, episodes)
    reported.update(fresh)
    return bool(fresh)


def measured(directory: Path, metric: str) -> list[tuple[int, float]]:
    """(episodes, value) wherever metrics.jsonl has the metric."""
    records = _records(directory)
    return [(int(line["episodes"]), float(line[metric])) for line in records if line.get(metric) is not None]


def require_measured(directory: Path, metric: str) -> None:
    """Refuse a metric that training does not measure as soon as it shows: no trial would ever have it."""
    records = _records(directory)
    kinds = {line["kind"] for line in records}
    names = {name for line in records for name in line}
    wanted = "evaluation" if metric.startswith("evaluation/") else "iteration"
    if wanted in kinds and metric not in names:
        close = difflib.get_close_matches(metric, names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"{directory / 'metrics.jsonl'} shows what there is"
        raise UserError(f"metric={metric}: training measures no such thing; {hint}")


def _records(directory: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; a half-written one is none yet."""
    try:
        lines = (directory / "metrics.jsonl").read_bytes().splitlines()
    except OSError:
        return []
    records = []
    for line in lines:
        with suppress(ValueError):
            records.append(json.loads(line))
    return records
