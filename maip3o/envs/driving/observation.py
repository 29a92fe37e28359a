"""What each number of the observation is: in [0, 1], linear in a physical quantity, and clipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.driving.lean_import import import_metadrive
from maip3o.envs.scenarios import load_scenario

ROAD_WIDTH = 18.0  # metres: (MAX_LANE_NUM + 1) * MAX_LANE_WIDTH of MetaDrive's maps
LANE_WIDTH = 4.5  # metres: MAX_LANE_WIDTH of MetaDrive's maps
CHECKPOINT_RANGE = 50.0  # metres
MAX_SPEED = 80.0  # km/h, of the car model that all agents drive
CURVE_RADIUS, CURVE_ANGLE = 60.0, 135.0  # metres, degrees: the largest of MetaDrive's curves


@dataclass(frozen=True)
class ObservationPart:
    """Numbers [start:stop] of the observation. A value of 0 stands for `low`, 1 for `high`, linear between (with
    `observation: near` distances are not, see near.py)."""

    name: str
    start: int
    stop: int
    unit: str
    low: float
    high: float
    meaning: str

    @property
    def slice(self) -> slice:
        return slice(self.start, self.stop)


Row = tuple[str, int, str, float, float, str]  # name, how many numbers, unit, low, high, meaning


def observation_layout(scenario: str | ScenarioConfig) -> list[ObservationPart]:
    """The parts of the observation vector of a scenario, in order. Starts no engine."""
    import_metadrive()  # late: it takes seconds
    from maip3o.envs.driving.corrected import ENVIRONMENTS

    if isinstance(scenario, str):
        scenario = load_scenario(scenario)
    config = ENVIRONMENTS[scenario.map].default_config().update(scenario.metadrive)
    parts = []
    start = 0
    for name, size, unit, low, high, meaning in _rows(config, has_navigation=scenario.map != "tollgate"):
        parts.append(ObservationPart(name, start, start + size, unit, low, high, meaning))
        start += size
    return parts


def observation_size(scenario: ScenarioConfig) -> int:
    """How many numbers an observation has. Starts no engine."""
    return observation_layout(scenario)[-1].stop


def _rows(config: Any, has_navigation: bool) -> Iterator[Row]:
    vehicle = config["vehicle_config"]
    if config["random_agent_model"]:
        yield "length", 1, "m", 0, 10, "of the own car"
        yield "width", 1, "m", 0, 2.5, "of the own car"
    yield from _border_rows(vehicle["side_detector"])
    yield from _motion_rows()
    yield from _lane_rows(vehicle["lane_line_detector"])
    if has_navigation:
        curve = CURVE_RADIUS + config["map_config"]["lane_num"] * config["map_config"]["lane_width"]
        yield from _checkpoint_rows("checkpoint", "the end of the present road", curve)
        yield from _checkpoint_rows("next_checkpoint", "the end of the road after it", curve)
    yield from _lidar_rows(vehicle["lidar"])
    if not has_navigation:
        yield "in_toll_booth", 1, "", 0, 1, "1 in the toll booth's block"
        yield "toll_paid", 1, "", 0, 1, "1 once the car has been in the booth for more than min_pass_steps"


def _border_rows(detector: Any) -> Iterator[Row]:
    if detector["num_lasers"]:
        meaning = "to a solid line or kerb; beam 0 points left, counter-clockwise; 1: nothing within reach"
        yield "side_detector", detector["num_lasers"], "m", 0, detector["distance"], meaning
        return
    yield "distance_to_left", 1, "m", 0, ROAD_WIDTH, "from the car's centre to the left edge of its side of the road"
    yield "distance_to_right", 1, "m", 0, ROAD_WIDTH, "from the car's centre to the right edge of the road"


def _motion_rows() -> Iterator[Row]:
    yield "heading", 1, "sine", -1, 1, "of the angle from the road's direction to the car's; positive: turned right"
    yield "speed", 1, "km/h", -1, MAX_SPEED, "0 km/h is 1/81"
    steering = "the last steering again, divided by 60: within 0.008 of 0.5, carries next to nothing"
    yield "steering", 1, "", -60, 60, steering
    yield "last_steering", 1, "", -1, 1, "the last action, clipped; positive: left"
    yield "last_throttle", 1, "", -1, 1, "the last action, clipped; negative: brake, or reverse where enabled"
    yield "yaw_rate", 1, "rad/s", 0, 1, "without sign, clipped at 1"


def _lane_rows(detector: Any) -> Iterator[Row]:
    if detector["num_lasers"]:
        meaning = "to any lane line; beam 0 points left, counter-clockwise; 1: nothing within reach"
        yield "lane_line_detector", detector["num_lasers"], "m", 0, detector["distance"], meaning
        return
    yield (
        "lateral_offset",
        1,
        "m",
        -LANE_WIDTH / 2,
        LANE_WIDTH / 2,
        "from the middle of the lane; positive: right",
    )


def _checkpoint_rows(name: str, where: str, curve: float) -> Iterator[Row]:
    reach = CHECKPOINT_RANGE
    yield f"{name}_ahead", 1, "m", -reach, reach, f"{where}, middle of its lanes, seen from the car; cropped to 50 m"
    yield f"{name}_left", 1, "m", -reach, reach, "the same point; positive: to the left"
    yield f"{name}_radius", 1, "m", 0, curve, "radius of that road's first lane; 0 if straight"
    yield f"{name}_direction", 1, "", -1, 1, "0: bends left, 0.5: straight, 1: bends right"
    yield (
        f"{name}_angle",
        1,
        "degree",
        -CURVE_ANGLE,
        CURVE_ANGLE,
        "of the bend, without sign; 0.5 if straight",
    )


def _lidar_rows(lidar: Any) -> Iterator[Row]:
    for other in range(lidar["num_others"]):
        size = 8 if lidar["add_others_navi"] else 4
        meaning = "position ahead and left over the lidar's reach, velocity ahead and left over 80 km/h; zeros if none"
        yield f"other_car_{other + 1}", size, "", -1, 1, meaning
    meaning = "from the car's centre to the nearest car, living or wreck, at 1.2 m; beam 0 ahead, counter-clockwise"
    yield "lidar", lidar["num_lasers"], "m", 0, lidar["distance"], meaning
