"""What films and replays see of a driving world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from maip3o.envs.contract import ArrayEnv, BoolArray, FloatArray


@dataclass(slots=True)
class CarStates:
    """Where every car is, living or wrecked, for videos and replays. Rows with present=False hold zeros."""

    present: BoolArray  # [A]: a car, living or wreck, stands in the world
    position: FloatArray  # [A, 2] float64, metres, MetaDrive's world frame (x forward, y left)
    heading: FloatArray  # [A] float64, radians, counter-clockwise from +x
    speed: FloatArray  # [A] float64, m/s
    route_completion: FloatArray  # [A] float64 in [0, 1]


@dataclass(slots=True)
class RoadMap:
    """The static map as plain geometry."""

    lanes: list[FloatArray]  # polygons [n, 2] of drivable surface
    lines: list[tuple[FloatArray, str]]  # polylines [n, 2] with kind: "white", "white_broken", "yellow", "side"
    bounds: tuple[float, float, float, float]  # x_min, y_min, x_max, y_max of everything above


class DrivingEnv(ArrayEnv, Protocol):
    """An ArrayEnv that can be filmed from above. The PettingZoo face is a thin view on this."""

    def car_states(self) -> CarStates: ...

    def road_map(self) -> RoadMap: ...

    def routes(self) -> list[FloatArray]:
        """Per slot the centre line [n, 2] from spawn to destination of its present car (empty if none)."""
