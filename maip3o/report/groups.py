"""Which runs are seeds of one experiment, and what an experiment is called beside the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maip3o.report.runs import Run

MOST_SETTINGS_IN_A_NAME = 2


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seed."""

    scenario: str
    algo: str
    label: str  # unique within a scenario, equal across scenarios for the same algorithm and settings
    differences: dict[str, Any]  # the settings that set it apart from other groups of its scenario and algorithm
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Group by scenario, algorithm and every other compared setting. Order: scenario, algorithm, settings."""
    varying = varying_settings(runs)
    short = short_names(varying)
    parts: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        parts.setdefault((run.scenario, run.algo, run.config_hash), []).append(run)
    groups = []
    for (scenario, algo, _), members in parts.items():
        settings = members[0].compared_settings
        differences = {key: settings.get(key) for key in varying}
        seeds = tuple(sorted(members, key=lambda run: run.seed))
        groups.append(Group(scenario, algo, _label(algo, differences, short, seeds[0]), differences, seeds))
    return sorted(groups, key=lambda g: (g.scenario, g.algo, [_sortable(v) for v in g.differences.values()]))


def varying_settings(runs: Sequence[Run]) -> list[str]:
    """Settings that take several values among runs of one scenario and one algorithm.

    What an algorithm or a scenario sets for all its runs belongs to its name.
    """
    values: dict[tuple[str, str, str], set[str]] = {}
    absent = "absent"
    keys = sorted({key for run in runs for key in run.compared_settings})
    for run in runs:
        settings = run.compared_settings
        for key in keys:
            values.setdefault((run.scenario, run.algo, key), set()).add(repr(settings.get(key, absent)))
    return [key for key in keys if any(k == key and len(found) > 1 for (_, _, k), found in values.items())]


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Each key by as few of its last parts as tell it from the others: algo.penalty.alpha -> alpha."""
    names = {}
    for key in keys:
        parts = key.split(".")
        for size in range(1, len(parts) + 1):
            name = ".".join(parts[-size:])
            if sum(other == name or other.endswith("." + name) for other in keys) == 1:
                break
        names[key] = name
    return names


def _label(algo: str, differences: Mapping[str, Any], short: Mapping[str, str], run: Run) -> str:
    name = algo.upper() if algo.isalnum() else algo
    if len(differences) > MOST_SETTINGS_IN_A_NAME:
        return f"{name} {run.config_hash}"
    return ", ".join([name, *(f"{short[key]}={value}" for key, value in differences.items())])


def _sortable(value: Any) -> tuple[int, float, str]:
    if isinstance(value, (int, float)):
        return (0, float(value), "")
    return (1, 0.0, str(value))
