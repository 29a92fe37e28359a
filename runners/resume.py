"""Going on with a run: with its own config, and only as the same experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from maip3o.config.budget import budget_of
from maip3o.config.identity import LENGTH, flat, makes_another_experiment
from maip3o.config.overrides import GROUPS, check_overrides, parse
from maip3o.config.schema import Config, from_dict
from maip3o.errors import UserError
from maip3o.runners import checkpoint
from maip3o.runners.checkpoint import Checkpoint
from maip3o.runners.compose import checked, compose, compose_tree, told_in_one_line, typed


def find_start(config: Config, directory: Path, prolong: bool = False) -> Checkpoint | None:
    """The checkpoint from which this config may go on; None without one. `prolong`: to another length."""
    checkpoint.mend(directory)
    path = directory / "checkpoints" / "last.pt"
    if not path.exists():
        return None
    start = checkpoint.load(path)
    refuse_another_experiment(start.config, config, directory)
    for key in LENGTH:
        before, now = getattr(start.config, key, None), getattr(config, key, None)
        if before != now and not prolong and not _has_passed(start, config):
            raise UserError(
                f"{key}={now}: the run in {directory} has {before}; a run of another length is another run "
                f"(hydra.run.dir=...), and resume={directory} {key}=... prolongs this one"
            )
    return start


def _has_passed(start: Checkpoint, config: Config) -> bool:
    """A run that was prolonged has this config's end behind it: the first command, given again, finds it finished."""
    budget = budget_of(config)
    return budget_of(start.config).total > budget.total and budget.finished(start.counters)


def refuse_another_experiment(old: Config, new: Config, directory: Path) -> None:
    """Refuse any other setting than how it runs and how long: `find_start` and `continued_config` look at that."""
    before, after = flat(asdict(old)), flat(asdict(new))
    for key in sorted(before.keys() | after.keys()):
        if makes_another_experiment(key) and key not in LENGTH and before.get(key) != after.get(key):
            raise UserError(
                f"{key}={after.get(key)}: the run in {directory} has {before.get(key)}; "
                "another experiment needs another directory (hydra.run.dir=...)"
            )
    if list(old.constraints) != list(new.constraints):  # critics and multipliers stand in this order
        order = ", ".join(old.constraints)
        raise UserError(f"constraints: the run in {directory} has them in the order {order}; give them in that order")


def continued_config(directory: Path, overrides: Sequence[str], config_dir: str | None) -> Config:
    """The run's own config with what these overrides change in it.

    What they change is found by composing the run's first command line with and without them, so that `algo=maip3o`
    said again changes nothing, whatever the defaults have become since. A first command line that is not known (a run
    started from Python) or says nothing here (a scenario of another --config-dir) is not needed beside a checkpoint.
    """
    if not directory.is_dir():
        raise UserError(f"resume={directory}: no such run directory")
    checkpoint.mend(directory)
    path = directory / "checkpoints" / "last.pt"
    start = checkpoint.load(path) if path.exists() else None
    try:
        first = _first_overrides(directory)
        if start is not None:  # it holds what `init` gave, which may be gone by now
            first = [text for text in first if key_of(text) != "init"]
        before = compose(first, config_dir)[0]
    except UserError:
        if start is None:
            raise
        new = _applied(start.config, overrides, config_dir)
    else:
        said = {key_of(text) for text in overrides}
        together = [text for text in first if key_of(text) not in said] + list(overrides)
        new = _changed(start.config if start else before, before, compose(together, config_dir)[0])
    if start is not None:
        refuse_another_experiment(start.config, new, directory)
        budget = budget_of(new)
        if budget.total < (done := budget.done(start.counters)) and budget.total < budget_of(start.config).total:
            raise UserError(f"{budget.key}={budget.total}: the run in {directory} has {done} behind it already")
    return new


def _changed(old: Config, before: Config, after: Config) -> Config:
    """`old` with what differs between `before` and `after`."""
    was, now = flat(asdict(before)), flat(asdict(after))
    changed = {key: value for key, value in now.items() if key not in was or was[key] != value}
    return checked(from_dict(_nest({**flat(asdict(old)), **changed})))


def _applied(config: Config, overrides: Sequence[str], config_dir: str | None) -> Config:
    """`config` with these overrides on top of it."""
    check_overrides(overrides, config_dir)
    tree = OmegaConf.create(asdict(config))
    for override in map(parse, overrides):
        key = override.key_or_group
        if override.is_sweep_override():
            raise UserError(f"{override.input_line}: several values need -m, a list needs brackets")
        if key in GROUPS:
            tree[key] = compose_tree([str(override.input_line)], config_dir)[key]
        elif override.is_delete():
            *path, last = key.split(".")
            OmegaConf.select(tree, ".".join(path)).pop(last, None)
        else:
            with told_in_one_line():
                OmegaConf.update(tree, key, override.value())
    return typed(tree)


def _first_overrides(directory: Path) -> list[str]:
    path = directory / ".hydra" / "overrides.yaml"
    try:
        texts = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise UserError(f"resume={directory}: not a run directory ({path} cannot be read)") from None
    return [str(text) for text in texts or []]


def key_of(override: str) -> str:
    """`++a.b=1` -> a.b"""
    return override.partition("=")[0].lstrip("+~")


def _nest(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        branch = tree
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = value
    return tree
