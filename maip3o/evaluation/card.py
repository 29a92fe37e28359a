"""The safety card: an evaluation's figures as plain data for evaluation.json, and as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.table import Table

from maip3o.config.schema import Config
from maip3o.data.statistics import (
    EpisodeTable,
    Estimate,
    bootstrap_ratio,
    clopper_pearson,
    cvar,
    design_effect,
    estimates,
    share_of_lives,
)
from maip3o.envs.contract import WorldSpec

PROTOCOLS = {"first": "until the first failure", "full": "whole episodes"}
TAIL = 0.1  # CVaR: the worst tenth of episodes


def make_card(table: EpisodeTable, config: Config, protocol: str) -> dict[str, Any]:
    """The figures of one protocol as plain data."""
    return {
        "episodes": len(table.seed),
        "figures": {name: asdict(estimate) for name, estimate in estimates(table).items()},
        "rows": card_rows(table.world, table.slot_lives.shape[1]),
        "constraints": {
            name: _constraint(table, column, name, config, protocol) for column, name in enumerate(config.constraints)
        },
        "worst_agent": _worst_agent(table),
    }


def card_rows(world: WorldSpec, slots: int) -> list[tuple[str, str, str]]:
    """(figure, label, share | number) of each row, in the world's own words."""
    team = slots > 1
    failures = [outcome for outcome in world.outcomes if outcome.kind == "failure"]
    others = [o for o in world.outcomes[1:] if o.kind not in ("goal", "failure")]
    goals = [outcome for outcome in world.outcomes if outcome.kind == "goal"]
    kinds = [("eliminated", world.failure, "share")] if failures else []
    if len(failures) > 1:
        kinds += [(outcome.name, f"  {outcome.label}", "share") for outcome in failures]
    return [
        ("return", "collective return" if team else "return", "number"),
        *([("worst_return", f"return of the worst {world.agent}", "number")] if team else []),
        *((outcome.name, outcome.label, "share") for outcome in goals),
        *kinds,
        *((outcome.name, outcome.label or outcome.name, "share") for outcome in others),
        *((m.name, m.label or m.name, "share" if m.share else "number") for m in world.measurements),
        *([("efficiency", "efficiency, per 100 steps", "number")] if goals and failures else []),
        ("length", "episode length, steps", "number"),
    ]


def _constraint(table: EpisodeTable, column: int, name: str, config: Config, protocol: str) -> dict[str, Any]:
    """The cost against its limit. The limit holds for the mean; single episodes within it are counted besides."""
    limit, unit = config.constraints[name].limit, config.algo.constraint_unit
    units = table.lives if unit == "per_agent" else np.ones_like(table.lives)
    cost = table.cost[:, column]
    kind = table.world.costs[column].kind
    if kind == "event" and unit == "per_agent":
        mean = share_of_lives(cost, units, design_effect(cost, table))
    else:
        mean = bootstrap_ratio(cost, units)
    within = int(np.sum(cost / units <= limit + 1e-9))
    return {
        "limit": limit,
        "unit": unit,
        "kind": kind,
        "cost": asdict(mean),
        "cvar": cvar(cost / units, TAIL),
        "episodes_within_limit": asdict(clopper_pearson(within, len(cost))),
        # An episode that stops at the first crash cannot have many: its cost says nothing about the limit.
        "verdict": "not judged" if protocol == "first" else _verdict(mean, limit),
    }


def _verdict(cost: Estimate, limit: float) -> str:
    if cost.high <= limit:
        return "met"
    return "violated" if cost.low > limit else "undecided"


def _worst_agent(table: EpisodeTable) -> dict[str, Any] | None:
    """The slot whose lives fail most often, of several."""
    if "eliminated" not in table.outcomes or table.slot_lives.shape[1] == 1:
        return None
    lives = table.slot_lives.sum(axis=0)
    shares = table.slot_eliminated.sum(axis=0) / np.maximum(lives, 1)
    slot = int(shares.argmax())
    estimate = share_of_lives(table.slot_eliminated[:, slot], table.slot_lives[:, slot])
    return {"slot": slot, "eliminated": asdict(estimate)}


def rows_of(card: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The card's rows; one written before cards had them is of cars."""
    if "rows" in card:
        return [(str(figure), str(label), str(kind)) for figure, label, kind in card["rows"]]
    from maip3o.envs.driving.outcomes import driving_spec

    return card_rows(driving_spec(0, 0, ()), 2)


def card_table(title: str, cards: dict[str, dict[str, Any]]) -> Table:
    """Columns of cards (protocols, or numbers of cars) beside each other, every figure with its 95 % interval."""
    table = Table(title=title, title_justify="left", caption="in brackets: 95 % intervals, of the kind at the right")
    table.add_column("shares are of lives")
    for heading in cards:
        table.add_column(heading, justify="right")
    table.add_column("interval")
    for figure, label, kind in rows_of(next(iter(cards.values()))):
        if figure == "cut" and not any(card["figures"]["cut"]["mean"] for card in cards.values()):
            continue
        _add_row(table, label, [card["figures"][figure] for card in cards.values()], kind)
    for name in next(iter(cards.values()))["constraints"]:
        table.add_section()
        parts = [card["constraints"][name] for card in cards.values()]
        limit = parts[0]["limit"]
        share = parts[0]["kind"] == "event" and parts[0]["unit"] == "per_agent"
        costs = [part["cost"] for part in parts]
        label = name if name == "cost" else f"{name} cost"
        _add_row(table, f"{label} (limit {limit:g})", costs, "share" if share else "number")
        table.add_row("  limit", *(_coloured(part["verdict"]) for part in parts))
        table.add_row("  CVaR, worst 10 % of episodes", *(f"{part['cvar']:.2f}" for part in parts))
        _add_row(table, "  episodes within the limit", [part["episodes_within_limit"] for part in parts], "share")
    if all(card["worst_agent"] for card in cards.values()):
        worst = [card["worst_agent"] for card in cards.values()]
        table.add_row("most failing agent", *(f"{w['slot']}: {interval(w['eliminated'], 'share')}" for w in worst))
    return table


def _add_row(table: Table, label: str, estimates: Sequence[dict[str, Any]], kind: str) -> None:
    """Every number, and at the end the kind of interval that all of them have."""
    table.add_row(label, *(interval(estimate, kind) for estimate in estimates), estimates[0]["interval"])


def interval(estimate: dict[str, Any], kind: str) -> str:
    """`mean [low, high]`, shares in per cent."""
    if kind == "share":
        mean, low, high = (100 * estimate[key] for key in ("mean", "low", "high"))
        return f"{mean:.1f} % \\[{low:.1f}, {high:.1f}]"
    digits = 0 if abs(estimate["mean"]) >= 100 else 2
    return f"{estimate['mean']:.{digits}f} \\[{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"


def _coloured(verdict: str) -> str:
    colour = {"met": "green", "violated": "red", "undecided": "yellow", "not judged": "dim"}[verdict]
    return f"[{colour}]{verdict}[/{colour}]"
