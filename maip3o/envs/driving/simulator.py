"""Builds a MetaDrive environment from a scenario, after checking all that can be wrong. Starts no engine yet."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from metadrive.engine.asset_loader import AssetLoader
from metadrive.engine.engine_utils import engine_initialized
from metadrive.manager.spawn_manager import SpawnManager
from metadrive.utils import Config

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.driving.corrected import CORRECTED_CONFIG, ENVIRONMENTS, ONE_ENGINE
from maip3o.envs.scenarios import check_scenario, require_places
from maip3o.errors import UserError

OWN_KEYS = {"num_agents": "num_agents", "horizon": "horizon", "allow_respawn": "respawn"}
FIXED_KEYS = (
    *CORRECTED_CONFIG,
    *("is_multi_agent", "num_scenarios", "start_seed", "agent_configs", "agent_policy"),
    *("crash_done", "out_of_road_done"),  # a life that outlives its crash would end with the wrong cause and cost
)
FREE_KEYS = ("block_dist_config", "sensors")  # their contents are not a fixed set of keys


def make_metadrive(scenario: ScenarioConfig) -> Any:
    """The corrected MetaDrive environment of that scenario."""
    check_scenario(scenario)
    if engine_initialized():
        raise UserError(ONE_ENGINE)
    environment = ENVIRONMENTS[scenario.map]
    _check_overrides(scenario.metadrive, environment.default_config())
    config = {**scenario.metadrive, "horizon": scenario.horizon, "allow_respawn": scenario.respawn}
    try:
        # One car first: MetaDrive's time to make an environment grows with the square of their number.
        require_places(scenario, _places(environment({**config, "num_agents": 1}).config))
        return environment({**config, "num_agents": scenario.num_agents})
    except UserError:
        raise
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"scenario.metadrive: MetaDrive refuses it: {' '.join(str(error).split())[:200]}") from None


def _check_overrides(overrides: dict[str, Any], known: Config, path: str = "scenario.metadrive") -> None:
    for key, value in overrides.items():
        if path == "scenario.metadrive":
            _check_top_key(key, value)
        if key not in known:
            close = difflib.get_close_matches(str(key), list(known.keys()), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "MetaDrive has no such key"
            raise UserError(f"unknown key {path}.{key}: {hint}")
        if key in ("gaussian_noise", "dropout_prob") and value:
            raise UserError(f"{path}.{key}={value}: MetaDrive draws it from an unseeded generator, so it must stay 0")
        if isinstance(value, dict) and isinstance(known[key], Config) and key not in FREE_KEYS:
            _check_overrides(value, known[key], f"{path}.{key}")


def _check_top_key(key: str, value: Any) -> None:
    if key in OWN_KEYS:
        raise UserError(f"scenario.metadrive.{key}: set scenario.{OWN_KEYS[key]} instead")
    if key in FIXED_KEYS:
        raise UserError(f"scenario.metadrive.{key}: this project sets it, see docs/environment.md")
    if key in ("use_render", "image_observation") and value and not Path(AssetLoader.asset_path).exists():
        raise UserError(
            f"scenario.metadrive.{key}: MetaDrive's 3D rendering needs its assets, which are not installed: "
            "fetch them with python -m metadrive.pull_asset, or draw from above, which needs none"
        )


def _places(config: Config) -> int:
    """Places to start from. MetaDrive checks this too, but only when the engine stands."""
    map_config = config["map_config"]
    return int(SpawnManager.max_capacity(config["spawn_roads"], map_config["exit_length"], map_config["lane_num"]))
