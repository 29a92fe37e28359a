"""Drawing: each function turns the rows of maip3o.report.summaries into one figure. Shares are from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from maip3o.report import style
from maip3o.report.runs import AXES
from maip3o.report.summaries import Row

QUANTITY_LABELS = {"return": "return per episode", "arrived": "share that arrive", "eliminated": "share eliminated"}
LIMIT_LINE: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (2, 1.5))}


def distinct(rows: Iterable[Row], key: str) -> list[str]:
    return list(dict.fromkeys(str(row[key]) for row in rows))


def _columns(rows: Sequence[Row], *keys: str) -> list[np.ndarray]:
    return [np.array([row[key] for row in rows], dtype=np.float64) for key in keys]


def _lines(panel: Axes, rows: Sequence[Row], labels: Sequence[str], x: str, y: str, **extra: Any) -> None:
    """A line with its band for each label; thin and dotted from where not all seeds have come."""
    for index, name in enumerate(labels):
        part = [row for row in rows if row["label"] == name]
        if not part:
            continue
        at, value, low, high = _columns(part, x, y, "low", "high")
        look = style.line_style(index)
        whole = np.array([row["runs"] == row["all_runs"] for row in part]) if "all_runs" in part[0] else at == at
        panel.plot(at[whole], value[whole], label=name, **look, **extra)
        if not whole.all():
            begins = max(int(whole.sum()) - 1, 0)
            panel.plot(at[begins:], value[begins:], linewidth=0.7, linestyle=":", color=look["color"])
        step: Literal["post"] | None = "post" if "drawstyle" in extra else None
        panel.fill_between(at, low, high, step=step, color=look["color"], alpha=0.18, linewidth=0)


def curves(rows: Sequence[Row], axis: str, label: str) -> Figure:
    """Interquartile mean with its interval, a panel per scenario; with the limit where rows have one."""
    with matplotlib.rc_context(style.SETTINGS):
        names, labels = distinct(rows, "scenario"), distinct(rows, "label")
        figure, axes = style.new_figure(len(names))
        for panel, scenario in zip(axes, names, strict=True):
            part = [row for row in rows if row["scenario"] == scenario]
            _lines(panel, part, labels, axis, "iqm")
            panel.set_title(style.title_of(scenario))
            panel.set_ylabel(label)
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=axis != "seconds"))
            if "limit" in part[0]:
                _limits(panel, {row["label"]: row["limit"] for row in part}, labels)
            if axis == "env_steps":
                panel.xaxis.set_major_formatter(EngFormatter(sep=""))  # 150k
        axes[-1].set_xlabel(AXES[axis])
        style.add_legend(figure, axes)
    return figure


def _limits(panel: Axes, limits: Mapping[str, float], labels: Sequence[str]) -> None:
    """Black and named if it is one limit for all, else in the colour of its curve."""
    shared = len(set(limits.values())) == 1
    for name, limit in list(limits.items())[: 1 if shared else None]:
        if not math.isnan(limit):
            panel.axhline(
                limit, color="black" if shared else style.line_style(labels.index(name))["color"], **LIMIT_LINE
            )
            if shared:
                panel.annotate("limit", (0, limit), xycoords=("axes fraction", "data"), xytext=(2, -2),
                               textcoords="offset points", va="top", fontsize=6.5)  # fmt: skip
    panel.set_ylim(bottom=0)


def stacked(
    rows: Sequence[Row], key: str, value: str, colours: Mapping[str, str], label: str, edge: float | None
) -> Figure:
    """One bar per label, made of the parts that `key` names; numbers in them where there is room."""
    names = distinct(rows, "scenario")
    parts = [part for part in colours if any(row[key] == part and row[value] > 0 for row in rows)]
    most = max(len(distinct((r for r in rows if r["scenario"] == s), "label")) for s in names)
    with matplotlib.rc_context(style.SETTINGS):
        figure, axes = style.new_figure(len(names), height=0.6 + 0.26 * most)
        for panel, scenario in zip(axes, names, strict=True):
            found = {(r["label"], r[key]): r[value] for r in rows if r["scenario"] == scenario}
            labels = list(dict.fromkeys(label for label, _ in found))
            left = np.zeros(len(labels))
            for part in parts:
                size = np.array([found.get((name, part), 0.0) for name in labels])
                panel.barh(labels, size, left=left, height=0.7, label=part, color=colours[part], edgecolor="white",
                           linewidth=0.5)  # fmt: skip
                _write_sizes(panel, left, size, colours[part], edge)
                left += size
            panel.invert_yaxis()
            panel.grid(visible=False)
            panel.set_xlim(0, edge)
            panel.xaxis.set_major_locator(MaxNLocator(5))
            panel.set_title(style.title_of(scenario))
        axes[-1].set_xlabel(label)
        style.add_legend(figure, axes)
    return figure


def _write_sizes(panel: Axes, left: np.ndarray, sizes: np.ndarray, colour: str, edge: float | None) -> None:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    ink = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 150 else "white"
    for place, (start, size) in enumerate(zip(left, sizes, strict=True)):
        if edge and size >= 0.09 * edge:
            text = f"{size:.2f}".replace("0.", ".", 1) if size < 1 else f"{size:.0f}"
            panel.text(start + size / 2, place, text, ha="center", va="center", fontsize=6.5, color=ink)


def profiles(rows: Sequence[Row], label: str) -> Figure:
    """Share of runs above a score: the curve that is higher everywhere is the better one."""
    with matplotlib.rc_context(style.SETTINGS):
        names, labels = distinct(rows, "scenario"), distinct(rows, "label")
        figure, axes = style.new_figure(len(names))
        for panel, scenario in zip(axes, names, strict=True):
            part = [row for row in rows if row["scenario"] == scenario]
            _lines(panel, part, labels, "threshold", "share", drawstyle="steps-post")
            panel.set_title(style.title_of(scenario))
            panel.set_ylabel("share of runs above")
            panel.xaxis.set_major_locator(MaxNLocator(5))
            panel.set_ylim(-0.03, 1.03)
        axes[-1].set_xlabel(f"final {label}")
        style.add_legend(figure, axes)
    return figure


def improvement(rows: Sequence[Row], label: str) -> Figure:
    """Probability that X ends above Y, with its interval; one half means no difference."""
    with matplotlib.rc_context(style.SETTINGS):
        figure, (panel,) = style.new_figure(1, height=0.5 + 0.3 * len(rows))
        x, low, high = _columns(rows, "probability", "low", "high")
        y = np.arange(len(rows))
        panel.hlines(y, low, high, color=style.COLOURS[0], linewidth=4, alpha=0.35)
        panel.plot(x, y, "o", color=style.COLOURS[0], markersize=4)
        panel.axvline(0.5, color="black", linewidth=0.8, linestyle=(0, (2, 1.5)))
        panel.set_yticks(y, [f"{row['x']} > {row['y']}" for row in rows])
        panel.set_ylim(len(rows) - 0.5, -0.5)
        panel.set_xlim(-0.02, 1.02)
        panel.set_xlabel(f"P(X > Y), final {label}")
    return figure


def ablation(rows: Sequence[Row], setting: str) -> Figure:
    """Final scores against one setting, a panel per quantity. Rows of one scenario."""
    with matplotlib.rc_context(style.SETTINGS):
        quantities, labels = distinct(rows, "quantity"), distinct(rows, "label")
        figure, axes = style.new_figure(len(quantities), height=1.45)
        values = np.unique(_columns(rows, "value")[0])
        for panel, quantity in zip(axes, quantities, strict=True):
            part = sorted((row for row in rows if row["quantity"] == quantity), key=lambda row: float(row["value"]))
            _lines(panel, part, labels, "value", "iqm", marker="o", markersize=3.5)
            panel.set_ylabel(QUANTITY_LABELS[quantity])
            if values[0] > 0 and values[-1] / values[0] >= 8:
                panel.set_xscale("log")
                panel.minorticks_off()
            panel.set_xticks(values, [f"{value:g}" for value in values])
        axes[0].set_title(style.title_of(distinct(rows, "scenario")[0]))
        axes[-1].set_xlabel(setting)
        style.add_legend(figure, axes)
    return figure
