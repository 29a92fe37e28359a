"""The legend of a film: every mark with a word, and the scale of the cars' colour."""

from __future__ import annotations

import cv2
import numpy as np

from maip3o.envs.driving.outcomes import Cause
from maip3o.video import palette
from maip3o.video.cars import draw_ending_mark
from maip3o.video.footage import Footage
from maip3o.video.scene import draw_disc, draw_ring, fill_box
from maip3o.video.text import Image, draw_text

ROW, WIDTH = 19, 216
BAR = 150  # pixels of the scale


def legend(footage: Footage) -> Image:
    """[height, WIDTH, 3]. The scale is left out where no critic predicts."""
    predicted = bool(np.isfinite(footage.risk).any())
    rows = [Cause.ARRIVED, Cause.CRASH_VEHICLE, Cause.TIME_OUT]
    image = np.full((ROW * 8 + 12 + (44 if predicted else 0), WIDTH, 3), palette.PANEL, dtype=np.uint8)
    colour = palette.agent_colour(0)
    top = 6
    cv2.line(image, (10, top + 9), (26, top + 9), palette.mix(colour, palette.ROAD, 0.5), 2, cv2.LINE_AA)
    draw_ring(image, np.array([32.0, top + 9.0]), 5, colour, 2)
    draw_disc(image, np.array([32.0, top + 9.0]), 2.2, colour)
    _word(image, "route and destination", top)
    top += ROW
    cv2.line(image, (14, top + 9), (34, top + 9), palette.mix(colour, palette.ROAD, 0.25), 3, cv2.LINE_AA)
    _word(image, "way of the last second", top)
    top += ROW
    draw_disc(image, np.array([24.0, top + 9.0]), 8, colour)
    draw_text(image, "0", 24.5, top + 3, 11, (12, 14, 18), bold=True, anchor="centre")
    _word(image, "car outside of the picture", top)
    top += ROW
    fill_box(image, 10, top + 4, 28, 10, palette.mix(palette.ROAD, colour, 0.25))
    _word(image, "free road in a car's lidar", top)
    top += ROW
    for x in (16.0, 24.0, 32.0):
        draw_disc(image, np.array([x, top + 9.0]), 2.2, palette.mix(colour, palette.TEXT, 0.5))
    _word(image, "lidar meets something", top)
    for cause, text in zip(rows, ("arrived", "eliminated", "timed out"), strict=True):
        top += ROW
        draw_ending_mark(image, np.array([24.0, top + 9.0]), cause)
        _word(image, text, top)
    if predicted:
        _scale(image, top + ROW + 4, footage)
    return image


def _word(image: Image, text: str, top: int) -> None:
    draw_text(image, text, 48, top + 2, 12, palette.TEXT_DIM)


def _scale(image: Image, top: int, footage: Footage) -> None:
    """The colours of predicted costs from 0 to three times the limit."""
    draw_text(image, f"predicted {footage.constraint} cost", 10, top, 12, palette.TEXT_DIM)
    most = 3.0 * footage.limit if footage.limit > 0 else 1.0
    for x in range(BAR):
        fill_box(image, 10 + x, top + 17, 1, 8, palette.risk_colour(most * x / BAR, footage.limit))
    for share, text in ((0.0, "0"), (1 / 3, f"limit {footage.limit:.2g}"), (1.0, f"{most:.2g}")):
        anchor = "left" if share == 0 else "centre"
        draw_text(image, text, 10 + BAR * share, top + 26, 11, palette.TEXT_DIM, anchor=anchor)
