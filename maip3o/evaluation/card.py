"""The safety card: an evaluation's figures as plain data for evaluation.json, and as a table for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from rich.table import Table

from maip3o.config.schema import Config
from maip3o.evaluation.statistics import (
    EpisodeTable,
    Estimate,
    bootstrap_ratio,
    clopper_pearson,
    cvar,
    estimates,
    share_of_lives,
)

TAIL = 0.1  # CVaR: the worst tenth of episodes

ROWS: list[tuple[str, str, str]] = [  # figure, label, format
    ("return", "collective return", "number"),
    ("worst_return", "return of the worst car", "number"),
    ("success", "arrived", "share"),
    ("eliminated", "crashed or left the road", "share"),
    ("crash_vehicle", "  hit a car", "share"),
    ("crash_object", "  hit an object", "share"),
    ("crash_sidewalk", "  hit the kerb", "share"),
    ("off_road", "  left the road", "share"),
    ("time_out", "out of time", "share"),
    ("cut", "cut alive by the end rule", "share"),
    ("route_completion", "route completed", "share"),
    ("speed", "mean speed, m/s", "number"),
    ("efficiency", "efficiency, per 100 steps", "number"),
    ("length", "episode length, steps", "number"),
]


def make_card(table: EpisodeTable, config: Config, protocol: str) -> dict[str, Any]:
    """The figures of one protocol as plain data."""
    return {
        "episodes": len(table.seed),
        "figures": {name: asdict(estimate) for name, estimate in estimates(table).items()},
        "constraints": {
            name: _constraint(table, column, name, config, protocol) for column, name in enumerate(config.constraints)
        },
        "worst_agent": _worst_agent(table),
    }


def _constraint(table: EpisodeTable, column: int, name: str, config: Config, protocol: str) -> dict[str, Any]:
    """The cost against its limit. The limit holds for the mean; single episodes within it are counted besides."""
    limit, unit = config.constraints[name].limit, config.algo.constraint_unit
    units = table.lives if unit == "per_agent" else np.ones_like(table.lives)
    cost = table.cost[:, column]
    binary = unit == "per_agent" and bool(np.all(cost <= table.lives))
    mean = share_of_lives(cost, units) if binary else bootstrap_ratio(cost, units)
    within = int(np.sum(cost / units <= limit + 1e-9))
    return {
        "limit": limit,
        "unit": unit,
        "cost": asdict(mean),
        "cvar": cvar(cost / units, TAIL),
        "episodes_within_limit": asdict(clopper_pearson(within, len(cost))),
        # An episode that stops at the first crash cannot have many: its cost says nothing about the limit.
        "verdict": "censored" if protocol == "first" else _verdict(mean, limit),
    }


def _verdict(cost: Estimate, limit: float) -> str:
    if cost.high <= limit:
        return "met"
    return "violated" if cost.low > limit else "undecided"


def _worst_agent(table: EpisodeTable) -> dict[str, Any]:
    """The slot whose cars fail most often."""
    lives = table.slot_lives.sum(axis=0)
    shares = table.slot_eliminated.sum(axis=0) / np.maximum(lives, 1)
    slot = int(shares.argmax())
    estimate = share_of_lives(table.slot_eliminated[:, slot], table.slot_lives[:, slot])
    return {"slot": slot, "eliminated": asdict(estimate)}


def card_table(title: str, cards: dict[str, dict[str, Any]]) -> Table:
    """Columns of cards (protocols, or numbers of cars) beside each other, every figure with its 95 % interval."""
    table = Table(title=title, title_justify="left", caption="in brackets: 95 % intervals, bootstrap over episodes")
    table.add_column("shares are of cars")
    for heading in cards:
        table.add_column(heading, justify="right")
    for figure, label, kind in ROWS:
        if figure == "cut" and not any(card["figures"]["cut"]["mean"] for card in cards.values()):
            continue
        table.add_row(label, *(interval(card["figures"][figure], kind) for card in cards.values()))
    for name in next(iter(cards.values()))["constraints"]:
        table.add_section()
        parts = [card["constraints"][name] for card in cards.values()]
        limit = parts[0]["limit"]
        table.add_row(f"{name} cost (limit {limit:g})", *(interval(part["cost"], "number") for part in parts))
        table.add_row("  limit", *(_coloured(part["verdict"]) for part in parts))
        table.add_row("  CVaR, worst 10 % of episodes", *(f"{part['cvar']:.2f}" for part in parts))
        table.add_row(
            "  episodes within the limit", *(interval(part["episodes_within_limit"], "share") for part in parts)
        )
    table.add_row(
        "most failing agent",
        *(
            f"{card['worst_agent']['slot']}: {interval(card['worst_agent']['eliminated'], 'share')}"
            for card in cards.values()
        ),
    )
    return table


def interval(estimate: dict[str, float], kind: str) -> str:
    """`mean [low, high]`, shares in per cent."""
    if kind == "share":
        mean, low, high = (100 * estimate[key] for key in ("mean", "low", "high"))
        return f"{mean:.1f} % \\[{low:.1f}, {high:.1f}]"
    digits = 0 if abs(estimate["mean"]) >= 100 else 2
    return f"{estimate['mean']:.{digits}f} \\[{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"


def _coloured(verdict: str) -> str:
    colour = {"met": "green", "violated": "red", "undecided": "yellow", "censored": "dim"}[verdict]
    return f"[{colour}]{verdict}[/{colour}]"
