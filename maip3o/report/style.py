"""How figures look: one column wide, eight-point type, colours that colour-blind readers can tell apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN_WIDTH = 3.35  # inches
PANEL_HEIGHT = 1.9
# Okabe and Ito (2008), without their black and yellow: one is for limits, the other is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
OUTCOME_COLOURS = {
    "arrived": "#009E73",
    "time_out": "#BBBBBB",
    "crash_vehicle": "#D55E00",
    "crash_object": "#CC79A7",
    "crash_sidewalk": "#E69F00",
    "off_road": "#0072B2",
    "ended": "#56B4E9",
    "fell": "#D55E00",
    "cut": "#EEEEEE",
}
TIMES = {"sampling and evaluation": "#56B4E9", "update": "#0072B2"}
SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "text.parse_math": False,  # names are the user's: a dollar sign is a dollar sign
    "svg.hashsalt": "maip3o",  # the same numbers give the same file
    "savefig.dpi": 300,
    "figure.constrained_layout.use": True,
}


def line_style(index: int) -> dict[str, Any]:
    """Colour first, then dashes, so that the seventh curve is still another one."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index // len(COLOURS) % len(DASHES)]}


def title_of(scenario: str) -> str:
    return scenario.replace("_", " ").capitalize()


def new_figure(panels: int, height: float = PANEL_HEIGHT) -> tuple[Figure, list[Axes]]:
    """Panels one below the other, so that the type keeps its size at column width."""
    figure = Figure(figsize=(COLUMN_WIDTH, height * panels + 0.1))
    axes = figure.subplots(panels, 1, squeeze=False)
    return figure, list(axes[:, 0])


def add_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend for all panels, below them; the figure grows by what it takes."""
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    longest = max((len(label) for label in handles), default=0)
    columns = 3 if longest < 12 else 2 if longest < 24 else 1
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.16 * math.ceil(len(handles) / columns))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def save(figure: Figure, stem: Path) -> list[Path]:
    """PNG at 300 dpi and SVG, without a date: equal numbers give equal files."""
    paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(paths[0])
        figure.set_layout_engine("none")  # laid out by now: the second file need not do it again
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
