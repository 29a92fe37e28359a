"""The plan of a robot's flat world, drawn."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.envs.robots.views import HEIGHT, WIDTH, Plan
from maip3o.video import palette
from maip3o.video.palette import Colour, mix
from maip3o.video.scene import SHIFT, Camera
from maip3o.video.text import Image

GRID = 2.0  # metres between the lines on the floor
MARGIN = 0.5  # metres around the bounds


def plan_colours() -> dict[str, Colour]:
    """By kind of shape, in the theme that is used now."""
    return {
        "floor": palette.ROAD,
        "zone": mix(palette.agent_colour(6), palette.ROAD, 0.75),
        "line": palette.LINE_YELLOW,
        "hazard": mix(palette.BAD, palette.ROAD, 0.45),
        "goal": palette.GOOD,
        "box": palette.WARN,
        "robot": palette.agent_colour(0),
    }


def draw_plan(plan: Plan, trail: Sequence[FloatArray]) -> Image:
    """[HEIGHT, WIDTH, 3]; `trail` are places [2] where the robot has just been."""
    camera = Camera.framing(plan.bounds, WIDTH, HEIGHT, MARGIN)
    colours = plan_colours()
    image = np.full((HEIGHT, WIDTH, 3), palette.GROUND, dtype=np.uint8)
    for shape in plan.shapes:
        if shape.kind == "robot" and len(trail) > 1:
            colour = mix(palette.agent_colour(0), palette.ROAD, 0.4)
            cv2.polylines(image, [camera.fixed(np.array(trail))], False, colour, 3, cv2.LINE_AA, SHIFT)
        outline = camera.fixed(shape.outline)
        cv2.fillPoly(image, [outline], colours[shape.kind], cv2.LINE_AA, SHIFT)
        if shape.kind == "floor":
            _draw_grid(image, camera, plan, outline)
        elif shape.kind != "zone":
            edge = mix(colours[shape.kind], (0, 0, 0), 0.45)
            cv2.polylines(image, [outline], True, edge, 2, cv2.LINE_AA, SHIFT)
    _draw_nose(image, camera, plan.shapes[-1].outline)
    return image


def _draw_grid(image: Image, camera: Camera, plan: Plan, floor: IntArray) -> None:
    """Thin lines on the floor alone, so that motion shows where nothing else stands."""
    x_min, y_min, x_max, y_max = (side + pad for side, pad in zip(plan.bounds, (-9.0, -9.0, 9.0, 9.0), strict=True))
    upright = [np.array([[x, y_min], [x, y_max]]) for x in np.arange(np.ceil(x_min / GRID) * GRID, x_max, GRID)]
    level = [np.array([[x_min, y], [x_max, y]]) for y in np.arange(np.ceil(y_min / GRID) * GRID, y_max, GRID)]
    lines = image.copy()
    for line in [*upright, *level]:
        cv2.polylines(lines, [camera.fixed(line)], False, palette.ROAD_EDGE, 1, cv2.LINE_AA, SHIFT)
    mask = np.zeros(image.shape[:2], np.uint8)
    cv2.fillPoly(mask, [floor], 255, cv2.LINE_8, SHIFT)
    cv2.copyTo(lines, mask, image)


def _draw_nose(image: Image, camera: Camera, outline: FloatArray) -> None:
    """A car, whose outline has four corners, the first and last in front: a windscreen."""
    if len(outline) != 4:
        return
    front, back = outline[[0, 3]], outline[[1, 2]]
    screen = np.concatenate([0.75 * front + 0.25 * back, (0.45 * front + 0.55 * back)[::-1]])
    colour = mix(palette.agent_colour(0), (0, 0, 0), 0.7)
    cv2.fillPoly(image, [camera.fixed(screen)], colour, cv2.LINE_AA, SHIFT)
