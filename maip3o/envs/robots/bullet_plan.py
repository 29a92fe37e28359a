"""The plan of a world of Bullet Safety Gym. Its own renderer takes half a second for each picture, without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from maip3o.envs.robots.views import Plan, Shape, disc, rectangle

AROUND = 9.0  # metres of the endless plane that are shown ahead of the robot
BOX, LINE, ENDLESS = 1.0, 0.1, 1000.0  # metres; a line costs beyond its picture's end as well
CAR_LENGTH, CAR_WIDTH = 1.5, 0.85
CORNERS = 8


def plan_of(env: Any) -> Plan:
    """What stands where, in an environment of the package."""
    robot = env.agent.get_position()
    bounds = _bounds(env, robot)
    shapes = [Shape("floor", _floor(env, bounds))]
    if hasattr(env.task, "circle"):
        shapes.append(Shape("zone", disc((0.0, 0.0), env.task.circle.radius)))
    if hasattr(env.task, "goal"):
        shapes.append(Shape("goal", disc(env.task.goal.get_position(), env.task.goal.radius)))
    for name in ("bound_1", "bound_2"):
        if hasattr(env.task, name):
            line = getattr(env.task, name)
            heading = line.get_orientation()[2] + np.pi / 2
            shapes.append(Shape("line", rectangle(line.get_position(), ENDLESS, LINE, heading)))
    for thing in env.obstacles:
        if hasattr(thing, "radius"):
            shapes.append(Shape("hazard", disc(thing.get_position(), thing.radius)))
        else:
            heading = thing.get_orientation()[2]
            shapes.append(Shape("box", rectangle(thing.get_position(), BOX, BOX, heading)))
    return Plan(bounds, [*shapes, Shape("robot", _robot(env, robot))])


def _bounds(env: Any, robot: Any) -> tuple[float, float, float, float]:
    if "Plane" in env.world_name:  # an endless plane: the view goes with the robot
        aside = np.sign(robot[1]) * max(abs(robot[1]) - AROUND / 3, 0.0)
        return robot[0] - AROUND / 2, aside - AROUND / 2, robot[0] + AROUND, aside + AROUND / 2
    reach = env.world.env_dim + (2.0 if env.world_name == "Octagon" else 0.0)
    return -reach, -reach, reach, reach


def _floor(env: Any, bounds: tuple[float, float, float, float]) -> Any:
    if env.world_name != "Octagon":
        side = ENDLESS if "Plane" in env.world_name else bounds[2] - bounds[0]
        return rectangle(((bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2), side, side, 0.0)
    angle = (np.arange(CORNERS) + 0.5) * 2 * np.pi / CORNERS
    corner = bounds[2] / np.cos(np.pi / CORNERS)
    return corner * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _robot(env: Any, position: Any) -> Any:
    if type(env.agent).__name__ == "Ball":
        return disc(position, env.agent.radius)
    return rectangle(position, CAR_LENGTH, CAR_WIDTH, env.agent.get_orientation()[2] + np.pi)  # it is built backwards
