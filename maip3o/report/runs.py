"""A training run as its directory tells it: what it was and what it measured."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maip3o.config.identity import makes_another_experiment

AXES = {"episodes": "training episodes", "env_steps": "environment steps", "seconds": "wall time (h)"}
"""What a curve may be drawn against, with the label of the axis."""

SMOOTHING = 100
"""Training episodes of a running mean, as RLlib smooths what CoPO's authors publish the best of."""

BEFORE_THE_OPTION = {"algo.kl_test": "minibatch", "scenario.observation": "linear"}
"""Options that are newer than some runs, with what those did. (One whose default is null needs no entry.)"""


@dataclass(frozen=True)
class Run:
    """One training run as its directory tells it."""

    directory: Path
    scenario: str
    algo: str
    seed: int
    settings: dict[str, Any]  # the whole config, flat: "algo.penalty.alpha" -> 0.1
    records: list[dict[str, Any]]  # metrics.jsonl, in order of episodes, both kinds
    versions: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    evaluation: dict[str, Any] | None = None  # evaluation.json, if the run was evaluated afterwards

    def series(self, quantity: str, axis: str = "episodes") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """x [P] and y [P] of one quantity where it was measured, x strictly increasing. Hours for `seconds`."""
        known = [(r[axis], r[quantity]) for r in self.records if is_number(r.get(axis)) and is_number(r.get(quantity))]
        x, y = (np.array([pair[i] for pair in known], dtype=np.float64) for i in (0, 1))
        if axis == "seconds":
            x = x / 3600.0
        keep = np.concatenate([[True], np.diff(np.maximum.accumulate(x)) > 0]) if len(x) else np.zeros(0, dtype=bool)
        return x[keep], y[keep]

    def last(self, quantity: str) -> float:
        """The last measured value, or NaN. Never the best of training."""
        _, y = self.series(quantity)
        return float(y[-1]) if len(y) else math.nan

    def best(self, quantity: str, episodes: int = SMOOTHING) -> float:
        """The highest mean over `episodes` training episodes in a row, or NaN. Often published; it flatters.

        Lines that stand for many episodes make the window longer, by less than one line.
        """
        ends, values = self.series(quantity)
        ends = np.concatenate([[0.0], ends])
        sums = np.concatenate([[0.0], np.cumsum(values * np.diff(ends))])
        start = np.searchsorted(ends, ends - episodes, side="right") - 1  # of the window that ends here; -1: too early
        means = [(sums[i] - sums[j]) / (ends[i] - ends[j]) for i, j in enumerate(start) if j >= 0]
        return float(max(means, default=math.nan))

    def total(self, counter: str) -> float:
        """The highest value of a counter such as `episodes` or `seconds`."""
        values = [float(r[counter]) for r in self.records if is_number(r.get(counter))]
        return max(values, default=math.nan)

    def evaluated_figures(self) -> dict[str, float]:
        """Means of evaluation.json over episodes driven to their end; {} if it is not about the run as it ended."""
        content = self.evaluation or {}
        try:
            same_world = content["scenario"] == self.settings["scenario.name"]
            same_cars = content["num_agents"] == self.settings["scenario.num_agents"]
            same_time = content["horizon"] == self.settings["scenario.horizon"]
            at_the_end = content["trained"]["episodes"] == self.total("episodes")
            figures = content["protocols"]["full"]["figures"]
            means = {name: float(figure["mean"]) for name, figure in figures.items() if is_number(figure["mean"])}
        except (KeyError, TypeError, AttributeError):
            return {}
        return means if same_world and same_cars and same_time and at_the_end else {}

    @property
    def constraints(self) -> list[str]:
        names = {key.split("/")[1] for record in self.records for key in record if key.startswith("constraint/")}
        return sorted(names)

    @property
    def compared_settings(self) -> dict[str, Any]:
        return compared(self.settings)

    @property
    def config_hash(self) -> str:
        return config_hash(self.settings)

    @property
    def commit(self) -> str:
        """Short name of the commit; a plus sign says that the code had changes on top of it."""
        commit = self.versions.get("commit")
        return f"{commit[:8]}{'+' if self.versions.get('uncommitted_changes') else ''}" if commit else "unknown"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def compared(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the experiment. Null is left out: runs older than an option are those that do not use it.

    Seeds that each go on from the run of the same seed (`init: .../seed${seed}`) are one experiment.
    """
    known = {**BEFORE_THE_OPTION, **settings}
    kept = {k: v for k, v in known.items() if v is not None and k != "seed" and makes_another_experiment(k)}
    if "init" in kept:
        start = Path(str(kept["init"]).removesuffix("/checkpoints/last.pt"))
        kept["init"] = str(start.parent if start.name == f"seed{settings.get('seed')}" else start)
    return kept


def config_hash(settings: Mapping[str, Any]) -> str:
    """Eight hex digits that are equal exactly for runs of the same experiment, whatever their seed and machine."""
    text = json.dumps(compared(settings), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
