"""Cars and what became of them: driving, wrecked, arrived."""

from __future__ import annotations

import cv2
import numpy as np

from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.outcomes import ELIMINATED, Cause
from maip3o.video import palette
from maip3o.video.footage import CAR_LENGTH, CAR_WIDTH
from maip3o.video.palette import Colour
from maip3o.video.scene import SHIFT, Camera, draw_disc, draw_ring
from maip3o.video.text import Image, draw_text

_HALF = np.array([CAR_LENGTH / 2, CAR_WIDTH / 2])
# Outline and windscreen in units of half a car, nose towards +x.
_BODY = np.array(
    [
        [-1, -0.8],
        [-0.93, -1],
        [0.7, -1],
        [0.95, -0.72],
        [1, -0.3],
        [1, 0.3],
        [0.95, 0.72],
        [0.7, 1],
        [-0.93, 1],
        [-1, 0.8],
    ]
)
_WINDSCREEN = np.array([[0.12, -0.78], [0.46, -0.62], [0.46, 0.62], [0.12, 0.78]])
_REAR_WINDOW = np.array([[-0.62, -0.62], [-0.44, -0.72], [-0.44, 0.72], [-0.62, 0.62]])
_SHAPE = np.concatenate([_BODY, _WINDSCREEN, _REAR_WINDOW]) * _HALF
_PARTS = np.cumsum([len(_BODY), len(_WINDSCREEN)])


def draw_car(
    image: Image, camera: Camera, position: FloatArray, heading: float, colour: Colour, *, wreck: bool
) -> None:
    """A car at its true size, windscreen towards its nose. A wreck loses its colour but keeps a tint of it."""
    body = palette.mix(colour, palette.WRECK, 0.8) if wreck else colour
    glass = palette.mix(body, (0, 0, 0), 0.72)
    cos, sin = np.cos(heading), np.sin(heading)
    placed = camera.fixed(position + _SHAPE @ np.array([[cos, sin], [-sin, cos]]))
    outline, *windows = np.split(placed, _PARTS)
    cv2.fillPoly(image, [outline], body, cv2.LINE_AA, SHIFT)
    cv2.fillPoly(image, windows, glass, cv2.LINE_AA, SHIFT)
    cv2.polylines(image, [outline], True, palette.BAD if wreck else (10, 12, 16), 1, cv2.LINE_AA, SHIFT)


def draw_label(image: Image, camera: Camera, position: FloatArray, slot: int, colour: Colour) -> None:
    """The agent's number: on the roof where there is room for it, else on a tag beside the car."""
    x, y = camera.pixels(position)
    if CAR_WIDTH * camera.scale >= 18:
        draw_disc(image, np.array([x, y]), 8.5, palette.mix(colour, (0, 0, 0), 0.8))
        draw_text(image, str(slot), x, y - 7, 12, (255, 255, 255), bold=True, anchor="centre")
        return
    tag = np.array([x + 12, y - 12])
    draw_disc(image, tag, 8.0, palette.mix(colour, (0, 0, 0), 0.78))
    draw_ring(image, tag, 8.0, colour, 1)
    draw_text(image, str(slot), tag[0] + 0.5, tag[1] - 6.5, 11, (255, 255, 255), bold=True, anchor="centre")


def draw_ending(image: Image, camera: Camera, position: FloatArray, cause: Cause) -> None:
    """The mark that stays where a life ended: a green tick, a red cross, an amber clock hand."""
    draw_ending_mark(image, camera.pixels(position), cause)


def draw_ending_mark(image: Image, centre: FloatArray, cause: Cause) -> None:
    x, y = centre
    colour = ending_colour(cause)
    size = 7.0
    draw_disc(image, np.array([x, y]), size + 2.5, palette.GROUND)
    draw_ring(image, np.array([x, y]), size + 1.5, colour, 2)
    for start, end in _strokes(cause):
        points = np.array([[x, y]]) + size * 0.55 * np.array([start, end])
        cv2.polylines(
            image, [np.rint((points - 0.5) * (1 << SHIFT)).astype(np.int32)], False, colour, 2, cv2.LINE_AA, SHIFT
        )


def ending_colour(cause: Cause) -> Colour:
    if cause == Cause.ARRIVED:
        return palette.GOOD
    return palette.BAD if cause in ELIMINATED else palette.WARN


def _strokes(cause: Cause) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    if cause == Cause.ARRIVED:
        return [((-1, 0.1), (-0.25, 0.8)), ((-0.25, 0.8), (1, -0.7))]
    if cause in ELIMINATED:
        return [((-0.8, -0.8), (0.8, 0.8)), ((-0.8, 0.8), (0.8, -0.8))]
    return [((0, -1), (0, 0)), ((0, 0), (0.8, 0.4))]
