"""Record files: many runs in one `<name>.json.gz`, one JSON object per line, read as run directories are.

Metrics are stored by column, which compresses well: {"iteration": {"episodes": [...], ...}, "evaluation": {...}}.
A path that goes on behind the file's name selects runs: results/comparison.json.gz/intersection/maip3o.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maip3o.files import write_whole
from maip3o.report.runs import Run

SUFFIX = ".json.gz"
FIELDS = ("scenario", "algo", "seed", "settings", "versions", "status", "evaluation")


def record_file(path: Path) -> Path | None:
    """The record file that `path` is or leads into."""
    for part in (path, *path.parents):
        if part.name.endswith(SUFFIX) and part.is_file():
            return part
    return None


def read_records(path: Path) -> list[Run]:
    """The runs of a record file, or those under a name in it. Raises ValueError where it is no such file."""
    file = record_file(path)
    if file is None:
        raise ValueError("no such record")
    try:
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            runs = [_run(file, json.loads(line)) for line in stream]
    except (OSError, EOFError, KeyError, TypeError, AttributeError, ValueError):
        raise ValueError("not a record of runs, or a damaged one") from None
    return [run for run in runs if run.directory.is_relative_to(path)]


def write_records(file: Path, runs: Mapping[str, Run]) -> None:
    """All of `runs` by their names; equal runs give equal bytes."""
    lines = [json.dumps(_line(name, run), separators=(",", ":")) + "\n" for name, run in sorted(runs.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, gzip.compress("".join(lines).encode(), mtime=0))


def _run(file: Path, line: dict[str, Any]) -> Run:
    records = [
        {key: value for key, value in zip(columns, values, strict=True) if value is not None} | {"kind": kind}
        for kind, columns in line["metrics"].items()
        for values in zip(*columns.values(), strict=True)
    ]
    records.sort(key=lambda record: (record["episodes"], record["kind"] == "evaluation"))
    return Run(directory=file / line["name"], records=records, **{field: line[field] for field in FIELDS})


def _line(name: str, run: Run) -> dict[str, Any]:
    kinds = {kind: [r for r in run.records if r["kind"] == kind] for kind in ("iteration", "evaluation")}
    metrics = {kind: _columns(records) for kind, records in kinds.items() if records}
    return {"name": name, **{field: getattr(run, field) for field in FIELDS}, "metrics": metrics}


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    keys = dict.fromkeys(key for record in records for key in record if key != "kind")
    return {key: [record.get(key) for record in records] for key in keys}
