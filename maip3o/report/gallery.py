"""Every figure that a set of runs allows: its rows and its drawing."""

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


def drawings(groups: Sequence[Group]) -> Iterator[Drawing]:
    """Learning curves, costs, outcomes, profiles, improvement, ablations; what has no data is not drawn."""
    yield from _curves(groups)
    yield from _costs(groups)
    rows = numbers.outcome_rows(groups)
    if rows:
        caption = "How lives ended at the end of training, mean over seeds."
        yield Drawing("outcomes", caption, rows, draw.outcomes(rows))
    yield from _comparisons(groups)
    yield from _ablations(groups)


def _curves(groups: Sequence[Group]) -> Iterator[Drawing]:
    for quantity in numbers.CURVES:
        for axis in AXES:
            rows = numbers.curve_rows(groups, quantity.key, axis, quantity.pool)
            if rows:
                caption = f"{quantity.label.capitalize()} against {AXES[axis]}. {SEEDS}"
                figure = draw.curves(rows, axis, quantity.label)
                yield Drawing(f"{quantity.name}_by_{axis}", caption, rows, figure)


def _costs(groups: Sequence[Group]) -> Iterator[Drawing]:
    for constraint in sorted({name for group in groups for run in group.runs for name in run.constraints}):
        rows = numbers.cost_rows(groups, constraint, "episodes")
        if rows:
            caption = f"Cost of the constraint {constraint} in training, and its limit. {SEEDS}"
            yield Drawing(f"cost_{constraint}", caption, rows, draw.costs(rows, "episodes", constraint))


def _comparisons(groups: Sequence[Group]) -> Iterator[Drawing]:
    several_labels = len({group.label for group in groups}) > 1
    several_seeds = any(len(group.runs) > 1 for group in groups)
    for quantity, pool in (("return", False), ("success", True)):
        label = draw.QUANTITY_LABELS[quantity]
        rows = numbers.profile_rows(groups, quantity, pool)
        if rows and several_seeds:
            caption = f"Performance profile: share of runs that end above a given value ({label})."
            yield Drawing(f"profile_{quantity}", caption, rows, draw.profiles(rows, label))
        rows = numbers.improvement_rows(groups, quantity)
        if rows and several_labels and several_seeds:
            caption = f"Probability that a run of X ends above a run of Y ({label}), 95 % interval."
            yield Drawing(f"improvement_{quantity}", caption, rows, draw.improvement(rows, label))


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
