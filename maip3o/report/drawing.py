"""Drawing: each function turns the rows of maip3o.report.summaries into one figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from maip3o.report import style
from maip3o.report.runs import AXES
from maip3o.report.summaries import OUTCOMES, Row

QUANTITY_LABELS = {"return": "return per episode", "success": "share that arrive", "eliminated": "share eliminated"}


def _distinct(rows: Iterable[Row], key: str) -> list[str]:
    return list(dict.fromkeys(str(row[key]) for row in rows))


def _columns(rows: Sequence[Row], *keys: str) -> list[np.ndarray]:
    return [np.array([row[key] for row in rows], dtype=np.float64) for key in keys]


def curves(rows: Sequence[Row], axis: str, label: str) -> Figure:
    """Interquartile mean with its interval; thin and dotted from where not all seeds have come."""
    with matplotlib.rc_context(style.SETTINGS):
        figure, axes = style.new_figure(len(_distinct(rows, "scenario")))
        labels = _distinct(rows, "label")
        for panel, scenario in zip(axes, _distinct(rows, "scenario"), strict=True):
            for index, name in enumerate(labels):
                part = [row for row in rows if row["scenario"] == scenario and row["label"] == name]
                if part:
                    _draw_curve(panel, part, axis, name, index)
            panel.set_title(style.title_of(scenario))
            panel.set_ylabel(label)
            _format_counts(panel, axis)
        axes[-1].set_xlabel(AXES[axis])
        style.add_legend(figure, axes)
    return figure


def _draw_curve(panel: Axes, rows: Sequence[Row], axis: str, label: str, index: int) -> None:
    x, y, low, high, runs, everybody = _columns(rows, axis, "iqm", "low", "high", "runs", "all_runs")
    look = style.line_style(index)
    complete = runs == everybody
    marker = style.MARKERS[index % len(style.MARKERS)] if len(x) == 1 else None  # a line needs two points
    panel.plot(x[complete], y[complete], label=label, marker=marker, **look)
    begins = int(complete.sum()) - 1
    if not complete.all():
        panel.plot(x[max(begins, 0) :], y[max(begins, 0) :], linewidth=0.7, linestyle=":", color=look["color"])
    panel.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)


def _format_counts(panel: Axes, axis: str) -> None:
    panel.xaxis.set_major_locator(MaxNLocator(5))
    if axis == "env_steps":
        panel.ticklabel_format(axis="x", style="sci", scilimits=(4, 4), useMathText=False)


def costs(rows: Sequence[Row], axis: str, constraint: str) -> Figure:
    """The cost curves with the limit they were trained for: black if it is one, else in the curve's colour."""
    figure = curves(rows, axis, f"cost: {constraint}")
    with matplotlib.rc_context(style.SETTINGS):
        labels = _distinct(rows, "label")
        for panel, scenario in zip(figure.axes, _distinct(rows, "scenario"), strict=True):
            limits = {row["label"]: row["limit"] for row in rows if row["scenario"] == scenario}
            shared = len(set(limits.values())) == 1
            for name, limit in list(limits.items())[: 1 if shared else None]:
                if not math.isnan(limit):
                    colour = "black" if shared else style.line_style(labels.index(name))["color"]
                    panel.axhline(limit, color=colour, linewidth=0.9, linestyle=(0, (2, 1.5)))
                    if shared:
                        panel.annotate("limit", (1, limit), xycoords=("axes fraction", "data"), xytext=(-2, 2),
                                       textcoords="offset points", ha="right", fontsize=6.5)  # fmt: skip
            panel.set_ylim(bottom=0)
    return figure


def outcomes(rows: Sequence[Row]) -> Figure:
    """How lives ended, as one stacked bar per label."""
    scenarios = _distinct(rows, "scenario")
    outcomes = [o for o in OUTCOMES if any(r["outcome"] == o and r["share"] > 0 for r in rows)]
    most = max(len(_distinct((r for r in rows if r["scenario"] == s), "label")) for s in scenarios)
    with matplotlib.rc_context(style.SETTINGS):
        figure, axes = style.new_figure(len(scenarios), height=0.6 + 0.26 * most)
        for panel, scenario in zip(axes, scenarios, strict=True):
            part = [row for row in rows if row["scenario"] == scenario]
            labels = _distinct(part, "label")
            left = np.zeros(len(labels))
            for outcome in outcomes:
                share = np.array([_share(part, label, outcome) for label in labels])
                panel.barh(labels, share, left=left, height=0.7, label=OUTCOMES[outcome], edgecolor="white",
                           linewidth=0.5, color=style.OUTCOME_COLOURS[outcome])  # fmt: skip
                _write_shares(panel, left, share, dark=outcome not in ("time_out", "cut", "crash_sidewalk"))
                left += share
            panel.invert_yaxis()
            panel.grid(visible=False)
            panel.set_xlim(0, 1)
            panel.set_title(style.title_of(scenario))
        axes[-1].set_xlabel("share of lives")
        style.add_legend(figure, axes)
    return figure


def _share(rows: Sequence[Row], label: str, outcome: str) -> float:
    return next((row["share"] for row in rows if row["label"] == label and row["outcome"] == outcome), 0.0)


def _write_shares(panel: Axes, left: np.ndarray, share: np.ndarray, dark: bool) -> None:
    for position, (start, size) in enumerate(zip(left, share, strict=True)):
        if size >= 0.08:
            text = f"{100 * size:.0f}"
            colour = "white" if dark else "black"
            panel.text(start + size / 2, position, text, ha="center", va="center", fontsize=6.5, color=colour)


def profiles(rows: Sequence[Row], label: str) -> Figure:
    """Share of runs above a score: the curve that is higher everywhere is the better one."""
    with matplotlib.rc_context(style.SETTINGS):
        scenarios, labels = _distinct(rows, "scenario"), _distinct(rows, "label")
        figure, axes = style.new_figure(len(scenarios))
        for panel, scenario in zip(axes, scenarios, strict=True):
            for index, name in enumerate(labels):
                part = [row for row in rows if row["scenario"] == scenario and row["label"] == name]
                x, y, low, high = _columns(part, "threshold", "share", "low", "high")
                look = style.line_style(index)
                panel.step(x, y, where="post", label=name, **look)
                panel.fill_between(x, low, high, step="post", color=look["color"], alpha=0.18, linewidth=0)
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
        quantities, labels = _distinct(rows, "quantity"), _distinct(rows, "label")
        figure, axes = style.new_figure(len(quantities), height=1.45)
        values = np.unique(_columns(rows, "value")[0])
        for panel, quantity in zip(axes, quantities, strict=True):
            for index, name in enumerate(labels):
                part = [row for row in rows if row["quantity"] == quantity and row["label"] == name]
                x, y, low, high = _columns(sorted(part, key=lambda row: row["value"]), "value", "iqm", "low", "high")
                marker = style.MARKERS[index % len(style.MARKERS)]
                panel.plot(x, y, marker=marker, markersize=3.5, label=name, **style.line_style(index))
                panel.fill_between(x, low, high, color=style.line_style(index)["color"], alpha=0.18, linewidth=0)
            panel.set_ylabel(QUANTITY_LABELS[quantity])
            if values[0] > 0 and values[-1] / values[0] >= 8:
                panel.set_xscale("log")
                panel.minorticks_off()
            panel.set_xticks(values, [f"{value:g}" for value in values])
        axes[0].set_title(style.title_of(_distinct(rows, "scenario")[0]))
        axes[-1].set_xlabel(setting)
        style.add_legend(figure, axes)
    return figure
