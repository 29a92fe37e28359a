"""The static map as named arrays, taken once from MetaDrive's road network and blocks."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from metadrive.component.lane.circular_lane import CircularLane
from metadrive.component.lane.straight_lane import StraightLane
from metadrive.component.pg_space import BlockParameterSpace, Parameter
from metadrive.component.pgblock.first_block import FirstPGBlock
from metadrive.component.pgblock.intersection import InterSection
from metadrive.component.pgblock.parking_lot import ParkingLot
from metadrive.component.pgblock.t_intersection import TInterSection
from metadrive.component.road_network import Road
from metadrive.type import MetaDriveType
from metadrive.utils.math import clip, get_vertical_vector, norm, wrap_to_pi
from scipy.spatial import ConvexHull
from shapely import Polygon  # type: ignore[import-untyped]

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.errors import UserError

LANE_TYPES = (StraightLane, CircularLane)
BLOCK_TYPES = (FirstPGBlock, InterSection, TInterSection, ParkingLot)

LANE = np.dtype(
    [
        ("circular", "?"),
        ("length", "f8"),
        ("width", "f8"),
        ("road", "i4"),
        ("start_node", "i4"),
        ("hit_rank", "i4"),  # place in the order in which Bullet's ray test reports lanes
        # straight
        ("start_x", "f8"),
        ("start_y", "f8"),
        ("direction_x", "f8"),
        ("direction_y", "f8"),
        ("lateral_x", "f8"),
        ("lateral_y", "f8"),
        ("heading", "f8"),
        ("normal_x", "f8"),  # of BaseVehicle.heading_diff
        ("normal_y", "f8"),
        ("normal_norm", "f8"),
        # circular
        ("clockwise", "?"),
        ("turn", "f8"),  # -1 clockwise, 1 counter-clockwise
        ("center_x", "f8"),
        ("center_y", "f8"),
        ("radius", "f8"),
        ("start_phase", "f8"),
        ("end_phase", "f8"),
        ("start_phase_wrapped", "f8"),
        ("end_phase_wrapped", "f8"),
        # constant entries of the navigation observation
        ("bend_direction", "f8"),
        ("bend_angle", "f8"),
        # Bullet's hull of the lane's surface, seen from above
        ("x_min", "f8"),
        ("x_max", "f8"),
        ("y_min", "f8"),
        ("y_max", "f8"),
        ("hull_first", "i4"),
        ("hull_count", "i4"),
        # where Bullet keeps the hull: address, and the box that it looks at first (see lane_bodies.py)
        ("body", "i8"),
        ("box_x_min", "f4"),
        ("box_x_max", "f4"),
        ("box_y_min", "f4"),
        ("box_y_max", "f4"),
    ]
)
ROAD = np.dtype([("first_lane", "i4"), ("num_lanes", "i4"), ("sign", "f8")])  # sign -1: a negative road
HULL_EDGE = np.dtype([("x", "f8"), ("y", "f8"), ("dx", "f8"), ("dy", "f8"), ("length", "f8")])
LINE = np.dtype([("x", "f8"), ("y", "f8"), ("dx", "f8"), ("dy", "f8")])  # a segment: its middle and its half extent


class MapArrays(NamedTuple):
    """What the kernels are given of a map."""

    lanes: Any  # [number of lanes] LANE
    roads: Any  # [number of roads] ROAD; the lanes of a road stand side by side in `lanes`
    hull_edges: Any  # HULL_EDGE, counter-clockwise per lane
    solid_lines: Any  # LINE: lane lines that end a life when touched
    kerbs: Any  # LINE: the edges of the sidewalks
    max_curve_radius: float  # of the navigation observation


@dataclass(frozen=True)
class MapGeometry:
    arrays: MapArrays
    node_ids: dict[str, int]
    road_ids: dict[tuple[str, str], int]
    lane_ids: dict[tuple[str, str, int], int]
    lane_objects: list[Any]

    def route(self, checkpoints: list[str]) -> tuple[IntArray, IntArray]:
        """Node ids [n] and road ids [n - 1] of a list of checkpoints."""
        nodes = [self.node_ids[name] for name in checkpoints]
        roads = [self.road_ids[pair] for pair in pairwise(checkpoints)]
        return np.array(nodes, dtype=np.int32), np.array(roads, dtype=np.int32)


def take_geometry(metadrive_map: Any, static_world: Any) -> MapGeometry:
    for block in metadrive_map.blocks:
        if type(block) not in BLOCK_TYPES:
            raise UserError(f"backend=fast cannot drive on a block of type {type(block).__name__}: use backend=stock")
    graph = metadrive_map.road_network.graph
    nodes = {name for start, ends in graph.items() for name in (start, *ends)}
    node_ids = {name: number for number, name in enumerate(sorted(nodes))}
    road_ids: dict[tuple[str, str], int] = {}
    lane_ids: dict[tuple[str, str, int], int] = {}
    lane_objects: list[Any] = []
    roads = np.zeros(sum(len(ends) for ends in graph.values()), dtype=ROAD)
    for start, ends in graph.items():
        for end, road_lanes in ends.items():
            number = road_ids[start, end] = len(road_ids)
            sign = -1.0 if Road(start, end).is_negative_road() else 1.0
            roads[number] = (len(lane_objects), len(road_lanes), sign)
            for index, lane in enumerate(road_lanes):
                lane_ids[start, end, index] = len(lane_objects)
                lane_objects.append(lane)
    lanes, hull_edges, hulls = _lane_records(lane_objects, node_ids, road_ids)
    lanes["hit_rank"] = _hit_ranks(hulls, lane_ids, static_world)
    arrays = MapArrays(
        lanes=lanes,
        roads=roads,
        hull_edges=hull_edges,
        solid_lines=_solid_lines(static_world),
        kerbs=_kerbs(metadrive_map),
        max_curve_radius=float(BlockParameterSpace.CURVE[Parameter.radius].max),
    )
    return MapGeometry(
        arrays=arrays,
        node_ids=node_ids,
        road_ids=road_ids,
        lane_ids=lane_ids,
        lane_objects=lane_objects,
    )


def _lane_records(
    lane_objects: list[Any], node_ids: dict[str, int], road_ids: dict[tuple[str, str], int]
) -> tuple[Any, Any, list[FloatArray]]:
    lanes = np.zeros(len(lane_objects), dtype=LANE)
    hulls: list[FloatArray] = []
    for record, lane in zip(lanes, lane_objects, strict=True):
        if type(lane) not in LANE_TYPES or not lane.need_lane_localization:
            raise UserError(f"backend=fast cannot drive on a lane of type {type(lane).__name__}: use backend=stock")
        record["length"], record["width"] = lane.length, lane.width
        record["road"] = road_ids[lane.index[:2]]
        record["start_node"] = node_ids[lane.index[0]]
        _fill_circular(record, lane) if isinstance(lane, CircularLane) else _fill_straight(record, lane)
        points = np.asarray(lane.polygon, dtype=np.float32).astype(np.float64)
        hull = points[ConvexHull(points).vertices]  # counter-clockwise
        record["hull_first"], record["hull_count"] = sum(len(h) for h in hulls), len(hull)
        record["x_min"], record["y_min"] = hull.min(axis=0)
        record["x_max"], record["y_max"] = hull.max(axis=0)
        hulls.append(hull)
    edges = np.zeros(sum(len(h) for h in hulls), dtype=HULL_EDGE)
    start = np.concatenate(hulls)
    along = np.concatenate([np.roll(hull, -1, axis=0) - hull for hull in hulls])
    edges["x"], edges["y"] = start.T
    edges["length"] = np.hypot(*along.T)
    edges["dx"], edges["dy"] = (along / edges["length"][:, None]).T
    return lanes, edges, hulls


def _fill_straight(record: Any, lane: Any) -> None:
    record["start_x"], record["start_y"] = lane.start
    record["direction_x"], record["direction_y"] = lane.direction
    record["lateral_x"], record["lateral_y"] = lane.direction_lateral
    record["heading"] = lane.heading
    normal = np.asarray(get_vertical_vector(lane.end - lane.start)[1])
    record["normal_x"], record["normal_y"] = normal
    record["normal_norm"] = norm(normal[0], normal[1])
    _fill_bend(record, direction=0.0, angle=0.0)


def _fill_circular(record: Any, lane: Any) -> None:
    record["circular"], record["clockwise"], record["turn"] = True, lane.is_clockwise(), lane.direction
    record["center_x"], record["center_y"] = lane.center
    record["radius"] = lane.radius
    record["start_phase"], record["end_phase"] = lane.start_phase, lane.end_phase
    record["start_phase_wrapped"] = wrap_to_pi(lane.start_phase)
    record["end_phase_wrapped"] = wrap_to_pi(lane.end_phase)
    _fill_bend(record, direction=-lane.direction, angle=lane.angle)


def _fill_bend(record: Any, direction: float, angle: float) -> None:
    """The entries of NodeNetworkNavigation._get_info_for_checkpoint that depend on the lane alone."""
    record["bend_direction"] = clip((direction + 1) / 2, 0.0, 1.0)
    largest = BlockParameterSpace.CURVE[Parameter.angle].max
    record["bend_angle"] = clip((np.rad2deg(angle) / largest + 1) / 2, 0.0, 1.0)


def _hit_ranks(hulls: list[FloatArray], lane_ids: dict[tuple[str, str, int], int], static_world: Any) -> IntArray:
    """Lanes that lie at exactly the same distance from a car are taken in the order in which Bullet's ray test reports
    them, which is the order of its tree: asked at one point of every overlap, and completed to a total order."""
    polygons = [Polygon(hull).buffer(0.03, join_style="mitre") for hull in hulls]  # Bullet's own margin is 0.04
    order: TopologicalSorter[int] = TopologicalSorter({lane: () for lane in range(len(hulls))})
    asked: set[tuple[float, float]] = set()
    for first, polygon in enumerate(polygons):
        for second in range(first + 1, len(polygons)):
            overlap = polygon.intersection(polygons[second])
            if overlap.area < 1e-4:
                continue
            point = overlap.representative_point()
            if (point.x, point.y) in asked:
                continue
            asked.add((point.x, point.y))
            hits = _lanes_below(point.x, point.y, lane_ids, static_world)
            for before, after in pairwise(hits):
                order.add(after, before)
    ranks = np.zeros(len(hulls), dtype=np.int32)
    ranks[list(order.static_order())] = np.arange(len(hulls))
    return ranks


def lanes_below(x: float, y: float, geometry: MapGeometry, static_world: Any) -> list[int]:
    """The ray test of metadrive.utils.pg.utils.ray_localization: ids of the lanes under a point, in Bullet's order."""
    return _lanes_below(x, y, geometry.lane_ids, static_world)


