"""Frames of an episode: the map with its cars, the strip beside it, and the moments at which time stands still."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray
from maip3o.envs.driving.outcomes import ELIMINATED, Cause
from maip3o.video import palette
from maip3o.video.cars import draw_car, draw_ending, draw_label, ending_colour
from maip3o.video.footage import CAUSE_TEXT, STEP_SECONDS, Footage, Route
from maip3o.video.legend import WIDTH as LEGEND_WIDTH
from maip3o.video.legend import legend
from maip3o.video.scene import (
    SHIFT,
    Camera,
    draw_disc,
    draw_lidar,
    draw_map,
    draw_ring,
    draw_route,
    fill_box,
    road_surface,
)
from maip3o.video.strip import SUMMARY_HEIGHT, SUMMARY_WIDTH, Strip
from maip3o.video.text import Image, draw_text, text_width
from maip3o.video.view import View

FPS = 30
WIDTH, HEIGHT = 1280, 720
FREEZE_SECONDS = 0.8  # at a crash
HOLD_SECONDS = 1.5  # at the end
TRAIL_STEPS = 10
NOTICE_STEPS = 18  # how long a notice stays


class Scene:
    """One episode in one rectangle of pixels. `frame(time)` may be asked for any time in steps."""

    def __init__(
        self,
        footage: Footage,
        width: int = WIDTH,
        height: int = HEIGHT,
        focus: int | None = None,
        whole_map: bool = False,
    ) -> None:
        self.footage = footage
        self.focus = footage.focus() if focus is None else np.full(footage.steps, focus)  # [T]
        bounds = footage.tracks.road.bounds
        beside = Camera.framing(bounds, width - SUMMARY_WIDTH, height)
        below = Camera.framing(bounds, width, height - SUMMARY_HEIGHT)
        # The strip stands where the map stays larger; a tie goes to the side, where rows have more room.
        horizontal = below.scale > 1.05 * beside.scale
        map_width, map_height = (width, height - SUMMARY_HEIGHT) if horizontal else (width - SUMMARY_WIDTH, height)
        strip_size = (width, SUMMARY_HEIGHT) if horizontal else (SUMMARY_WIDTH, height)
        self.strip = Strip(footage, *strip_size, horizontal=horizontal)
        self._endings = footage.endings()
        self.view = View(footage, map_width, map_height, whole_map)
        self.camera = self.view.camera
        size = (self.view.map_width, self.view.map_height)
        self._map = draw_map(footage.tracks.road, self.camera, *size)
        self._surface = road_surface(footage.tracks.road, self.camera, *size)
        self._world = self._map.copy()
        self._legend = None if whole_map or map_width < 3 * LEGEND_WIDTH else legend(footage)
        self._canvas = np.zeros((height, width, 3), dtype=np.uint8)
        self._routes: tuple[tuple[int, ...], Image] | None = None
        self._placed: Image | None = None

    def frame(self, time: float, pulse: float = 0.0) -> Image:
        """The picture at `time` steps; `pulse` in [0, 1] is how far a freeze has come. Valid until the next call."""
        footage = self.footage
        step = min(int(time), footage.steps)
        world = self._world
        x, y = self.view.corner(time)
        window = np.s_[y : y + self.view.height, x : x + self.view.width]
        world[window] = self._with_routes(step)[window]  # what lies outside may stay as it was: it is not shown
        position, heading = self._poses(time)
        present = footage.tracks.present[step]
        status = self.strip.status[step]
        driving = footage.active[step] if step < footage.steps else np.zeros(footage.slots, dtype=bool)
        self._draw_lidar(world, step, position, heading, driving)
        self._draw_trails(world, step, position, driving)
        for slot in np.flatnonzero(present).tolist():
            colour = self._car_colour(slot, step)
            draw_car(world, self.camera, position[slot], heading[slot], colour, wreck=status[slot] in ELIMINATED)
        self._draw_endings(world, step)
        for slot in np.flatnonzero(present & driving).tolist():
            draw_label(world, self.camera, position[slot], slot, palette.agent_colour(slot))
        self._draw_pulses(world, time, pulse, position)
        picture = self._canvas[: self.view.height, : self.view.width]
        picture[:] = world[window]
        self._point_outside(picture, self.camera.pixels(position) - (x, y), driving & present)
        self._draw_notices(picture, time)
        if self._legend is not None:
            picture[-self._legend.shape[0] - 12 : -12, 12 : 12 + self._legend.shape[1]] = self._legend
        self._place_strip(step)
        return self._canvas

    def _car_colour(self, slot: int, step: int) -> palette.Colour:
        """What the cost critic predicts for the car; its agent's own colour where nothing is predicted."""
        risk = self.footage.risk[step, slot] if step < self.footage.steps else np.nan
        return palette.risk_colour(risk, self.footage.limit) if np.isfinite(risk) else palette.agent_colour(slot)

    @staticmethod
    def _point_outside(picture: Image, pixels: FloatArray, driving: BoolArray) -> None:
        """At the edge, the number of each car that drives outside of the picture."""
        height, width = picture.shape[:2]
        for slot in np.flatnonzero(driving).tolist():
            x, y = pixels[slot]
            if not (0 <= x < width and 0 <= y < height):
                edge = np.array([min(max(x, 14), width - 14), min(max(y, 14), height - 14)])
                draw_disc(picture, edge, 9, palette.agent_colour(slot))
                draw_text(picture, str(slot), edge[0], edge[1] - 7, 12, (12, 14, 18), bold=True, anchor="centre")

    def _place_strip(self, step: int) -> None:
        strip = self.strip.at(step)
        if strip is not self._placed:
            self._canvas[-strip.shape[0] :, -strip.shape[1] :] = strip
            self._placed = strip

    def _with_routes(self, step: int) -> Image:
        """The map with the routes of the cars that drive now; drawn anew only when that set changes."""
        routes = self._current_routes(step)
        key = tuple(id(route) for route in routes)
        if self._routes is None or self._routes[0] != key:
            image = self._map.copy()
            for route in routes:
                draw_route(image, self.camera, route.line, palette.agent_colour(route.slot))
            self._routes = (key, image)
        return self._routes[1]

    def _current_routes(self, step: int) -> list[Route]:
        if step >= self.footage.steps:
            return []
        latest = {route.slot: route for route in self.footage.tracks.routes if route.start <= step}
        return [latest[slot] for slot in sorted(latest) if self.footage.active[step, slot]]

    def _poses(self, time: float) -> tuple[FloatArray, FloatArray]:
        """Positions [A, 2] and headings [A] between two steps; a car that is new or gone in the next does not move."""
        tracks = self.footage.tracks
        step = min(int(time), self.footage.steps)
        after = min(step + 1, self.footage.steps)
        share = min(time, self.footage.steps) - step
        same = tracks.present[step] & tracks.present[after]
        move = tracks.position[after] - tracks.position[step]
        same &= np.abs(move).max(axis=-1) < 6.0  # farther than a car drives in a step: another car in this slot
        turn = (tracks.heading[after] - tracks.heading[step] + np.pi) % (2 * np.pi) - np.pi
        position = tracks.position[step] + np.where(same[:, None], share * move, 0.0)
        return position, tracks.heading[step] + np.where(same, share * turn, 0.0)

    def _draw_lidar(
        self, world: Image, step: int, position: FloatArray, heading: FloatArray, driving: BoolArray
    ) -> None:
        footage = self.footage
        if step >= footage.steps or not footage.lidar.shape[-1]:
            return
        slot = int(self.focus[step])
        if driving[slot]:
            colour = palette.agent_colour(slot)
            rays = footage.lidar[step, slot]
            draw_lidar(
                world, self.camera, self._surface, position[slot], heading[slot], rays, footage.lidar_range, colour
            )

    def _draw_trails(self, world: Image, step: int, position: FloatArray, driving: BoolArray) -> None:
        """A thin line along the last second."""
        tracks, start = self.footage.tracks, max(0, step - TRAIL_STEPS)
        thickness = max(1, round(0.25 * self.camera.scale))
        for slot in np.flatnonzero(driving).tolist():
            seen = tracks.present[start : step + 1, slot]
            points = np.concatenate([tracks.position[start : step + 1, slot][seen], position[slot : slot + 1]])
            colour = palette.mix(palette.agent_colour(slot), palette.ROAD, 0.25)
            cv2.polylines(world, [self.camera.fixed(points)], False, colour, thickness, cv2.LINE_AA, SHIFT)

    def _draw_endings(self, world: Image, step: int) -> None:
        for ended, slot, cause in self._endings:
            if ended < step:
                draw_ending(world, self.camera, self.footage.end_position(ended, slot), cause)

    def _draw_pulses(self, world: Image, time: float, pulse: float, position: FloatArray) -> None:
        """A ring that widens from a car that has just failed."""
        for ended, slot, cause in self._endings:
            age = (time - ended - 1) / 6.0 + pulse
            if cause in ELIMINATED and 0.0 <= age < 1.6:
                centre = self.camera.pixels(self.footage.end_position(ended, slot))
                for delay in (0.0, 0.35):
                    radius = 14 + 30 * (age - delay)
                    if age >= delay:
                        shade = palette.mix(palette.BAD, palette.ROAD, min(1.0, (age - delay) / 1.6))
                        draw_ring(world, centre, radius, shade, 2)

    def _draw_notices(self, world: Image, time: float) -> None:
        """Up to four lines in the corner: who ended how, the latest first."""
        recent = [e for e in self._endings if 0 <= time - e[0] - 1 < NOTICE_STEPS and e[2] != Cause.CUT]
        for line, (_, slot, cause) in enumerate(reversed(recent[-4:])):
            text = f"car {slot} {CAUSE_TEXT[cause]}"
            top = 14 + 34 * line
            width = text_width(text, 15, True) + 46
            fill_box(world, 14, top, width, 28, palette.mix(ending_colour(cause), palette.GROUND, 0.8))
            fill_box(world, 14, top, 4, 28, ending_colour(cause))
            draw_disc(world, np.array([33.0, top + 14.0]), 7, palette.agent_colour(slot))
            draw_text(world, text, 48, top + 5, 15, palette.TEXT, bold=True)


