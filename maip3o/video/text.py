"""Crisp text on frames: TrueType glyphs (the font that matplotlib ships), rendered once per string and blended."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import ImageFont

from maip3o.video.palette import Colour

Image = NDArray[np.uint8]  # [height, width, 3] RGB


@lru_cache(maxsize=32)
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


@lru_cache(maxsize=8192)
def _mask(text: str, size: int, bold: bool) -> tuple[NDArray[np.float32], int]:
    """Coverage [h, w, 1] of the text and its offset below the top of the line."""
    font = _font(size, bold)
    left, top, right, bottom = font.getbbox(text)
    if right <= left or bottom <= top:
        return np.zeros((1, 1, 1), dtype=np.float32), 0
    bitmap = font.getmask(text, mode="L")
    width, height = bitmap.size
    return np.asarray(bitmap, dtype=np.float32).reshape(height, width, 1) / 255.0, int(top)


@lru_cache(maxsize=8192)
def text_width(text: str, size: int, bold: bool = False) -> int:
    return int(_font(size, bold).getlength(text))


def fit_text(text: str, size: int, width: int, bold: bool = False) -> str:
    """`text`, shortened with an ellipsis until it is at most `width` pixels wide."""
    if text_width(text, size, bold) <= width:
        return text
    while text and text_width(text + "…", size, bold) > width:
        text = text[:-1]
    return text + "…"


def draw_text(
    image: Image, text: str, x: float, y: float, size: int, colour: Colour, *, bold: bool = False, anchor: str = "left"
) -> None:
    """Blend one line of text; (x, y) is its top at the left end, the centre or the right end. Clipped at the edges."""
    mask, top = _mask(text, size, bold)
    width = text_width(text, size, bold)
    left = round(x) - {"left": 0, "centre": width // 2, "right": width}[anchor]
    upper = round(y) + top
    x0, y0 = max(left, 0), max(upper, 0)
    x1, y1 = min(left + mask.shape[1], image.shape[1]), min(upper + mask.shape[0], image.shape[0])
    if x0 >= x1 or y0 >= y1:
        return
    coverage = mask[y0 - upper : y1 - upper, x0 - left : x1 - left]
    target = image[y0:y1, x0:x1]
    target[:] = target + coverage * (np.asarray(colour, dtype=np.float32) - target)
