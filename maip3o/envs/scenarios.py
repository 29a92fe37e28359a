"""Scenarios: one YAML file each in conf/scenario."""

from __future__ import annotations

import difflib
from dataclasses import fields
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from maip3o.config.schema import ScenarioConfig
from maip3o.errors import UserError

MAPS = ("intersection", "parking_lot", "roundabout", "bottleneck", "tollgate", "pg")
END_RULES = ("half", "first", "all")
CHOICES = {
    "map": MAPS,
    "end_rule": END_RULES,
    "backend": ("fast", "stock"),
    "lidar": ("exact", "analytic"),
    "observation": ("linear", "near"),
}
MOST_CARS = {
    "intersection": 48,
    "parking_lot": 11,
    "roundabout": 48,
    "bottleneck": 48,
    "tollgate": 42,
    "pg": 15,
}  # places to start from, where scenario.metadrive changes nothing
FOLDER = Path(__file__).resolve().parent.parent / "conf" / "scenario"


def scenario_names(world: str | None = None) -> list[str]:
    """All that there are, or those of one kind of world."""
    names = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    return [name for name in names if world is None or load_scenario(name).world == world]


def load_scenario(name: str, **overrides: Any) -> ScenarioConfig:
    """The scenario of that name with some of its fields replaced."""
    if name not in scenario_names():
        raise UserError(f"unknown scenario {name!r}: known are {', '.join(scenario_names())}")
    known = [field.name for field in fields(ScenarioConfig)]
    for key in overrides:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise UserError(f"unknown override {key!r} of scenario {name}: {hint}")
    try:
        content: Any = OmegaConf.load(FOLDER / f"{name}.yaml")
        content = content.get("scenario", content)  # a file of the whole config's package, or of the scenario's
        merged = OmegaConf.merge(OmegaConf.structured(ScenarioConfig), content, overrides)
    except OmegaConfBaseException as error:
        raise UserError(f"scenario {name}: {str(error).splitlines()[0]}") from None
    scenario: Any = OmegaConf.to_object(merged)
    return scenario


def check_scenario(scenario: ScenarioConfig) -> None:
    """All that can be checked without MetaDrive."""
    for key, choices in CHOICES.items():
        value = getattr(scenario, key)
        if value not in choices:
            raise UserError(f"scenario.{key}={value}: must be one of {', '.join(choices)}")
    for key in ("num_agents", "horizon"):
        value = getattr(scenario, key)
        if value < 1:
            raise UserError(f"scenario.{key}={value}: must be at least 1")
    require_places(scenario, scenario.num_agents if scenario.metadrive else MOST_CARS[scenario.map])
    if scenario.backend == "stock" and scenario.lidar != "exact":
        raise UserError(f"scenario.lidar={scenario.lidar}: only scenario.backend=fast has it; use exact")


def require_places(scenario: ScenarioConfig, places: int) -> None:
    if scenario.num_agents > places:
        where = f"the map {scenario.map} holds at most {places} cars at the start"
        raise UserError(f"scenario.num_agents={scenario.num_agents}: {where}")
