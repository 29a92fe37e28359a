"""Reading run directories. What cannot be used is left out and named, never guessed at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from maip3o.config.identity import flat
from maip3o.errors import UserError
from maip3o.report.records import SUFFIX, read_records, record_file
from maip3o.report.runs import Run, is_number

RUN_MARKS = (".hydra", "metrics.jsonl", "status.json", "checkpoints")


class UnusableRun(Exception):
    """A directory that cannot be read as a run; the message says why."""


def require_runs(paths: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """As read_runs; nothing usable at all is the user's error."""
    paths = list(paths)
    if not paths:
        raise UserError("no run directory given: name one or more, for instance runs/")
    runs, remarks = read_runs(paths)
    if not runs:
        reasons = "; ".join(remarks[:3]) + ("; ..." if len(remarks) > 3 else "")
        raise UserError(f"no usable run in {', '.join(map(str, paths))}" + (f" ({reasons})" if reasons else ""))
    return runs, remarks


def find_run_directories(paths: Iterable[Path]) -> Iterator[Path]:
    """Every directory that looks like a run and every record file under `paths`, each once.

    A leaf with nothing in it counts too.
    """
    seen: set[Path] = set()
    for path in paths:
        for directory in _walk(path):
            if directory.resolve() not in seen:
                seen.add(directory.resolve())
                yield directory


def _walk(directory: Path) -> Iterator[Path]:
    if not directory.is_dir() or any((directory / mark).exists() for mark in RUN_MARKS):
        yield directory
        return
    yield from sorted(child for child in directory.iterdir() if child.name.endswith(SUFFIX))
    children = sorted(child for child in directory.iterdir() if child.is_dir() and not child.name.startswith("."))
    if not children and not any(directory.iterdir()):
        yield directory  # empty: the reader says so by name
    for child in children:
        yield from _walk(child)