def moments(footage: Footage, fps: int = FPS, freeze: bool = True) -> Iterator[tuple[float, float]]:
    """(time in steps, pulse) of every frame at real-time speed, with a freeze at each crash and a hold at the end."""
    stops = [float(step + 1) for step in footage.crashes()] if freeze else []
    per_frame = 1.0 / (fps * STEP_SECONDS)
    total = round(footage.steps / per_frame)
    for index in range(total + 1):
        time = index * per_frame
        yield time, 0.0
        if stops and time >= stops[0] - 1e-9:
            stops.pop(0)
            count = round(FREEZE_SECONDS * fps)
            for frozen in range(1, count + 1):
                yield time, frozen / count
    for _ in range(round(HOLD_SECONDS * fps)):
        yield float(footage.steps), 1.0


def clip_frames(
    footage: Footage, width: int = WIDTH, height: int = HEIGHT, focus: int | None = None
) -> Iterator[Image]:
    """Every frame of one episode. The array is reused: copy it to keep it."""
    scene = Scene(footage, width, height, focus)
    for time, pulse in moments(footage):
        yield scene.frame(time, pulse)


def still(footage: Footage, time: float, width: int = 1200) -> Image:
    """The map alone at one moment, as wide as asked and as high as the map needs."""
    x_min, y_min, x_max, y_max = footage.tracks.road.bounds
    height = round(width * (y_max - y_min + 5.0) / (x_max - x_min + 5.0))
    scene = Scene(footage, width + SUMMARY_WIDTH, height, whole_map=True)
    return scene.frame(time)[:height, :width].copy()


def versus_frames(left: Footage, right: Footage, width: int = WIDTH, height: int = HEIGHT) -> Iterator[Image]:
    """Two policies on the same seed, side by side. No freezes: time must pass equally for both."""
    half = width // 2
    scenes = [Scene(left, half - 1, height), Scene(right, half - 1, height)]
    canvas = np.full((height, width, 3), palette.PANEL_LINE, dtype=np.uint8)
    longest = left if left.steps >= right.steps else right
    for time, _ in moments(longest, freeze=False):
        for scene, start in zip(scenes, (0, half + 1), strict=True):
            canvas[:, start : start + half - 1] = scene.frame(min(time, float(scene.footage.steps)))
        yield canvas
