"""What a run says when it is over: how good the policy is, where things are, what to type next."""

from __future__ import annotations

import shlex
from pathlib import Path

from maip3o.config.schema import Config
from maip3o.data.statistics import EpisodeTable, Estimate, bootstrap_ratio, design_effect, estimates, share_of_lives
from maip3o.envs.registry import find_world


def short(directory: Path) -> Path:
    """As one would type it here."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory


def last_words(directory: Path, config: Config, table: EpisodeTable | None) -> list[str]:
    """table: the last evaluation's episodes; None without evaluations."""
    lines = [] if table is None else [*_outcomes(table), *_constraints(config, table)]
    directory = short(directory)
    video = ["video=true"] if find_world(config.scenario).view else []
    evaluate = shlex.join(["python", "-m", "maip3o.evaluate", f"checkpoint={directory}", *video])
    return [
        *lines,
        f"in {directory}: checkpoints/last.pt, metrics.jsonl, train.log",
        f"next: {evaluate}",
        f"      {shlex.join(['tensorboard', '--logdir', str(directory)])}",
    ]


def _outcomes(table: EpisodeTable) -> list[str]:
    figures = estimates(table)
    world = table.world
    shown = {outcome.name: outcome.label or outcome.name for outcome in world.outcomes if outcome.kind != "failure"}
    named = {name: label for name, label in shown.items() if name in figures and figures[name].mean > 0}
    if "eliminated" in figures:
        named["eliminated"] = world.failure
    shares = [f"{label} {_share(figures[name])}" for name, label in named.items()]
    score = figures["return"]
    return [
        f"last evaluation, {len(table.seed)} held-out episodes (95 % intervals; evaluate more for narrower ones):",
        f"  return {score.mean:.0f} [{score.low:.0f}, {score.high:.0f}]",
        *(f"  {share}" for share in shares),
    ]


def _constraints(config: Config, table: EpisodeTable) -> list[str]:
    lines = []
    for column, (name, constraint) in enumerate(config.constraints.items()):
        cost, event = table.cost[:, column], table.world.costs[column].kind == "event"
        if config.algo.constraint_unit == "per_team":
            found, unit = bootstrap_ratio(cost), "a team"
        elif event:
            lines.append(f"  {name}: {_share(share_of_lives(cost, table.lives, design_effect(cost, table)))} of lives, "
                         f"limit {100 * constraint.limit:g} %")  # fmt: skip
            continue
        else:
            found, unit = bootstrap_ratio(cost, table.lives), "a life"
        lines.append(
            f"  {name}: {found.mean:.2f} [{found.low:.2f}, {found.high:.2f}] {unit}, limit {constraint.limit:g}"
        )
    return lines


def _share(found: Estimate) -> str:
    return f"{100 * found.mean:.0f} % [{100 * found.low:.0f}, {100 * found.high:.0f}]"
