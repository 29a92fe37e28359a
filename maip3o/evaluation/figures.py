"""Figures of an evaluation: the reliability diagram of the cost critic, and transfer to other numbers of cars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from maip3o.evaluation.calibration import Calibration

BLUE, RED, GREEN, GREY = "#2f6fd0", "#d64545", "#2e9e63", "#8a93a0"


def draw_reliability(path: Path, name: str, constraint: str, calibration: Calibration) -> None:
    """Observed against predicted discounted cost; the diagonal is a critic that knows."""
    figure = Figure(figsize=(5.6, 5.2), dpi=130, layout="constrained")
    axes = figure.subplots()
    predicted = np.array([part.predicted for part in calibration.bins])
    observed = np.array([part.observed.mean for part in calibration.bins])
    spread = np.array([[p.observed.mean - p.observed.low, p.observed.high - p.observed.mean] for p in calibration.bins])
    edge = 1.05 * max(0.05, predicted.max(), max(part.observed.high for part in calibration.bins))
    axes.plot([0, edge], [0, edge], color=GREY, linestyle="--", linewidth=1, label="perfectly calibrated")
    axes.errorbar(
        predicted,
        observed,
        yerr=np.maximum(spread.T, 0.0),
        color=BLUE,
        marker="o",
        capsize=3,
        label="observed, 95 % interval",
    )
    axes.set(xlim=(min(0.0, 1.1 * predicted.min()), edge), ylim=(0.0, edge), aspect="auto")
    axes.set_xlabel(f"predicted {constraint} cost to go (discounted)")
    axes.set_ylabel(f"observed {constraint} cost to go (discounted)")
    axes.set_title(
        f"{name}\ncalibration error {calibration.error:.3f}, {calibration.steps} steps in ten equal bins", fontsize=10
    )
    axes.legend(frameon=False)
    _clean(axes)
    figure.savefig(path)


def draw_transfer(path: Path, name: str, counts: Sequence[int], trained: int, cards: Sequence[dict[str, Any]]) -> None:
    """Shares and return per car against the number of cars, whole episodes."""
    figure = Figure(figsize=(9.2, 3.8), dpi=130, layout="constrained")
    shares, returns = figure.subplots(1, 2)
    for key, label, colour in (("arrived", "arrived", GREEN), ("eliminated", "eliminated", RED)):
        _line(shares, counts, [card["figures"][key] for card in cards], 100.0, colour, label)
    per_car = [
        {k: v / count for k, v in card["figures"]["return"].items()} for count, card in zip(counts, cards, strict=True)
    ]
    _line(returns, counts, per_car, 1.0, BLUE, "return per car")
    shares.set(ylabel="% of cars", ylim=(-3, 103))
    returns.set(ylabel="return per car")
    for axes in (shares, returns):
        axes.axvline(trained, color=GREY, linestyle=":", linewidth=1.2, label="trained with")
        axes.set(xlabel="cars on the road", xticks=list(counts))
        axes.legend(frameon=False, fontsize=8)
        _clean(axes)
    figure.suptitle(f"{name}: other numbers of cars", fontsize=11)
    figure.savefig(path)


def _line(
    axes: Any, counts: Sequence[int], rows: Sequence[dict[str, float]], factor: float, colour: str, label: str
) -> None:
    mean, low, high = (factor * np.array([row[key] for row in rows]) for key in ("mean", "low", "high"))
    axes.plot(counts, mean, color=colour, marker="o", label=label)
    axes.fill_between(counts, low, high, color=colour, alpha=0.18, linewidth=0)


def _clean(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
