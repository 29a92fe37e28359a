"""Keep runs for good in little space: python -m maip3o.record <run directory>... out=results/<name> [every=10]

Writes results/<name>.json.gz, or adds to it: of each run its configuration, versions, state and evaluation, and those
metrics that figures and tables show, `every` iterations averaged into one. A run that is there already is replaced.
`python -m maip3o.plot` and `python -m maip3o.report` read such a file like run directories.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from maip3o.config.arguments import paths_and_options
from maip3o.config.options import integer
from maip3o.errors import UserError, exit_on_user_error
from maip3o.report.reading import require_runs
from maip3o.report.records import SUFFIX, read_records, write_records
from maip3o.report.runs import Run
from maip3o.runners.directory import require_writable
from maip3o.runners.log import COUNTERS

SHOWN = re.compile(r"rollout/|evaluation/|speed/|constraint/[^/]+/(mean|uncensored|limit)$")


def main(arguments: Sequence[str]) -> None:
    paths, options = paths_and_options(arguments, {"out": "", "every": "10"}, __doc__ or "")
    if not paths or not options["out"]:
        raise UserError("write: python -m maip3o.record <run directory>... out=results/<name>")
    out = Path(options["out"].removesuffix(SUFFIX) + SUFFIX)
    require_writable(out.parent, "out")
    every = integer(1, 1_000_000)("every", options["every"])
    found, remarks = require_runs(paths)
    for remark in remarks:
        print(remark, file=sys.stderr)
    kept = _kept(out)
    for run in (compact(run, every) for run in found):
        name = next((name for name, other in kept.items() if _identity(other) == _identity(run)), None)
        name = name or f"{run.scenario}/{run.algo}/{run.config_hash}/seed{run.seed}"
        kept[name] = run
        print(f"{out}/{name}")
    write_records(out, kept)


def _kept(out: Path) -> dict[str, Run]:
    try:
        return {str(run.directory.relative_to(out)): run for run in read_records(out)} if out.exists() else {}
    except ValueError as reason:
        raise UserError(f"out={out}: {reason}") from None


def _identity(run: Run) -> tuple[str, str, str, int]:
    return run.scenario, run.algo, run.config_hash, run.seed


def compact(run: Run, every: int) -> Run:
    """The run as a record holds it: short, and without paths of the machine."""
    facts = {name: getattr(run, name) for name in ("settings", "versions", "status", "evaluation")}
    records = [
        {key: _short(value) for key, value in line.items() if key in ("kind", *COUNTERS) or SHOWN.match(key)}
        for line in thinned(run.records, every)
    ]
    return replace(run, records=records, **json.loads(without_paths(json.dumps(facts))))


def thinned(records: Sequence[dict[str, Any]], every: int) -> list[dict[str, Any]]:
    """`every` iterations become one: the counters of the last, the mean of everything else. Evaluations stay."""
    kept: list[dict[str, Any]] = []
    block: list[dict[str, Any]] = []
    for line in records:
        if line["kind"] == "iteration":
            block.append(line)
        if block and (len(block) == every or line["kind"] == "evaluation" or line is records[-1]):
            kept.append({key: block[-1][key] if key in ("kind", *COUNTERS) else _mean(block, key) for key in block[-1]})
            block = []
        if line["kind"] == "evaluation":
            kept.append(line)
    return kept


def _mean(block: Sequence[dict[str, Any]], key: str) -> float | None:
    values = [line[key] for line in block if line.get(key) is not None]  # null: it was not finite
    return math.fsum(values) / len(values) if values else None


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def without_paths(text: str) -> str:
    """Absolute paths become their last part."""
    return re.sub(r"(?<![\w.])/(?:[\w.+=,-]+/)+([\w.+=,-]+)", r"\1", text)


if __name__ == "__main__":
    exit_on_user_error(lambda: main(sys.argv[1:]))
