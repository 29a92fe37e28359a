"""The figures that a set of runs allows: its rows and its drawing. Six at most, unless all are wanted."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from maip3o.report import drawing as draw
from maip3o.report import style
from maip3o.report import summaries as numbers
from maip3o.report.groups import Group
from maip3o.report.runs import AXES


@dataclass(frozen=True)
class Drawing:
    """A figure with the numbers that it shows. `caption` says what they are."""

    name: str
    caption: str
    rows: list[numbers.Row]
    figure: Figure


SEEDS = "Interquartile mean over seeds, 95 % stratified bootstrap interval."


def drawings(groups: Sequence[Group], everything: bool = False) -> Iterator[Drawing]:
    """Return, constraints, outcomes, speed, comparison and cost of training; what has no data is not drawn."""
    curves = list(_curves(groups, everything))
    evaluated = [drawing for drawing in curves if not drawing.name.startswith("training_return")]
    yield from curves if everything else (evaluated or curves)
    yield from _constraints(groups)
    yield from _outcomes(groups)
    yield from _comparisons(groups, everything)
    rows = numbers.time_rows(groups)
    if rows:
        caption = "Wall time of a run, mean over seeds."
        yield Drawing("training_time", caption, rows, draw.stacked(rows, "part", "hours", style.TIMES, "hours", None))
    if everything:
        yield from _ablations(groups)


def _curves(groups: Sequence[Group], everything: bool) -> Iterator[Drawing]:
    for quantity in numbers.CURVES:
        for axis in AXES if everything else ("episodes",):
            rows = numbers.curve_rows(groups, quantity.key, axis, quantity.pool)
            if (quantity.usual or everything) and len({row[axis] for row in rows}) > 1:  # one point is no curve
                caption = f"{quantity.label.capitalize()} against {AXES[axis]}. {SEEDS}"
                yield Drawing(f"{quantity.name}_by_{axis}", caption, rows, draw.curves(rows, axis, quantity.label))


def _constraints(groups: Sequence[Group]) -> Iterator[Drawing]:
    """One figure, a panel for each scenario and constraint."""
    names = sorted({name for group in groups for run in group.runs for name in run.constraints})
    rows = [row | {"constraint": name} for name in names for row in numbers.cost_rows(groups, name, "episodes")]
    if len({row["episodes"] for row in rows}) > 1:
        shown = [row | {"scenario": f"{row['scenario']}: {row['constraint']}"} for row in rows]
        caption = f"Cost of each constraint in training, as if nobody were cut short, and its limit. {SEEDS}"
        yield Drawing("constraints", caption, rows, draw.curves(shown, "episodes", "cost"))


def _outcomes(groups: Sequence[Group]) -> Iterator[Drawing]:
    rows = numbers.outcome_rows(groups)
    if rows:
        named = [row | {"outcome": numbers.OUTCOMES[row["outcome"]]} for row in rows]
        colours = {numbers.OUTCOMES[name]: colour for name, colour in style.OUTCOME_COLOURS.items()}
        caption = "How lives ended at the end of training, mean over seeds."
        figure = draw.stacked(named, "outcome", "share", colours, "share of lives", 1.0)
        yield Drawing("outcomes", caption, rows, figure)


def _comparisons(groups: Sequence[Group], everything: bool) -> Iterator[Drawing]:
    several_labels = len({group.label for group in groups}) > 1
    several_seeds = any(len(group.runs) > 1 for group in groups)
    for quantity, pool in (("return", False), *([("arrived", True)] if everything else [])):
        label = draw.QUANTITY_LABELS[quantity]
        rows = numbers.improvement_rows(groups, quantity)
        if rows and several_labels and several_seeds:
            caption = f"Probability that a run of X ends above a run of Y ({label}), 95 % interval."
            yield Drawing(f"improvement_{quantity}", caption, rows, draw.improvement(rows, label))
        rows = numbers.profile_rows(groups, quantity, pool) if everything and several_seeds else []
        if rows:
            caption = f"Performance profile: share of runs that end above a given value ({label})."
            yield Drawing(f"profile_{quantity}", caption, rows, draw.profiles(rows, label))


def _ablations(groups: Sequence[Group]) -> Iterator[Drawing]:
    for key, short in numbers.ablated_settings(groups).items():
        rows = numbers.ablation_rows(groups, key)
        for scenario in dict.fromkeys(row["scenario"] for row in rows):
            part = [row for row in rows if row["scenario"] == scenario and not math.isnan(row["iqm"])]
            if len({row["value"] for row in part}) > 1:
                name = f"ablation_{short.replace('.', '_')}_{scenario}"
                caption = f"Final scores against {key} ({scenario}). {SEEDS}"
                yield Drawing(name, caption, part, draw.ablation(part, short))


def save_drawing(drawing: Drawing, folder: Path) -> list[Path]:
    """PNG, SVG and CSV of one drawing."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / "".join(c if c.isalnum() or c in "_-" else "_" for c in drawing.name)
    paths = style.save(drawing.figure, stem)
    paths.append(stem.with_name(stem.name + ".csv"))
    with paths[-1].open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(drawing.rows[0]))
        writer.writeheader()
        writer.writerows({k: "" if v != v else v for k, v in row.items()} for row in drawing.rows)  # NaN: no value
    return paths
