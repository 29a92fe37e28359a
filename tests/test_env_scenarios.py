"""Scenario files and what is refused of them, without starting an engine."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

import maip3o
from maip3o.config.schema import ScenarioConfig
from maip3o.envs import load_scenario, make_array_env, scenario_names
from maip3o.envs.scenarios import FOLDER, MOST_CARS, check_scenario
from maip3o.errors import UserError

NAMES = {
    "bottleneck",
    "intersection",
    "intersection_respawn",
    "parking_lot",
    "parking_lot_respawn",
    "pg",
    "roundabout",
    "tollgate",
}


def test_all_scenarios_are_there() -> None:
    assert set(scenario_names("driving")) == NAMES
    assert set(scenario_names()) > NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_scenario_file_gives_every_field_and_is_valid(name: str) -> None:
    values = OmegaConf.load(FOLDER / f"{name}.yaml").scenario
    of_others = "world settings initial_mean initial_std id cost costs steps paper_alpha"
    assert set(values) == {field.name for field in fields(ScenarioConfig)} - set(of_others.split())
    scenario = load_scenario(name)
    check_scenario(scenario)
    assert scenario.name == name


def test_overrides_replace_fields() -> None:
    scenario = load_scenario("intersection", num_agents=6, metadrive={"delay_done": 5})
    assert (scenario.num_agents, scenario.metadrive) == (6, {"delay_done": 5})


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("intersektion", {}, "unknown scenario 'intersektion': known are ant_velocity, "),
        ("intersection", {"nun_agents": 3}, "unknown override 'nun_agents' .* did you mean 'num_agents'"),
        ("intersection", {"num_agents": "many"}, "num_agents|'many'"),
        ("intersection", {"num_agents": 0}, "num_agents=0: must be at least 1"),
        ("intersection", {"num_agents": 49}, "num_agents=49: the map intersection holds at most 48"),
        ("parking_lot", {"num_agents": 12}, "num_agents=12: the map parking_lot holds at most 11"),
        ("intersection", {"horizon": 0}, "horizon=0: must be at least 1"),
        ("intersection", {"end_rule": "never"}, "end_rule=never: must be one of half, first, all"),
        ("intersection", {"backend": "slow"}, "backend=slow: must be one of fast, stock"),
        ("intersection", {"map": "moon"}, "map=moon: must be one of"),
        ("intersection", {"metadrive": {"speed_rewrd": 1.0}}, "metadrive.speed_rewrd: did you mean 'speed_reward'"),
        (
            "intersection",
            {"metadrive": {"vehicle_config": {"lidar": {"num_laser": 3}}}},
            "metadrive.vehicle_config.lidar.num_laser: did you mean 'num_lasers'",
        ),
        ("intersection", {"metadrive": {"horizon": 5}}, "set scenario.horizon instead"),
        ("intersection", {"metadrive": {"force_seed_spawn_manager": False}}, "this project sets it"),
        ("intersection", {"metadrive": {"crash_done": False}}, "metadrive.crash_done: this project sets it"),
        ("intersection", {"metadrive": {"use_render": True}}, "needs its assets"),
        ("intersection", {"metadrive": {"map_config": {"exit_length": 12}}}, "MetaDrive refuses"),
        ("intersection", {"costs": ["speeding"]}, "unknown constraint 'speeding'"),
        ("ant_velocity", {}, "make_env: ant_velocity has no cars; those with cars are bottleneck, intersection,"),
    ],
)
def test_bad_input_is_one_clear_line(name: str, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        maip3o.make_env(name, **{"backend": "stock", **overrides})
    assert "\n" not in str(error.value)


def test_the_places_of_each_map_are_those_of_metadrive() -> None:
    from maip3o.envs.driving.corrected import ENVIRONMENTS
    from maip3o.envs.driving.simulator import _places

    assert {name: _places(kind({"num_agents": 1}).config) for name, kind in ENVIRONMENTS.items()} == MOST_CARS


def test_after_bad_input_a_good_environment_can_still_be_made() -> None:
    with pytest.raises(UserError):
        maip3o.make_env("intersection", backend="stock", num_agents=49)
    make_array_env(load_scenario("intersection", backend="stock"), ["termination"]).close()


def test_docs_tell_cars_steps_and_backend_of_every_scenario() -> None:
    text = (Path(__file__).parents[1] / "docs" / "environment.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \(\d+\) \| (\d+) \| (\w+) \|", text, re.M)
    told = {name: (int(cars), int(steps), backend) for name, cars, steps, backend in rows}
    scenarios = [load_scenario(name) for name in scenario_names("driving")]
    assert told == {known.name: (known.num_agents, known.horizon, known.backend) for known in scenarios}
