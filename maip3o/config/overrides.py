"""`key=value` as Hydra takes it, checked by itself: a wrong one is told in one line, with what was probably meant."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override
from hydra.errors import HydraException

import maip3o
from maip3o.config.schema import Config
from maip3o.errors import UserError

FOLDER = Path(maip3o.__file__).parent / "conf"
GROUPS = sorted(
    path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] != "_" and path.name != "hydra"
)
OPEN_KEYS = (
    "constraints.",
    "scenario.metadrive.",
    "scenario.settings.",
    "algo.settings.",
    "hydra.",
)  # below these the user makes up names, or Hydra has its own


def add_plus(overrides: Sequence[str]) -> list[str]:
    """`scenario=x` means `+scenario=x`: these groups have no default that Hydra could replace."""
    return [f"+{text}" if text.startswith(("scenario=", "experiment=")) else text for text in overrides]


def jobs(overrides: Sequence[str]) -> list[list[str]]:
    """The command lines of a multirun: every combination of the values that are swept over."""
    parsed = [parse(text) for text in overrides]
    discrete = [override for override in parsed if not override.is_sweep_override() or override.is_discrete_sweep()]
    values = {override.get_key_element(): _single_values(override) for override in discrete}  # the last word counts
    return [list(job) for job in itertools.product(*values.values())]


def _single_values(override: Override) -> list[str]:
    """`seed=0,1` -> [seed=0, seed=1]"""
    if override.is_sweep_override():
        return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]
    return [f"{override.get_key_element()}={override.get_value_element_as_str()}"]


def options(group: str, config_dir: str | None = None) -> list[str]:
    """Names in a config group, e.g. the scenarios."""
    folders = [FOLDER, *([Path(config_dir)] if config_dir is not None else [])]
    return sorted(path.stem for folder in folders for path in (folder / group).glob("*.yaml"))


def check_overrides(overrides: Sequence[str], config_dir: str | None = None) -> None:
    """Refuse what Hydra would refuse with many lines, or would let pass with a plus sign."""
    for text in overrides:
        override = parse(text)
        key = override.key_or_group
        whole = isinstance(override.value(), dict)
        if key in GROUPS and not whole:
            _check_choice(text, override, options(key, config_dir))
        elif key in known_keys() and whole and key not in ("scenario.metadrive", "scenario.settings", "algo.settings"):
            # Hydra merges it into what is there, so that constraints={} would keep them all.
            raise UserError(f"{text}: must be set key by key: {key}.<key>=<value> (~{key}.<key> takes one away)")
        elif key not in known_keys() and not key.startswith(OPEN_KEYS):
            raise UserError(f"{text}: unknown key {key}; {hint(key)}")


def parse(text: str) -> Override:
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException:
        raise UserError(f"{text}: not of the form key=value (special characters need quotes: 'key=\"...\"')") from None


def _check_choice(text: str, override: Override, names: list[str]) -> None:
    """`algo=mapo`: the options of a group are files."""
    for value in _values(override):
        if str(value) not in names:
            close = difflib.get_close_matches(str(value), names, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise UserError(f"{text}: no such {override.key_or_group}; {hint}known are {', '.join(names)}")


def _values(override: Override) -> list[Any]:
    """The value, or all values of a sweep over choices."""
    value = override.value()
    return list(value.list) if isinstance(value, ChoiceSweep) else [value]


def hint(key: str) -> str:
    """What the user may have meant by this key."""
    near = difflib.get_close_matches(key, known_keys(), n=1, cutoff=0.7) or _same_last_part(key)
    return f"did you mean {near[0]}?" if near else "see --help"


def _same_last_part(key: str) -> list[str]:
    """`lr` -> algo.lr"""
    return [known for known in known_keys() if known.split(".")[-1] == key.split(".")[-1]]


def known_keys() -> list[str]:
    return [*GROUPS, *_keys(Config, "")]


def _keys(kind: type, prefix: str) -> Iterator[str]:
    hints = get_type_hints(kind)
    for item in fields(kind):
        yield prefix + item.name
        if is_dataclass(hints[item.name]):
            yield from _keys(hints[item.name], f"{prefix}{item.name}.")
