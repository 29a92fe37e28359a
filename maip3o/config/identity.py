"""What makes two runs the same experiment. Directory names, resuming and reports all ask here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from omegaconf import DictConfig, OmegaConf

from maip3o.config.schema import Config

HOW_IT_RUNS = (
    "num_workers",
    "torch_threads",
    "device",
    "checkpoint_every_episodes",
    "resume",
    "runner",
    "logger",
    "evaluation.every_episodes",
    "evaluation.episodes",
)
"""Keys, with all below them, that say how a run is computed and watched. Any other makes another experiment."""

LENGTH = ("total_episodes", "total_steps")
"""How long a run is. Schedules depend on it, so it is part of the experiment; only `resume=` may prolong a run."""

IN_THE_PATH = ("scenario", "algo", "seed", "experiment", "hydra")
"""Overrides that the directory's name need not repeat: it has folders for them, or Hydra alone reads them."""


def under(key: str, prefixes: Iterable[str]) -> bool:
    """Whether the key is one of these, or lies below one."""
    return any(key == prefix or key.startswith(prefix + ".") for prefix in prefixes)


def makes_another_experiment(key: str) -> bool:
    return not under(key, HOW_IT_RUNS)


def variant(overrides: Iterable[str], composed: DictConfig | None = None) -> str:
    """Name of the directory for runs with these overrides: what they change, while that is a sensible name.

    The length comes from the composed config, because a file such as an experiment may set it as well.
    """
    changed = [text.lstrip("+") for text in map(str, overrides) if _names_a_change(text)]
    name = ",".join(sorted([*changed, *_lengths(composed)])).replace("/", "_").replace("+", "")
    # As a sweep writes them, so that 1e-3 and 0.001 are one experiment.
    name = re.sub(r"(?<==)-?[\d.]+e-?\d+(?=,|$)", lambda number: str(float(number[0])), name)
    if len(name) > 120:
        name = f"{name[:100]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return name or "default"


def _names_a_change(override: str) -> bool:
    key = override.partition("=")[0].lstrip("+~")
    hidden = key in IN_THE_PATH or key in LENGTH or key.startswith(("hydra.", "hydra/"))
    return not hidden and makes_another_experiment(key)


def _lengths(composed: DictConfig | None) -> list[str]:
    """`total_episodes=8` where that is not the scenario's own."""
    if composed is None:
        return []
    usual = {"total_episodes": Config().total_episodes, "total_steps": OmegaConf.select(composed, "scenario.steps")}
    found = {key: OmegaConf.select(composed, key) for key in LENGTH}
    return [f"{key}={value}" for key, value in found.items() if value != usual[key]]


def fingerprint(config: Config) -> str:
    """Six characters that two configs share if, and hardly ever unless, they are the same experiment and seed."""
    settings = {key: value for key, value in flat(asdict(config)).items() if makes_another_experiment(key)}
    return hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()[:6]


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}; an empty dictionary stays a value."""
    values: dict[str, Any] = {}
    for key, value in tree.items():
        values.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {prefix + key: value})
    return values
