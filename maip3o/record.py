"""Keep a run for good in little space: python -m maip3o.record <run directory>... out=results/<name> [every=10]

Copies configuration, versions, state and evaluation of each run, and its metrics with `every` iterations averaged into
one, to out/<scenario>/<algo>/seed<n>. No checkpoints, no TensorBoard events, no paths of the machine.
`python -m maip3o.plot` and `python -m maip3o.report` read records like runs.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from maip3o.config.arguments import paths_and_options
from maip3o.config.options import integer
from maip3o.errors import UserError, exit_on_user_error
from maip3o.report.reading import UnusableRun, read_run
from maip3o.report.runs import Run
from maip3o.runners.directory import require_writable
from maip3o.runners.log import COUNTERS

FILES = (".hydra/config.yaml", ".hydra/overrides.yaml", "versions.json", "status.json", "evaluation.json")


def main(arguments: Sequence[str]) -> None:
    if any(argument in ("-h", "--help") for argument in arguments):
        print((__doc__ or "").strip())
        return
    paths, options = paths_and_options(arguments, {"out": "", "every": "10"})
    if not paths or not options["out"]:
        raise UserError("write: python -m maip3o.record <run directory>... out=results/<name>")
    require_writable(Path(options["out"]), "out")
    every = integer(1, 1_000_000)("every", options["every"])
    runs: dict[Path, Run] = {}
    for path in paths:
        run = _read(path)
        target = Path(options["out"]) / run.scenario / run.algo / f"seed{run.seed}"
        if target in runs or (target.exists() and _experiment(_read(target)) != _experiment(run)):
            raise UserError(f"{path}: {target} holds a run with other settings; choose another out")
        runs[target] = run
    for target, run in runs.items():
        record(run, target, every)
        print(target)


def _experiment(run: Run) -> str:
    """Its settings as a record holds them, but for its length: a run may be prolonged."""
    settings = {**run.compared_settings, "init": run.settings.get("init")}
    return without_paths(str(sorted((k, v) for k, v in settings.items() if k != "total_episodes")))


def _read(path: Path) -> Run:
    try:
        return read_run(path)[0]
    except UnusableRun as reason:
        raise UserError(f"{path}: {reason}") from None


def record(run: Run, target: Path, every: int) -> None:
    (target / ".hydra").mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (run.directory / name).is_file():
            text = without_paths((run.directory / name).read_text(encoding="utf-8"))
            (target / name).write_text(text, encoding="utf-8")
    # Of Hydra's own file, which is full of paths, only what names the run.
    choices = {"hydra": {"runtime": {"choices": {"scenario": run.scenario, "algo": run.algo}}}}
    (target / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump(choices), encoding="utf-8")
    lines = [json.dumps({key: _short(value) for key, value in line.items()}) for line in thinned(run.records, every)]
    (target / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


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
