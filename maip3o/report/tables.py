"""Tables of results, in Markdown and LaTeX: every row with its seeds, wall-clock, commit and config hash."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

import numpy as np

from maip3o.report.groups import Group
from maip3o.report.intervals import Estimate, estimate
from maip3o.report.runs import SMOOTHING
from maip3o.report.summaries import EVALUATED, LAST_EVALUATION, LAST_ITERATION, Row, final_scores, score_source

SCORES = {"return": "Return", "arrived": "Arrived", "eliminated": "Eliminated", "time_out": "Timed out"}
BEST = "best_in_training"  # of the share that arrived
HEADINGS = (
    "Scenario",
    "Algorithm",
    *SCORES.values(),
    "Best in training",
    "Episodes",
    "Seeds",
    "Hours per run",
    "Commit",
    "Config",
)


def result_rows(groups: Sequence[Group]) -> list[Row]:
    """One row per group: final scores (interquartile mean and interval) and where they come from."""
    source = score_source(groups)
    rows = []
    for group in groups:
        row: Row = {"scenario": group.scenario, "label": group.label}
        for score in SCORES:
            found = estimate([final_scores(group, source, score)])
            row |= _named(score, found)
        row |= _named(BEST, estimate([np.array([run.best("rollout/arrived") for run in group.runs])]))
        hours = [run.total("seconds") / 3600.0 for run in group.runs]
        row |= {
            "episodes": _spread([run.total("episodes") for run in group.runs]),
            "seeds": " ".join(str(seed) for seed in group.seeds),
            "hours": sum(hours) / len(hours),
            "commit": " ".join(dict.fromkeys(run.commit for run in group.runs)),
            "config": group.runs[0].config_hash,
        }
        rows.append(row)
    return rows


def _named(name: str, found: Estimate) -> Row:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _spread(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.0f}" if low == high else f"{low:.0f}-{high:.0f}"


def cells(row: Row) -> list[str]:
    cells = [str(row["scenario"]), str(row["label"])]
    for score in (*SCORES, BEST):
        found = Estimate(row[score], row[f"{score}_low"], row[f"{score}_high"])
        cells.append(_with_interval(found, 0 if score == "return" else 2))
    return [*cells, row["episodes"], row["seeds"], f"{row['hours']:.2f}", row["commit"], row["config"]]


def _with_interval(found: Estimate, digits: int) -> str:
    if math.isnan(found.value):
        return "-"
    if math.isnan(found.low):
        return f"{found.value:.{digits}f}"
    return f"{found.value:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def note(groups: Sequence[Group]) -> str:
    """What the figures of a table are, in one sentence."""
    where = {
        EVALUATED: "held-out evaluation of a run after training (evaluation.json)",
        LAST_EVALUATION: "last held-out evaluation of a run during training",
        LAST_ITERATION: "last training iteration of a run",
    }[score_source(groups)]
    best = f"Best in training: the highest share that arrived in {SMOOTHING} or a few more training episodes."
    return f"Interquartile mean over seeds of the {where}, with 95 % stratified bootstrap interval. {best}"


def markdown(groups: Sequence[Group]) -> str:
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    for row in result_rows(groups):
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |")
    return "\n".join([*lines, "", note(groups), ""])


LATEX_SIGNS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX_SIGNS |= {sign: "\\" + sign for sign in "&%$#_{}"}
LATEX_SIGNS |= {"<": r"\textless{}", ">": r"\textgreater{}"}


def latex(groups: Sequence[Group]) -> str:
    """A table for \\input, with booktabs."""
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{tabular}{ll" + "r" * (len(SCORES) + 1) + "rlrll}",
        "\\toprule",
        " & ".join(HEADINGS) + r" \\",
        "\\midrule",
        *(" & ".join(_escape(cell) for cell in cells(row)) + r" \\" for row in result_rows(groups)),
        "\\bottomrule",
        "\\end{tabular}",
        "% " + note(groups),
    ]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return "".join(LATEX_SIGNS.get(sign, sign) for sign in text)


def comma_separated(groups: Sequence[Group]) -> str:
    rows = result_rows(groups)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value != value else value for key, value in row.items()} for row in rows)
    return stream.getvalue()
