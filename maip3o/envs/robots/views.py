"""What films see of a robot's world: the simulator's own picture, or a plan of a flat world seen from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maip3o.envs.contract import FloatArray

WIDTH, HEIGHT = 940, 720  # pixels of a robot's picture: a film has a strip beside it


@dataclass(slots=True)
class Shape:
    """A thing on the plan."""

    kind: str  # floor | zone | line | hazard | goal | box | robot
    outline: FloatArray  # [n, 2] metres, x right, y up


@dataclass(slots=True)
class Plan:
    bounds: tuple[float, float, float, float]  # x_min, y_min, x_max, y_max of what is shown
    shapes: list[Shape]  # in the order in which they are drawn


class CameraRobot(Protocol):
    """A robot of a world whose `view` is camera."""

    step_seconds: float  # of simulated time

    def picture(self) -> NDArray[np.uint8]:
        """[HEIGHT, WIDTH, 3] RGB of the present moment."""


class PlanRobot(Protocol):
    """A robot of a world whose `view` is plan."""

    step_seconds: float

    def plan(self) -> Plan: ...


def disc(centre: FloatArray | Sequence[float], radius: float) -> FloatArray:
    """The outline [48, 2] of a disc."""
    angle = np.linspace(0.0, 2.0 * np.pi, 48, endpoint=False)
    return np.asarray(centre)[:2] + radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def rectangle(centre: FloatArray | Sequence[float], length: float, width: float, heading: float) -> FloatArray:
    """The outline [4, 2] of a rectangle, `length` along its heading."""
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * (length / 2, width / 2)
    cos, sin = np.cos(heading), np.sin(heading)
    return np.asarray(centre)[:2] + corners @ np.array([[cos, sin], [-sin, cos]])
