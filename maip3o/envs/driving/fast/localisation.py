"""Which lanes a car stands on, and which of them it follows."""

from __future__ import annotations

import math
from typing import Any

from maip3o.envs.contract import BoolArray, IntArray
from maip3o.envs.driving.fast.lanes import distance, heading_at, local_coordinates
from maip3o.envs.driving.fast.native import RayCall, cast
from maip3o.jit import kernel

# Bullet's ray hits a lane's hull up to 0.04 m outside of it, and up to 0.11 m where its convex cast stops early:
# inside of this band of signed distances only Bullet knows.
SURELY_ON = 0.01
SURELY_OFF = 0.16
ABOVE, BELOW = 1.0, -1.0  # metres: ends of the ray


@kernel
def lanes_under(
    cars: Any, slots: IntArray, lanes: Any, hull_edges: Any, call: RayCall, hits: BoolArray, doubtful: BoolArray
) -> None:
    """The ray test of metadrive.utils.pg.utils.ray_localization, where geometry alone can tell.

    Near a lane's edge Bullet is asked. Writes hits [A, lanes] and doubtful [A]: it has to be asked through Panda3D.
    """
    for slot in slots:
        x, y = cars[slot].x, cars[slot].y
        doubtful[slot] = False
        for k in range(len(lanes)):
            lane = lanes[k]
            hits[slot, k] = False
            if (
                x < lane.x_min - SURELY_OFF
                or x > lane.x_max + SURELY_OFF
                or y < lane.y_min - SURELY_OFF
                or y > lane.y_max + SURELY_OFF
            ):
                continue
            outside = _outside(hull_edges, lane.hull_first, lane.hull_count, x, y)
            if outside < SURELY_ON:
                hits[slot, k] = True
            elif outside >= SURELY_OFF:
                continue
            elif lane.body == 0 or call.function == 0:
                doubtful[slot] = True
            elif lane.box_x_min <= x <= lane.box_x_max and lane.box_y_min <= y <= lane.box_y_max:
                hits[slot, k] = cast(call, x, y, ABOVE, x, y, BELOW, lane.body) < 1


@kernel
def _outside(hull_edges: Any, first: int, count: int, x: float, y: float) -> float:
    """Largest signed distance to the hull's edge lines: positive outside, and no larger than the true distance."""
    result = -1e9
    for k in range(first, first + count):
        edge = hull_edges[k]
        result = max(result, (x - edge.x) * edge.dy - (y - edge.y) * edge.dx)
    return result


@kernel
def localise(cars: Any, slots: IntArray, lanes: Any, hits: BoolArray, two: float) -> None:
    """NodeNetworkNavigation._update_current_lane with ray_localization's heading filter and sorting.

    A lane of the current road goes before one of the next road, and that before any other; among equals the nearest,
    and among equally near ones the one that Bullet reports first.
    """
    for slot in slots:
        car = cars[slot]
        car.on_lane = False
        best, best_class, best_distance = -1, 3, 0.0
        for k in range(len(lanes)):
            if not hits[slot, k]:
                continue
            car.on_lane = True
            lane = lanes[k]
            longitudinal, lateral = local_coordinates(lane, car.x, car.y, two)
            lane_heading = heading_at(lane, longitudinal)
            if math.cos(lane_heading) * car.heading_x + math.sin(lane_heading) * car.heading_y <= 0:
                continue
            if lane.road == car.current_road:
                rank = 0
            elif lane.road == car.next_road:
                rank = 1
            else:
                rank = 2
            away = distance(lane, longitudinal, lateral)
            if best < 0 or rank < best_class or (rank == best_class and away < best_distance):
                better = True
            else:
                better = rank == best_class and away == best_distance and lane.hit_rank < lanes[best].hit_rank
            if better:
                best, best_class, best_distance = k, rank, away
        if best >= 0:
            car.current_lane = best
