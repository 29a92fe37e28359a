"""The numbers behind the figures: plain rows, written beside each figure as CSV."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maip3o.report.groups import Group, short_names
from maip3o.report.intervals import Array, estimate, probability_of_improvement, share_above

Row = dict[str, Any]
MOST_POINTS = 80  # of a curve
CURVE_RESAMPLES = 2000
MOST_LABELS_IN_PAIRS = 4
ALL_SCENARIOS = "all scenarios"


@dataclass(frozen=True)
class Quantity:
    """Something that is measured in training or evaluation. `name` is its file name, `key` its metric."""

    name: str
    key: str
    label: str
    pool: bool = False  # of one unit in every scenario, so scenarios may be pooled
    usual: bool = False  # drawn without all=true


CURVES = (
    Quantity("return", "evaluation/full/return", "return per episode", usual=True),
    Quantity("return_to_first_failure", "evaluation/first/return", "return to first failure"),
    Quantity("arrived", "evaluation/full/arrived", "share of lives that arrive", pool=True),
    Quantity("eliminated", "evaluation/full/eliminated", "share of lives eliminated", pool=True),
    Quantity("speed", "evaluation/full/speed", "mean speed of a life", usual=True),
    Quantity("training_return", "rollout/return", "return per episode in training", usual=True),
)
OUTCOMES = {
    "arrived": "arrived",
    "time_out": "timed out",
    "ended": "ended",
    "fell": "fell",
    "crash_vehicle": "hit a car",
    "crash_object": "hit an object",
    "crash_sidewalk": "hit the kerb",
    "off_road": "left the road",
    "cut": "cut short",
}


EVALUATED = "evaluated"  # evaluation.json: many held-out episodes after training
LAST_EVALUATION = "evaluation/full"  # the last evaluation during training: few held-out episodes
LAST_ITERATION = "rollout"  # training episodes


def score_source(groups: Sequence[Group]) -> str:
    """Where the final scores of all runs come from: one source for all, the best that they share.

    Held-out episodes driven to their end, after training or during it; where nobody has any, training episodes.
    """
    runs = [run for group in groups for run in group.runs]
    if all(run.evaluated_figures() for run in runs):
        return EVALUATED
    measured = any(not math.isnan(run.last("evaluation/full/return")) for run in runs)
    return LAST_EVALUATION if measured else LAST_ITERATION


def final_scores(group: Group, source: str, quantity: str) -> Array:
    """[number of seeds]: the score of every run at its end. Never the best of training."""
    if source == EVALUATED:
        scores = [run.evaluated_figures().get(quantity, math.nan) for run in group.runs]
    else:
        scores = [run.last(f"{source}/{quantity}") for run in group.runs]
    return np.array(scores, dtype=np.float64)


def panels(groups: Sequence[Group], pool: bool = False) -> dict[tuple[str, str], list[Group]]:
    """(panel, label) -> the groups whose seeds are its strata: one scenario each, or all of them pooled."""
    found: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        found.setdefault((group.scenario, group.label), []).append(group)
    if pool and len({group.scenario for group in groups}) > 1:
        for group in groups:
            found.setdefault((ALL_SCENARIOS, group.label), []).append(group)
    return found


def curve_rows(groups: Sequence[Group], key: str, axis: str, pool: bool = False) -> list[Row]:
    """Interquartile mean over seeds along training; `runs` says how many of them reached that far."""
    rows = []
    for (panel, label), members in panels(groups, pool).items():
        strata = [[run.series(key, axis) for run in group.runs] for group in members]
        strata = [[pair for pair in stratum if len(pair[0])] for stratum in strata]
        if not any(strata):
            continue
        for x in _grid([xs for stratum in strata for xs, _ in stratum]):
            values = [np.array([np.interp(x, xs, ys, right=np.nan) for xs, ys in stratum]) for stratum in strata]
            found = estimate(values, resamples=CURVE_RESAMPLES)
            reached = sum(int(np.isfinite(stratum).sum()) for stratum in values)
            everybody = sum(len(group.runs) for group in members)
            if 2 * reached < everybody:
                continue  # the few that went on are not the group
            rows.append(
                {"scenario": panel, "label": label, axis: float(x), "iqm": found.value, "low": found.low}
                | {"high": found.high, "runs": reached, "all_runs": everybody}
            )
    return rows


def _grid(series: Sequence[Array]) -> Array:
    """Where to compare runs: from where all have begun to where the longest ends."""
    points = np.unique(np.concatenate(series))
    points = points[points >= max(x[0] for x in series)]
    if len(points) > MOST_POINTS:
        points = np.linspace(points[0], points[-1], MOST_POINTS)
    return points


def cost_rows(groups: Sequence[Group], constraint: str, axis: str) -> list[Row]:
    """Estimated cost and its limit. The uncensored estimate: the end rule hides differences in the plain mean."""
    limits = {(g.scenario, g.label): g.runs[0].last(f"constraint/{constraint}/limit") for g in groups}
    rows = curve_rows(groups, f"constraint/{constraint}/uncensored", axis)
    rows = rows or curve_rows(groups, f"constraint/{constraint}/mean", axis)
    return [row | {"limit": limits[row["scenario"], row["label"]]} for row in rows]


def outcome_rows(groups: Sequence[Group]) -> list[Row]:
    """Mean over seeds of the share of lives that ended in each way, at the end of training."""
    source = score_source(groups)
    rows = []
    for group in groups:
        for outcome in OUTCOMES:
            shares = final_scores(group, source, outcome)
            known = shares[np.isfinite(shares)]
            if len(known):
                rows.append(
                    {"scenario": group.scenario, "label": group.label, "outcome": outcome}
                    | {"share": float(known.mean()), "runs": len(known)}
                )
    return rows


def time_rows(groups: Sequence[Group]) -> list[Row]:
    """Mean hours of a run over seeds: the updates, and all the rest, which is mostly simulation."""
    rows = []
    for group in groups:
        hours = float(np.mean([run.total("seconds") for run in group.runs])) / 3600.0
        update, sample = (
            sum(float(run.series(f"speed/{part}_seconds")[1].sum()) for run in group.runs)
            for part in ("update", "sample")
        )
        share = update / (update + sample) if update + sample else 0.0
        for part, size in (("sampling and evaluation", hours * (1.0 - share)), ("update", hours * share)):
            rows.append({"scenario": group.scenario, "label": group.label, "part": part, "hours": size})
    return rows


def profile_rows(groups: Sequence[Group], quantity: str, pool: bool = False) -> list[Row]:
    """Share of runs whose final score exceeds a threshold."""
    source = score_source(groups)
    strata = {
        where: [final_scores(g, source, quantity) for g in members] for where, members in panels(groups, pool).items()
    }
    rows = []
    for panel in dict.fromkeys(panel for panel, _ in strata):
        scores = np.concatenate([s for (p, _), parts in strata.items() if p == panel for s in parts])
        scores = scores[np.isfinite(scores)]
        if not len(scores):
            continue
        margin = 0.02 * (scores.max() - scores.min()) or 0.02
        for label in [label for p, label in strata if p == panel]:
            for threshold in np.linspace(scores.min() - margin, scores.max() + margin, MOST_POINTS):
                found = estimate(strata[panel, label], share_above(threshold), resamples=CURVE_RESAMPLES)
                rows.append(
                    {"scenario": panel, "label": label, "threshold": float(threshold)}
                    | {"share": found.value, "low": found.low, "high": found.high}
                )
    return rows


def improvement_rows(groups: Sequence[Group], quantity: str) -> list[Row]:
    """Probability that a run of X ends above a run of Y, averaged over the scenarios that both were run on."""
    source = score_source(groups)
    scores = {(g.label, g.scenario): final_scores(g, source, quantity) for g in groups}
    labels = list(dict.fromkeys(g.label for g in groups))
    pairs = list(itertools.combinations(labels, 2))
    if len(labels) > MOST_LABELS_IN_PAIRS:
        pairs = [(labels[0], other) for other in labels[1:]]
    rows = []
    for x, y in pairs:
        shared = [s for (label, s) in scores if label == x and (y, s) in scores]
        found = probability_of_improvement([scores[x, s] for s in shared], [scores[y, s] for s in shared])
        if not math.isnan(found.value):
            rows.append({"x": x, "y": y, "scenarios": " ".join(shared), "probability": found.value})
            rows[-1] |= {"low": found.low, "high": found.high}
    return rows


def ablated_settings(groups: Sequence[Group]) -> dict[str, str]:
    """Numeric settings with several values among the groups: key -> short name."""
    keys = list(groups[0].differences)
    short = short_names(keys)
    numeric = {}
    for key in keys:
        values = {g.differences[key] for g in groups if _is_plain_number(g.differences[key])}
        if len(values) > 1:
            numeric[key] = short[key]
    return numeric


def ablation_rows(groups: Sequence[Group], key: str) -> list[Row]:
    """Final scores against the value of one setting, per scenario and whatever else differs."""
    source = score_source(groups)
    short = short_names(list(groups[0].differences))
    rows = []
    for group in groups:
        value = group.differences[key]
        if not _is_plain_number(value):
            continue
        others = [f"{short[k]}={v}" for k, v in group.differences.items() if k != key]
        label = ", ".join([group.algo.upper() if group.algo.isalnum() else group.algo, *others])
        for quantity in ("return", "arrived", "eliminated"):
            found = estimate([final_scores(group, source, quantity)])
            rows.append(
                {"scenario": group.scenario, "label": label, "setting": key, "value": value, "quantity": quantity}
                | {"iqm": found.value, "low": found.low, "high": found.high, "runs": len(group.runs)}
            )
    return rows


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
