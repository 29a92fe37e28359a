"""The world seen from above: the map drawn once, then cars, routes, lidar and marks on a copy of it for every frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from maip3o.envs.contract import FloatArray, IntArray
from maip3o.envs.driving.views import RoadMap
from maip3o.video import palette
from maip3o.video.palette import Colour
from maip3o.video.text import Image

SHIFT = 4  # fractional bits of OpenCV's coordinates: positions are drawn to 1/16 pixel
SUPERSAMPLE = 3  # the map is drawn this much larger, then reduced: thin lines stay crisp
MOST_SUPERSAMPLED = 8_000_000  # pixels of a map: beyond that the large picture would need a gigabyte
DASH, GAP = 3.0, 4.5  # metres of a broken line


@dataclass(frozen=True, slots=True)
class Camera:
    """World metres (x right, y up) to pixels (x right, y down)."""

    scale: float  # pixels per metre
    left: float  # world x at pixel 0
    top: float  # world y at pixel 0

    @staticmethod
    def framing(bounds: tuple[float, float, float, float], width: int, height: int, margin: float = 2.5) -> Camera:
        x_min, y_min, x_max, y_max = bounds
        scale = min(width / (x_max - x_min + 2 * margin), height / (y_max - y_min + 2 * margin))
        return Camera(scale, (x_min + x_max) / 2 - width / scale / 2, (y_min + y_max) / 2 + height / scale / 2)

    @staticmethod
    def at_scale(scale: float, bounds: tuple[float, float, float, float], margin: float = 2.5) -> Camera:
        return Camera(scale, bounds[0] - margin, bounds[3] + margin)

    def pixels(self, points: FloatArray) -> FloatArray:
        """[..., 2] metres -> [..., 2] pixels."""
        return (points - (self.left, self.top)) * (self.scale, -self.scale)

    def fixed(self, points: FloatArray) -> IntArray:
        """Pixels as OpenCV's fixed-point integers. OpenCV counts from pixel centres, hence the half."""
        return np.rint((self.pixels(points) - 0.5) * (1 << SHIFT)).astype(np.int32)


def draw_map(road: RoadMap, camera: Camera, width: int, height: int) -> Image:
    """The static picture: drivable surface, kerbs and lane markings."""
    finer = SUPERSAMPLE if width * height < MOST_SUPERSAMPLED else 1
    large = Camera(camera.scale * finer, camera.left, camera.top)
    image = np.full((height * finer, width * finer, 3), palette.GROUND, dtype=np.uint8)
    outlines = [large.fixed(lane) for lane in road.lanes]
    kerb = max(2, round(0.9 * large.scale))
    for outline in outlines:
        cv2.polylines(image, [outline], True, palette.ROAD_EDGE, kerb, cv2.LINE_AA, SHIFT)
    for outline in outlines:
        cv2.fillPoly(image, [outline], palette.ROAD, cv2.LINE_AA, SHIFT)
        # Neighbouring lanes leave a hair between their anti-aliased edges: close it in the road's colour.
        cv2.polylines(image, [outline], True, palette.ROAD, 2, cv2.LINE_AA, SHIFT)
    thickness = max(finer, round(0.18 * large.scale))
    for line, kind in road.lines:
        colour = palette.LINE_YELLOW if kind == "yellow" else palette.LINE_WHITE
        for piece in _dashes(line) if kind == "white_broken" else [line]:
            cv2.polylines(image, [large.fixed(piece)], False, colour, thickness, cv2.LINE_AA, SHIFT)
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _dashes(line: FloatArray) -> list[FloatArray]:
    """Cut a polyline into dashes of DASH metres with GAP metres between them."""
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    pieces = []
    for start in np.arange(0.0, lengths[-1], DASH + GAP):
        along = np.linspace(start, min(start + DASH, lengths[-1]), 5)
        pieces.append(np.stack([np.interp(along, lengths, line[:, axis]) for axis in (0, 1)], axis=-1))
    return pieces


