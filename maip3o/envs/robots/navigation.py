"""Safety Gymnasium's navigation: a robot drives to one goal after another, past what it should not touch or enter.

A Point or a Car. Goal: stay out of circles, and on level 2 touch no vase. Button: press the one that is shown, none of
the others, stay out of circles, and keep away from moving boxes, the gremlins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import Cost, Measurement, WorldSpec
from maip3o.envs.registry import World
from maip3o.envs.robots.alone import AloneEnv, require_alone
from maip3o.envs.robots.safety_gymnasium import require_safety_gymnasium
from maip3o.errors import UserError

# Each is 1 in a step in which it happens, however often. `cost`, the package's own sum, is 1 if any of the others is.
_BUTTON = ("cost", "hazards", "buttons", "gremlins")
COSTS = {
    "Goal1": ("cost", "hazards"),
    "Goal2": ("cost", "hazards", "vases_contact", "vases_velocity"),
    "Button1": _BUTTON,
    "Button2": _BUTTON,
}
IDS = [f"{robot}{task}" for robot in ("Point", "Car") for task in COSTS]
MEASUREMENTS = (Measurement("goals", "last", "goals reached"),)


def _parts(scenario: ScenarioConfig) -> tuple[str, str]:
    """PointGoal1 -> Point, Goal1."""
    robot, task = re.findall("[A-Z][a-z]+[0-9]*", scenario.id)
    return robot, task


def _costs(scenario: ScenarioConfig) -> Mapping[str, str]:
    _check_id(scenario)
    return dict.fromkeys(COSTS[_parts(scenario)[1]], "count")


def _make(scenario: ScenarioConfig, cost_names: tuple[str, ...]) -> AloneEnv:
    from maip3o.envs.robots.navigation_course import OUTCOMES, Course  # it imports MuJoCo

    course = Course(*_parts(scenario), cost_names)
    costs = tuple(Cost(name, "count") for name in cost_names)
    spec = WorldSpec(course.observation_size, course.action_size, OUTCOMES, MEASUREMENTS, costs, agent="robot")
    return AloneEnv(course, spec, scenario)


def _check(scenario: ScenarioConfig) -> None:
    require_alone(scenario)
    _check_id(scenario)
    require_safety_gymnasium()


def _check_id(scenario: ScenarioConfig) -> None:
    if scenario.id not in IDS:
        raise UserError(f"scenario.id={scenario.id}: must be one of {', '.join(IDS)}")


WORLD = World(make=_make, costs=_costs, check=_check, view="camera")