def _lanes_below(x: float, y: float, lane_ids: dict[tuple[str, str, int], int], static_world: Any) -> list[int]:
    hits = static_world.rayTestAll((x, y, 1.0), (x, y, -1.0)).getHits()
    nodes = [node for node in (hit.getNode() for hit in hits) if MetaDriveType.is_lane(node.getName())]
    return [lane_ids[node.getPythonTag(node.getName()).base_object_name] for node in nodes]


def _solid_lines(static_world: Any) -> Any:
    """Middle line of each box that MetaDrive lays along a continuous lane line."""
    names = (MetaDriveType.LINE_SOLID_SINGLE_WHITE, MetaDriveType.LINE_SOLID_SINGLE_YELLOW)
    nodes = [node for node in static_world.getGhosts() if node.getName() in names]
    lines = np.zeros(len(nodes), dtype=LINE)
    for line, node in zip(lines, nodes, strict=True):
        transform = node.getTransform()
        half = transform.getQuat().xform((node.getShape(0).getHalfExtentsWithMargin()[0], 0, 0))
        line["x"], line["y"], _ = transform.getPos()
        line["dx"], line["dy"], _ = half
    return lines


def _kerbs(metadrive_map: Any) -> Any:
    edges = []
    for block in metadrive_map.blocks:
        for sidewalk in block.sidewalks.values():
            points = np.asarray(sidewalk["polygon"], dtype=np.float64)
            edges += list(zip(points, np.roll(points, -1, axis=0), strict=True))
    kerbs = np.zeros(len(edges), dtype=LINE)
    for kerb, (start, end) in zip(kerbs, edges, strict=True):
        kerb["x"], kerb["y"] = (start + end) / 2
        kerb["dx"], kerb["dy"] = (end - start) / 2
    return kerbs
