"""Going on with a run: with its own config, and only as the same experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from maip3o.compose import compose
from maip3o.config import Config, from_dict
from maip3o.errors import UserError
from maip3o.runners import checkpoint
from maip3o.runners.checkpoint import Checkpoint
from maip3o.validation import validate

MAY_CHANGE = (
    "total_episodes",
    "num_workers",
    "torch_threads",
    "device",
    "checkpoint_every_episodes",
    "resume",
    "runner.",
    "logger.",
    "evaluation.",
)
"""What a continued run may set anew: how long, on what, and how it is watched. Anything else is another experiment."""


def find_start(config: Config, directory: Path) -> Checkpoint | None:
    """The checkpoint from which this config may go on; None in a directory without one."""
    path = directory / "checkpoints" / "last.pt"
    if not path.exists():
        return None
    start = checkpoint.load(path)
    refuse_another_experiment(start.config, config, directory)
    return start


def refuse_another_experiment(old: Config, new: Config, directory: Path) -> None:
    before, after = _flat(asdict(old)), _flat(asdict(new))
    for key in sorted(before.keys() | after.keys()):
        if not key.startswith(MAY_CHANGE) and before.get(key) != after.get(key):
            raise UserError(
                f"{key}={after.get(key)}: the run in {directory} has {before.get(key)}; "
                "another experiment needs another directory (hydra.run.dir=...)"
            )


def continued_config(directory: Path, overrides: Sequence[str], config_dir: str | None) -> Config:
    """The run's own config with what these overrides change in it.

    What they change is found by composing the run's first command line with and without them, so that `algo=maip3o`
    said again changes nothing, whatever the defaults have become since.
    """
    if not directory.is_dir():
        raise UserError(f"resume={directory}: no such run directory")
    path = directory / "checkpoints" / "last.pt"
    first = _first_overrides(directory)
    if path.exists():  # it holds what `init` gave, which may be gone by now
        first = [text for text in first if _key(text) != "init"]
    said = {_key(text) for text in overrides}
    together = [text for text in first if _key(text) not in said] + list(overrides)
    before = _flat(asdict(compose(first, config_dir)[0]))
    after = _flat(asdict(compose(together, config_dir)[0]))
    old = checkpoint.load(path).config if path.exists() else compose(first, config_dir)[0]
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    new = validate(from_dict(_nest({**_flat(asdict(old)), **changed})))
    refuse_another_experiment(old, new, directory)
    return new


def _first_overrides(directory: Path) -> list[str]:
    path = directory / ".hydra" / "overrides.yaml"
    try:
        texts = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise UserError(f"resume={directory}: not a run directory ({path} cannot be read)") from None
    return [str(text) for text in texts or []]


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}; an empty dictionary stays a value."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {prefix + key: value})
    return flat


def _nest(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        branch = tree
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = value
    return tree