def read_runs(paths: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """All usable runs under `paths`, and one line for each directory left out or read in part."""
    runs: list[Run] = []
    remarks: list[str] = []
    for directory in find_run_directories(paths):
        try:
            found, remark = _read(directory)
        except UnusableRun as reason:
            remarks.append(f"{directory}: left out: {reason}")
            continue
        runs += map(_in_todays_words, found)
        if remark:
            remarks.append(f"{directory}: {remark}")
    kept, doubles = _one_per_seed(runs)
    return kept, remarks + doubles + _unlike_evaluations(kept)


def _in_todays_words(run: Run) -> Run:
    """Older runs call the share that arrived `success`."""
    words = json.dumps([run.records, run.evaluation])
    if '/success"' not in words:
        return run
    records, evaluation = json.loads(words.replace('/success"', '/arrived"').replace('"success"', '"arrived"'))
    return replace(run, records=records, evaluation=evaluation)


def _read(path: Path) -> tuple[list[Run], str]:
    if record_file(path) is None:
        run, remark = read_run(path)
        return [run], remark
    try:
        runs = read_records(path)
    except ValueError as reason:
        raise UnusableRun(str(reason)) from None
    if not runs:
        raise UnusableRun("the record holds no such run")
    return runs, ""


def read_run(directory: Path) -> tuple[Run, str]:
    """Read one directory, with a remark ("" if all is well). Raises UnusableRun."""
    if not directory.exists():
        raise UnusableRun("no such directory")
    if not directory.is_dir():
        raise UnusableRun("not a directory")
    if not any(directory.iterdir()):
        raise UnusableRun("empty")
    config = _read_config(directory / ".hydra" / "config.yaml")
    records, remark = _read_records(directory / "metrics.jsonl")
    scenario, algo = _names(directory, config)
    seed = config.get("seed")
    if not isinstance(seed, int):
        raise UnusableRun("its config has no seed")
    run = Run(
        directory=directory,
        scenario=scenario,
        algo=algo,
        seed=seed,
        settings=flat(config),
        records=records,
        versions=_read_optional(directory / "versions.json") or {},
        status=_read_optional(directory / "status.json") or {},
        evaluation=_read_optional(directory / "evaluation.json"),
    )
    return run, remark


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnusableRun("no .hydra/config.yaml") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise UnusableRun(".hydra/config.yaml cannot be read") from None
    if not isinstance(config, dict) or not isinstance(config.get("scenario"), dict):
        raise UnusableRun(".hydra/config.yaml is not the config of a run")
    return config


def _names(directory: Path, config: Mapping[str, Any]) -> tuple[str, str]:
    """Scenario and algorithm as they were chosen: `algo=maip3o_paper` is not `algo=maip3o`, though both are MAIP3O."""
    choices: Mapping[str, Any] = {}
    # A run started without Hydra has no choices: its config names them.
    with suppress(OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError):
        hydra = yaml.safe_load((directory / ".hydra" / "hydra.yaml").read_text(encoding="utf-8"))
        choices = hydra["hydra"]["runtime"]["choices"] or {}
    names = []
    for group in ("scenario", "algo"):
        settings = config.get(group)
        name = choices.get(group) or (settings.get("name") if isinstance(settings, Mapping) else None)
        if not isinstance(name, str):
            raise UnusableRun(f"its config names no {group}")
        names.append(name)
    return names[0], names[1]


def _read_records(path: Path) -> tuple[list[dict[str, Any]], str]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        raise UnusableRun("no metrics.jsonl") from None
    records: list[dict[str, Any]] = []
    remark = ""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            if number < len(lines):
                raise UnusableRun(f"metrics.jsonl is broken at line {number}") from None
            remark = f"read without the half-written last line of metrics.jsonl (line {number})"
            continue
        if not isinstance(record, dict) or record.get("kind") not in ("iteration", "evaluation"):
            raise UnusableRun(f"metrics.jsonl holds something else at line {number}")
        if not is_number(record.get("episodes")):
            raise UnusableRun(f"metrics.jsonl has no episode count at line {number}")
        _drop_repeated(records, record)
        records.append(record)
    if not records:
        raise UnusableRun("metrics.jsonl holds no complete line")
    return records, remark


def _drop_repeated(records: list[dict[str, Any]], record: Mapping[str, Any]) -> None:
    """A resumed run repeats what came after its checkpoint: the later line is the one that counts."""
    for index in range(len(records) - 1, -1, -1):
        earlier = records[index]
        if earlier["episodes"] < record["episodes"]:
            return
        if earlier["episodes"] > record["episodes"] or earlier["kind"] == record["kind"]:
            del records[index]


def _read_optional(path: Path) -> dict[str, Any] | None:
    """A JSON object that a run may lack, or have half of: the curves do not need it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _unlike_evaluations(runs: list[Run]) -> list[str]:
    """Scores of sampled and of mean actions, or on other episodes, stand side by side only by mistake."""
    kinds: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.evaluation and run.evaluated_figures():
            first, last = run.evaluation.get("seeds", (None, None))
            kind = f"{run.evaluation.get('actions')} actions, seeds {first} to {last}"
            kinds.setdefault((run.scenario, kind), []).append(run)
    remarks = []
    for scenario in sorted({scenario for scenario, _ in kinds}):
        found = sorted((len(members), kind, members) for (name, kind), members in kinds.items() if name == scenario)
        usual = found[-1][1]
        for _, kind, members in found[:-1]:
            named = ", ".join(str(run.directory) for run in members)
            remarks.append(f"{named}: evaluated with {kind}, others of {scenario} with {usual}: not comparable")
    return remarks


def _one_per_seed(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """The same experiment and seed twice would count one draw as two: keep the longest run."""
    best: dict[tuple[str, str, str, int], Run] = {}
    remarks: list[str] = []
    for run in runs:
        key = (run.scenario, run.algo, run.config_hash, run.seed)
        other = best.get(key)
        if other is None:
            best[key] = run
            continue
        longer, shorter = (run, other) if run.total("episodes") > other.total("episodes") else (other, run)
        best[key] = longer
        remarks.append(f"{shorter.directory}: left out: same experiment and seed as {longer.directory}")
    return list(best.values()), remarks