def draw_route(image: Image, camera: Camera, line: FloatArray, colour: Colour) -> None:
    """A car's way and its destination: a faint line that ends in a ring with a dot."""
    if len(line) < 2:
        return
    faint = palette.mix(colour, palette.ROAD, 0.5)
    cv2.polylines(image, [camera.fixed(line)], False, faint, max(2, round(0.2 * camera.scale)), cv2.LINE_AA, SHIFT)
    radius = max(6.5, 1.0 * camera.scale)
    draw_disc(image, camera.pixels(line[-1]), radius + 2, palette.GROUND)
    draw_ring(image, camera.pixels(line[-1]), radius, colour, 2)
    draw_disc(image, camera.pixels(line[-1]), radius * 0.45, colour)


def draw_disc(image: Image, centre: FloatArray, radius: float, colour: Colour) -> None:
    cv2.circle(image, _centre(centre), round(radius * (1 << SHIFT)), colour, -1, cv2.LINE_AA, SHIFT)


def draw_ring(image: Image, centre: FloatArray, radius: float, colour: Colour, thickness: int) -> None:
    cv2.circle(image, _centre(centre), round(radius * (1 << SHIFT)), colour, thickness, cv2.LINE_AA, SHIFT)


def fill_box(image: Image, left: int, top: int, width: int, height: int, colour: Colour) -> None:
    """A filled rectangle of whole pixels; nothing if it has no area. Far faster than assigning a colour in NumPy."""
    if width > 0 and height > 0:
        cv2.rectangle(image, (left, top), (left + width - 1, top + height - 1), colour, -1)


def _centre(pixel: FloatArray) -> tuple[int, int]:
    return round((float(pixel[0]) - 0.5) * (1 << SHIFT)), round((float(pixel[1]) - 0.5) * (1 << SHIFT))


def draw_lidar(
    image: Image,
    camera: Camera,
    surface: Image,
    position: FloatArray,
    heading: float,
    rays: FloatArray,
    reach: float,
    colour: Colour,
) -> None:
    """What a car's lidar sees: the free road tinted, a dot where a ray ends on something.

    surface: [height, width] 255 where there is road; rays: [L] shares of `reach`.
    """
    angle = heading + np.arange(len(rays)) * (2 * np.pi / len(rays))
    ends = position + (rays * reach)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    pixels = camera.pixels(ends)
    low = np.maximum(np.floor(pixels.min(axis=0)).astype(int) - 2, 0)
    high = np.minimum(np.ceil(pixels.max(axis=0)).astype(int) + 3, [image.shape[1], image.shape[0]])
    if np.any(low >= high):
        return
    window = np.s_[low[1] : high[1], low[0] : high[0]]
    mask = np.zeros((high[1] - low[1], high[0] - low[0]), dtype=np.uint8)
    outline = np.rint((pixels - low - 0.5) * (1 << SHIFT)).astype(np.int32)
    cv2.fillPoly(mask, [outline], 255, cv2.LINE_AA, SHIFT)
    region = image[window]
    # OpenCV takes a colour for the second array; its type stubs do not know that.
    light: Any = (*(0.16 * part for part in colour), 0.0)
    lit = cv2.add(cv2.convertScaleAbs(region, alpha=0.84), light)
    cv2.copyTo(lit, cv2.bitwise_and(mask, surface[window]), region)
    for pixel in pixels[rays < 0.999]:
        draw_disc(image, pixel, 2.2, palette.mix(colour, palette.TEXT, 0.5))


def road_surface(road: RoadMap, camera: Camera, width: int, height: int) -> Image:
    """[height, width] 255 where cars may drive."""
    surface = np.zeros((height, width), dtype=np.uint8)
    for lane in road.lanes:
        cv2.fillPoly(surface, [camera.fixed(lane)], 255, cv2.LINE_8, SHIFT)
    return surface
