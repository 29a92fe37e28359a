"""Which part of the map a film shows: cars large enough to be seen, the picture where most of them are."""

from __future__ import annotations

import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray
from maip3o.video.footage import CAR_LENGTH, Footage
from maip3o.video.scene import Camera

CAR_PIXELS = 42.0  # at least, of a car's length
SMOOTH_STEPS = 25  # to either side: the camera glides


class View:
    """A window of width x height pixels that glides over the drawn map after the cars that drive."""

    def __init__(self, footage: Footage, width: int, height: int, whole_map: bool = False) -> None:
        bounds = footage.tracks.road.bounds
        fit = Camera.framing(bounds, width, height)
        scale = fit.scale if whole_map else max(fit.scale, CAR_PIXELS / CAR_LENGTH)
        self.width, self.height = width, height
        if scale == fit.scale:
            self.camera, self.map_width, self.map_height = fit, width, height
        else:
            margin = 2.5
            self.camera = Camera.at_scale(scale, bounds, margin)
            self.map_width = max(width, round((bounds[2] - bounds[0] + 2 * margin) * scale))
            self.map_height = max(height, round((bounds[3] - bounds[1] + 2 * margin) * scale))
        room = np.array([self.map_width - width, self.map_height - height])
        corner = self.camera.pixels(_centres(footage, np.array([width, height]) / scale)) - (width / 2, height / 2)
        self._corner = np.clip(corner, 0, room)  # [T + 1, 2] pixels

    def corner(self, time: float) -> tuple[int, int]:
        """(x, y) of the window at `time` steps, in pixels of the map."""
        steps = np.arange(len(self._corner))
        x, y = (round(float(np.interp(time, steps, self._corner[:, axis]))) for axis in (0, 1))
        return x, y


def _centres(footage: Footage, size: FloatArray) -> FloatArray:
    """[T + 1, 2] metres: where a picture of `size` metres shows the cars that drive, smoothed over time."""
    position, acting = footage.tracks.position, np.concatenate([footage.active, footage.active[-1:]])
    centres = np.zeros((len(acting), 2))
    for step, driving in enumerate(acting):
        if driving.any():
            centres[step] = _centre(position[step, driving], size)
        elif step > 0:
            centres[step] = centres[step - 1]
    padded = np.pad(centres, ((SMOOTH_STEPS, SMOOTH_STEPS), (0, 0)), mode="edge")
    window = np.hanning(2 * SMOOTH_STEPS + 3)[1:-1]
    window /= window.sum()
    return np.stack([np.convolve(padded[:, axis], window, mode="valid") for axis in (0, 1)], axis=-1)


def _centre(cars: FloatArray, size: FloatArray) -> FloatArray:
    """The middle of the cars [n, 2]; if less than half of them are seen from there, of those around one of them."""
    middle: FloatArray = cars.mean(axis=0)
    if 2 * _seen(cars, middle, size).sum() >= len(cars):
        return middle
    fullest = max(cars, key=lambda car: int(_seen(cars, car, size).sum()))
    around: FloatArray = cars[_seen(cars, fullest, size)].mean(axis=0)
    return around


def _seen(cars: FloatArray, centre: FloatArray, size: FloatArray) -> BoolArray:
    return np.asarray(np.all(np.abs(cars - centre) < size / 2, axis=-1))
