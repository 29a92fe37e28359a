"""From command line to Config: Hydra composes, omegaconf checks types, validate() the rest. Every error is one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, fields, is_dataclass, make_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from maip3o.config.identity import variant
from maip3o.config.overrides import FOLDER, check_overrides, hint, options
from maip3o.config.schema import Config, from_dict
from maip3o.config.validation import validate
from maip3o.errors import UserError
from maip3o.runners.prerequisites import require_fitting_init, require_sound_world


def register() -> None:
    """Tell Hydra of the schema (first of config.yaml's defaults) and the resolver in hydra.run.dir.

    Its launchers' settings come from conf/hydra/launcher alone: Hydra would check them against those of the same names
    that it comes with.
    """
    Plugins.instance()  # they enter their own
    known = ConfigStore.instance().repo["hydra"]["launcher"]
    for name in ("basic", "submitit_local", "submitit_slurm", "ray"):
        known.pop(f"{name}.yaml", None)
    # A new constraint is `+constraints.crash.limit=0.2`, and omegaconf cannot begin one in a typed dictionary.
    open_constraints: list[Any] = [("constraints", dict[str, Any], field(default_factory=dict))]
    ConfigStore.instance().store(name="schema", node=make_dataclass("Schema", open_constraints, bases=(Config,)))
    OmegaConf.register_new_resolver("variant", lambda texts, _root_: variant(texts, _root_), replace=True)


def compose(overrides: Sequence[str], config_dir: str | None = None) -> tuple[Config, Path]:
    """The validated config that these overrides give, and the directory its run will have."""
    composed = compose_tree(overrides, config_dir)
    HydraConfig.instance().set_config(composed)
    with told_in_one_line():
        directory = Path(composed.hydra.run.dir) if not OmegaConf.is_missing(composed.scenario, "name") else Path()
    return to_config(composed), directory


def compose_tree(overrides: Sequence[str], config_dir: str | None = None) -> DictConfig:
    """What Hydra makes of these overrides, its own part included; of the values only the types are checked."""
    if config_dir is not None and not Path(config_dir).is_dir():
        raise UserError(f"--config-dir {config_dir}: no such directory")
    check_overrides(overrides, config_dir)
    if config_dir is not None:
        overrides = [*overrides, f"hydra.searchpath=[file://{Path(config_dir).resolve()}]"]
    register()
    with told_in_one_line(), initialize_config_dir(str(FOLDER), version_base="1.3", job_name="train"):
        return hydra_compose("config", overrides=list(overrides), return_hydra_config=True)


def to_config(composed: DictConfig) -> Config:
    """The typed, validated config of what Hydra composed."""
    if OmegaConf.is_missing(composed.scenario, "name"):
        if chosen := OmegaConf.select(composed, "hydra.runtime.choices.scenario"):
            raise UserError(f"scenario/{chosen}.yaml: it has no name; add name: {chosen}")
        raise UserError(f"no scenario: add +scenario=<name>, one of {', '.join(options('scenario'))}")
    names = [item.name for item in fields(Config)]
    config = typed(OmegaConf.masked_copy(composed, names))
    require_fitting_init(config)
    return config


def typed(tree: DictConfig) -> Config:
    """The tree of a config as a Config, if it is one that can be run."""
    with told_in_one_line():
        config = from_dict(OmegaConf.to_container(tree, resolve=True, throw_on_missing=True))
        return checked(config)


def checked(config: Config) -> Config:
    """The config itself, if it can be run."""
    return require_sound_world(validate(config))


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """What Hydra, omegaconf and YAML raise becomes a UserError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_one_line(error)) from None
    except yaml.YAMLError as error:  # it names file and line
        raise UserError(f"not YAML: {' '.join(str(error).split())}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"a file in --config-dir is not UTF-8 text: {error}") from None


def _one_line(error: Exception) -> str:
    """The gist of Hydra's and omegaconf's many lines."""
    lines = [line.strip() for line in str(error).splitlines()]
    _, merging, override = lines[0].partition("Error merging override ")
    if merging and (expected := _expected(override.partition("=")[0].lstrip("+"))):
        return f"{override}: must be {expected}"
    if lines[0].startswith("Ambiguous value"):
        return f"{lines[0].partition(chr(39))[2].rstrip(chr(39))}: several values need -m, a list needs brackets"
    if lines[0].startswith("Could not override") and len(lines) > 1:
        new = lines[1].partition(" use +")[2]
        return f"{new}: there is no such key yet; a plus sign adds it: +{new}"
    if item := re.search(r"An item is already at '(.+)'", lines[0]):
        return f"+{item[1]}: it is there already; leave the plus sign out"
    cause = error.__cause__ if isinstance(error, HydraException) and error.__cause__ else error
    gist, *details = [line.strip() for line in str(cause).splitlines()] or [type(cause).__name__]
    key = next((line.partition(": ")[2] for line in details if line.startswith("full_key:")), "")
    if file := re.fullmatch(r"In '(.+)': \w+ raised while composing config:", gist):  # of --config-dir
        gist = f"unknown key; {hint(key)}" if details[0].startswith("Key ") else details[0]
        place = f"{file[1]}.yaml: {key}".removesuffix(": ")
    else:
        place, gist = override or key, _reworded(gist, key)
    return f"{place}: {gist}" if place else gist


def _reworded(gist: str, key: str) -> str:
    """omegaconf's complaint about this key in our words, where we know better ones."""
    parent = _type_of(key.rpartition(".")[0]) if key else None
    if gist.startswith("Key ") and is_dataclass(parent):
        return f"unknown key; known are {', '.join(item.name for item in fields(parent))}"
    if "missing mandatory value" in gist:
        return f"it is missing; add +{key}=<value>"
    if "does not support deletion" in gist:
        return "it cannot be taken away; set another value"
    if name := re.search(r"Interpolation key '(.+)' not found", gist):
        return f"${{{name[1]}}} names no key"
    expected = _expected(key) if key else None
    return f"must be {expected}" if expected else gist


WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list[int]: "a list such as [64,64]",
    list[float]: "a list such as [0.6,0.3]",
}


def _expected(key: str) -> str | None:
    """What a value of this key looks like, by its type in the schema."""
    kind = _type_of(key)
    if is_dataclass(kind) or get_origin(kind) is dict:
        return f"set key by key: {key}.<key>=<value>"
    choices = [part for part in get_args(kind) if part is not type(None)] if isinstance(kind, UnionType) else [kind]
    words = WORDS.get(choices[0]) if len(choices) == 1 else None
    return f"{words}, or null" if words and choices != [kind] else words


def _type_of(key: str) -> Any:
    """The type that the schema gives this key; None if it has no such key."""
    kind: Any = Config
    for part in key.split("."):
        if get_origin(kind) is dict:  # below constraints the user makes up names
            kind = get_args(kind)[1]
        elif is_dataclass(kind) and part in get_type_hints(kind):
            kind = get_type_hints(kind)[part]
        else:
            return None
    return kind
