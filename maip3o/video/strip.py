"""The strip beside the map: what the episode amounts to so far, and one row per car."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from maip3o.envs.driving.outcomes import ELIMINATED, Cause
from maip3o.video import palette
from maip3o.video.cars import ending_colour
from maip3o.video.footage import CAUSE_TEXT, STEP_SECONDS, Footage
from maip3o.video.palette import Colour
from maip3o.video.scene import draw_disc, fill_box
from maip3o.video.text import Image, draw_text, fit_text, text_width

SUMMARY_WIDTH, SUMMARY_HEIGHT = 340, 216  # pixels: the summary fits into this wherever it stands
ROW_HEIGHT, MIN_COLUMN = 44, 300  # at most, at least


class Strip:
    """Draws the strip of one episode; `horizontal` puts the cars to the right of the summary instead of below it."""

    def __init__(self, footage: Footage, width: int, height: int, horizontal: bool) -> None:
        self.footage, self.width, self.height, self.horizontal = footage, width, height, horizontal
        self.status = footage.status()
        active_cost = np.where(footage.active, footage.cost, 0.0)
        self._returns = np.pad(np.cumsum(np.where(footage.active, footage.reward, 0.0).sum(axis=1)), (1, 0))  # [T + 1]
        self._lives = np.pad(np.maximum(self._births(), 1), (0, 1), mode="edge")  # [T + 1]
        self._costs = np.pad(np.cumsum(active_cost.sum(axis=1)), (1, 0)) / self._lives  # [T + 1]
        self._blank = np.full((height, width, 3), palette.PANEL, dtype=np.uint8)
        self._last: tuple[int, Image] | None = None

    def _births(self) -> np.ndarray:
        """Lives begun by each step [T]."""
        active = self.footage.active
        ended_before = np.pad(self.footage.cause[:-1] != Cause.NONE, ((1, 0), (0, 0)))
        was_active = np.pad(active[:-1], ((1, 0), (0, 0)))
        return np.cumsum((active & (~was_active | ended_before)).sum(axis=1))

    def at(self, step: int) -> Image:
        """The strip as it stands before step `step`; the same array until another step is asked for."""
        if self._last is None or self._last[0] != step:
            image = self._blank.copy()
            self._draw_summary(image, step)
            self._draw_cars(image, step)
            self._last = (step, image)
        return self._last[1]

    def _draw_summary(self, image: Image, step: int) -> None:
        footage = self.footage
        summary = Summary(
            policy=footage.policy,
            scenario=footage.scenario,
            seed=footage.seed,
            seconds=step * STEP_SECONDS,
            progress=step / footage.steps,
            counts=self._counts(step),
            cost_label=f"{footage.constraint} cost per car",
            cost=float(self._costs[step]),
            limit=footage.limit,
            decimals=2,
            full=1.0 if np.isnan(footage.limit) else max(1.0, footage.limit),
        )
        draw_summary(image, min(self.width, SUMMARY_WIDTH), summary)

    def _counts(self, step: int) -> list[tuple[str, str, Colour]]:
        ended = self.footage.cause[:step]
        arrived = int(np.sum(ended == Cause.ARRIVED))
        failed = int(np.isin(ended, ELIMINATED).sum())
        driving = int(self.footage.active[step].sum()) if step < self.footage.steps else 0
        return [
            (f"{self._returns[step]:.0f}", "return", palette.TEXT),
            (str(driving), "driving", palette.TEXT),
            (str(arrived), "arrived", palette.GOOD if arrived else palette.TEXT_DIM),
            (str(failed), "eliminated", palette.BAD if failed else palette.TEXT_DIM),
        ]

    def _draw_cars(self, image: Image, step: int) -> None:
        slots = self.footage.slots
        left = SUMMARY_WIDTH if self.horizontal else 0
        top = 14 if self.horizontal else SUMMARY_HEIGHT
        rows = max(1, (self.height - top - 24) // 34)
        columns = max(1, min((self.width - left) // MIN_COLUMN, -(-slots // rows)))
        rows = -(-slots // columns)
        pitch = min(ROW_HEIGHT, (self.height - top - 30) / rows)
        width = (self.width - left) // columns
        for column in range(columns):
            x = left + column * width
            draw_text(image, "car", x + 20, top, 12, palette.TEXT_DIM)
            draw_text(image, "predicted cost", x + width - 20, top, 12, palette.TEXT_DIM, anchor="right")
        for slot in range(slots):
            column, row = divmod(slot, rows)
            self._draw_car(image, slot, step, left + column * width, top + 22 + row * pitch, width, pitch)

    def _draw_car(self, image: Image, slot: int, step: int, x: float, y: float, width: float, pitch: float) -> None:
        footage, cause = self.footage, Cause(int(self.status[step, slot]))
        colour = palette.agent_colour(slot)
        size = 13 if pitch >= 24 else 11
        middle = y + pitch / 2
        draw_disc(image, np.array([x + 31, middle]), min(11.0, pitch * 0.42), colour)
        draw_text(image, str(slot), x + 31, middle - size * 0.6, size, (12, 14, 18), bold=True, anchor="centre")
        driving = cause == Cause.NONE and step < footage.steps and bool(footage.active[step, slot])
        text = f"{3.6 * footage.tracks.speed[step, slot]:.0f} km/h" if driving else CAUSE_TEXT[cause]
        shade = palette.TEXT if driving else ending_colour(cause)
        draw_text(image, text, x + 52, middle - size * 0.62, size, shade, bold=not driving)
        risk = float(footage.risk[step, slot]) if driving else np.nan
        if np.isfinite(risk):
            end = x + width - 20
            number = f"{max(risk, 0.0):.2f}"
            tone = palette.risk_colour(risk, footage.limit)
            draw_text(image, number, end, middle - size * 0.62, size, tone, anchor="right")
            bar_right = end - text_width("0.00", size) - 10
            bar_left = max(x + 150, bar_right - 110)
            _bar(image, bar_left, bar_right, middle - 3, 7, risk, tone)
            _tick(image, bar_left + (bar_right - bar_left) * min(footage.limit, 1.0), middle - 6, middle + 7)


@dataclass(slots=True)
class Summary:
    """What an episode amounts to so far."""

    policy: str
    scenario: str
    seed: int
    seconds: float
    progress: float  # of the episode, in [0, 1]
    counts: list[tuple[str, str, Colour]]  # number, label, colour
    cost_label: str
    cost: float
    limit: float  # NaN if there is none
    decimals: int  # of cost and limit
    full: float  # cost at which its bar is full


def draw_summary(image: Image, width: int, summary: Summary) -> None:
    """The head of a strip, `width` wide and SUMMARY_HEIGHT high."""
    left, right = 20, width - 20
    policy = summary.policy
    size = next((s for s in range(20, 12, -1) if text_width(policy, s, True) <= right - left), 13)
    draw_text(image, fit_text(policy, size, right - left, True), left, 16, size, palette.TEXT, bold=True)
    subtitle = f"{summary.scenario.replace('_', ' ')}  ·  seed {summary.seed}"
    draw_text(image, fit_text(subtitle, 13, right - left - 60), left, 44, 13, palette.TEXT_DIM)
    draw_text(image, f"{summary.seconds:.1f} s", right, 41, 16, palette.TEXT, bold=True, anchor="right")
    _bar(image, left, right, 70, 4, summary.progress, palette.TEXT_DIM)

    for column, (number, label, colour) in enumerate(summary.counts):
        x = left + column * (right - left) / len(summary.counts)
        draw_text(image, number, x, 84, 24, colour, bold=True)
        draw_text(image, label, x, 116, 12, palette.TEXT_DIM)

    tone = palette.BAD if summary.cost > summary.limit else palette.GOOD
    draw_text(image, summary.cost_label, left, 144, 13, palette.TEXT_DIM)
    number = f"{summary.cost:.{summary.decimals}f}"
    draw_text(image, number, right - 78, 141, 16, tone, bold=True, anchor="right")
    _bar(image, left, right, 168, 10, summary.cost / summary.full, tone)
    if np.isfinite(summary.limit):
        limit = f"limit {summary.limit:.{summary.decimals}f}"
        draw_text(image, limit, right, 144, 13, palette.TEXT_DIM, anchor="right")
        _tick(image, left + (right - left) * summary.limit / summary.full, 163, 183)


def _bar(image: Image, left: float, right: float, top: float, height: int, share: float, colour: Colour) -> None:
    x0, x1, y0 = round(left), round(right), round(top)
    fill_box(image, x0, y0, x1 - x0, height, palette.PANEL_LINE)
    fill_box(image, x0, y0, round((x1 - x0) * min(max(share, 0.0), 1.0)), height, colour)


def _tick(image: Image, x: float, top: float, bottom: float) -> None:
    cv2.line(image, (round(x), round(top)), (round(x), round(bottom)), palette.TEXT, 1)
