"""What the fast backend can do, checked before anything starts."""

from __future__ import annotations

from typing import Any

from metadrive.version import VERSION

from maip3o.config.schema import ScenarioConfig
from maip3o.errors import UserError

METADRIVE_VERSION = "0.4.3"
MAPS = ("intersection", "parking_lot")
# Keys of MetaDrive's config whose every value is honoured. "vehicle_config.lidar.distance" stands for a nested key.
HONOURED = {
    "success_reward",
    "driving_reward",
    "speed_reward",
    "out_of_road_penalty",
    "crash_vehicle_penalty",
    "crash_object_penalty",
    "crash_sidewalk_penalty",
    "crash_vehicle_cost",
    "crash_object_cost",
    "out_of_road_cost",
    "delay_done",
    "parking_space_num",
    "log_level",
    "map_config.exit_length",
    "map_config.lane_num",
    "vehicle_config.lidar.num_lasers",
    "vehicle_config.lidar.distance",
    "vehicle_config.enable_reverse",
}


def check_scenario(scenario: ScenarioConfig) -> None:
    if VERSION != METADRIVE_VERSION:
        raise UserError(
            f"backend=fast is exact for MetaDrive {METADRIVE_VERSION} only, and {VERSION} is installed: "
            "use backend=stock"
        )
    if scenario.map not in MAPS:
        raise UserError(f"backend=fast knows the maps {', '.join(MAPS)}, not {scenario.map}: use backend=stock")
    for key in _leaves(scenario.metadrive):
        if key not in HONOURED:
            raise UserError(f"backend=fast does not know scenario.metadrive.{key}: use backend=stock")


def _leaves(config: dict[str, Any], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key, value in config.items():
        keys += _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"]
    return keys
