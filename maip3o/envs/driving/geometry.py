"""The static map and the cars' routes as plain geometry, read from MetaDrive's road network."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from metadrive.constants import PGLineColor, PGLineType

from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.views import RoadMap

INTERVAL = 1.0  # metres between the points of a curve


def road_map(metadrive_map: Any) -> RoadMap:
    """Lanes as polygons and lane lines as polylines of a MetaDrive PGMap."""
    lanes: list[FloatArray] = []
    lines: list[tuple[FloatArray, str]] = []
    for roads in metadrive_map.road_network.graph.values():
        for road in roads.values():
            for index, lane in enumerate(road):
                lanes.append(_polygon(lane))
                # A lane's right line is the left line of its neighbour, save for the outermost lane.
                sides = (0, 1) if index == len(road) - 1 else (0,)
                lines += [line for side in sides if (line := _line(lane, side)) is not None]
    points = np.concatenate([*lanes, *(line for line, _ in lines)])
    (x_min, y_min), (x_max, y_max) = points.min(axis=0), points.max(axis=0)
    return RoadMap(lanes=lanes, lines=lines, bounds=(float(x_min), float(y_min), float(x_max), float(y_max)))


def route(car: Any) -> FloatArray:
    """[n, 2]: the centre line from a car's spawn lane to its destination."""
    navigation = car.navigation
    return route_line(navigation.map.road_network.graph, navigation.checkpoints, car.config["spawn_lane_index"][2])


def route_line(graph: Any, checkpoints: list[str], wanted: int) -> FloatArray:
    """[n, 2]: the centre line along the checkpoints, in the lane of that number where there is one."""
    pieces = []
    for start, end in pairwise(checkpoints):
        lanes = graph[start][end]
        pieces.append(_polyline(lanes[min(wanted, len(lanes) - 1)], lateral=0.0))
    return np.concatenate(pieces)


def _polygon(lane: Any) -> FloatArray:
    half = lane.width / 2
    return np.concatenate([_polyline(lane, -half), _polyline(lane, half)[::-1]])


def _polyline(lane: Any, lateral: float) -> FloatArray:
    count = max(2, int(np.ceil(lane.length / INTERVAL)) + 1) if lane.radius else 2
    return np.array([lane.position(along, lateral) for along in np.linspace(0.0, lane.length, count)])


def _line(lane: Any, side: int) -> tuple[FloatArray, str] | None:
    kind = lane.line_types[side]
    if kind == PGLineType.NONE:
        return None
    lateral = lane.width / 2 if side else -lane.width / 2
    return _polyline(lane, lateral), _line_kind(kind, lane.line_colors[side])


def _line_kind(kind: str, colour: Any) -> str:
    if kind == PGLineType.BROKEN:
        return "white_broken"
    if kind in (PGLineType.SIDE, PGLineType.GUARDRAIL):
        return "side"
    return "yellow" if colour == PGLineColor.YELLOW else "white"
