"""Frames of a robot's episode: its picture, and beside it the strip with its cost, the limit and the predicted cost.

Axis letters: T steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray
from maip3o.envs.robots.views import HEIGHT, WIDTH
from maip3o.policy import Policy
from maip3o.video import palette
from maip3o.video.palette import Colour
from maip3o.video.robot_recording import RobotRecording
from maip3o.video.scene import fill_box
from maip3o.video.strip import SUMMARY_HEIGHT, SUMMARY_WIDTH, Summary, draw_summary
from maip3o.video.text import Image, draw_text

SECONDS = 20.0  # of a film at most, and of an episode that takes longer
MOST_FPS = 25
HOLD_SECONDS = 1.5  # at the end
GRAPH_TOP, GRAPH_GAP = 26, 14  # pixels of a graph's heading, and between two graphs


@dataclass(slots=True)
class RobotFootage:
    """One episode of a robot, ready to be drawn."""

    policy: str
    scenario: str
    recording: RobotRecording
    ending: str  # how the life ended, for people
    constraint: str  # the first; empty if there is none
    limit: float  # NaN if there is none
    reward: FloatArray  # [T]
    cost: FloatArray  # [T] of the constraint
    risk: FloatArray  # [T] the cost critic's prediction of what is to come, discounted

    @property
    def steps(self) -> int:
        return len(self.reward)

    @property
    def fps(self) -> int:
        """Pictures per second: real time where that is not slower than SECONDS for the whole."""
        recording = self.recording
        real = 1.0 / (recording.every * recording.step_seconds)
        return int(min(MOST_FPS, max(round(real), round(len(recording.views) / SECONDS), 1)))


def make_robot_footage(policy: Policy, scenario: ScenarioConfig, recording: RobotRecording) -> RobotFootage:
    episode = recording.episode
    constraint = next(iter(policy.config.constraints), "")
    outcome = episode.world.outcomes[int(episode.outcome[-1, 0])]
    nothing = np.full(episode.length, np.nan)
    return RobotFootage(
        policy=policy.name,
        scenario=scenario.name,
        recording=recording,
        ending=outcome.label or outcome.name,
        constraint=constraint,
        limit=policy.config.constraints[constraint].limit if constraint else float("nan"),
        reward=episode.reward[:, 0].astype(np.float64),
        cost=episode.cost[:, 0, 0].astype(np.float64) if constraint else np.zeros(episode.length),
        risk=policy.predicted_costs(episode, constraint)[:, 0] if constraint else nothing,
    )


def robot_frames(footage: RobotFootage) -> Iterator[Image]:
    """Every frame [HEIGHT, WIDTH + SUMMARY_WIDTH, 3]. The array is reused: copy it to keep it."""
    strip = RobotStrip(footage)
    canvas = np.zeros((HEIGHT, WIDTH + SUMMARY_WIDTH, 3), dtype=np.uint8)
    last = len(footage.recording.views) - 1
    for index in range(last + 1):
        step = min(index * footage.recording.every, footage.steps)
        canvas[:, :WIDTH] = footage.recording.picture(index)
        recent = footage.cost[max(0, step - footage.recording.every) : step]
        if recent.any():  # the step that costs
            cv2.rectangle(canvas, (3, 3), (WIDTH - 4, HEIGHT - 4), palette.BAD, 7)
        if index == last:
            _draw_ending(canvas, footage.ending)
        canvas[:, WIDTH:] = strip.at(step)
        yield canvas
    for _ in range(round(HOLD_SECONDS * footage.fps)):
        yield canvas


def _draw_ending(canvas: Image, ending: str) -> None:
    fill_box(canvas, 14, 14, 16 + 9 * len(ending), 30, palette.PANEL)
    draw_text(canvas, ending, 24, 20, 15, palette.TEXT, bold=True)


class RobotStrip:
    """The summary, and three graphs that grow with the episode."""

    def __init__(self, footage: RobotFootage) -> None:
        self.footage = footage
        self._returns = np.pad(np.cumsum(footage.reward), (1, 0))  # [T + 1]
        self._costs = np.pad(np.cumsum(footage.cost), (1, 0))  # [T + 1]
        self._blank = np.full((HEIGHT, SUMMARY_WIDTH, 3), palette.PANEL, dtype=np.uint8)

    def at(self, step: int) -> Image:
        """The strip before step `step`."""
        image = self._blank.copy()
        draw_summary(image, SUMMARY_WIDTH, self._summary(step))
        graphs = [
            (
                f"{_cost_label(self.footage)} so far",
                self._costs[: step + 1],
                self._costs,
                self.footage.limit,
                palette.WARN,
            ),
            ("predicted cost to come", self.footage.risk[:step], self.footage.risk, np.nan, palette.agent_colour(3)),
            ("return so far", self._returns[: step + 1], self._returns, np.nan, palette.agent_colour(0)),
        ]
        height = (HEIGHT - SUMMARY_HEIGHT - 20) // len(graphs) - GRAPH_GAP
        for row, (label, shown, whole, limit, colour) in enumerate(graphs):
            top = SUMMARY_HEIGHT + 6 + row * (height + GRAPH_GAP)
            _draw_graph(image, top, height, label, shown, whole, limit, colour)
        return image

    def _summary(self, step: int) -> Summary:
        footage = self.footage
        risk = footage.risk[min(step, footage.steps - 1)]
        speed = footage.fps * footage.recording.every * footage.recording.step_seconds
        limit = footage.limit
        return Summary(
            policy=footage.policy,
            scenario=footage.scenario,
            seed=footage.recording.episode.seed,
            seconds=step * footage.recording.step_seconds,
            progress=step / footage.steps,
            counts=[
                (f"{self._returns[step]:.1f}", "return", palette.TEXT),
                ("-" if np.isnan(risk) else f"{max(risk, 0.0):.1f}", "predicted cost", palette.TEXT),
                (f"{speed:.3g}x", "speed of film", palette.TEXT_DIM),
            ],
            cost_label=_cost_label(footage),
            cost=float(self._costs[step]),
            limit=limit,
            decimals=0,
            full=max(1.0, 2.0 * limit) if np.isfinite(limit) else max(1.0, float(self._costs[-1])),
        )


def _cost_label(footage: RobotFootage) -> str:
    return footage.constraint if footage.constraint in ("", "cost") else f"{footage.constraint} cost"


def _draw_graph(
    image: Image,
    top: int,
    height: int,
    label: str,
    shown: FloatArray,
    whole: FloatArray,
    limit: float,
    colour: Colour,
) -> None:
    """A curve up to now, in the scale of the whole episode; a dashed line at the limit."""
    left, right = 20, SUMMARY_WIDTH - 20
    draw_text(image, label, left, top, 13, palette.TEXT_DIM)
    if not np.isfinite(whole).any():
        return
    marks = [0.0, *whole[np.isfinite(whole)], *([limit * 1.15] if np.isfinite(limit) else [])]
    low, high = min(marks), max(marks) + 1e-9
    upper, lower = top + GRAPH_TOP, top + height
    fill_box(image, left, upper, right - left, lower - upper, palette.GROUND)

    def row_of(value: float) -> float:
        return lower - 4 - (value - low) / (high - low) * (lower - upper - 8)

    if np.isfinite(limit):
        for x in range(left, right, 12):
            cv2.line(image, (x, round(row_of(limit))), (x + 6, round(row_of(limit))), palette.BAD, 2)
    if len(shown) > 1:
        across = left + np.arange(len(shown)) * (right - left) / max(len(whole) - 1, 1)
        points = np.stack([across, [row_of(value) for value in shown]], axis=-1)
        cv2.polylines(image, [np.rint(points).astype(np.int32)], False, colour, 2, cv2.LINE_AA)
        draw_text(image, f"{shown[-1]:.1f}", right, top, 13, colour, bold=True, anchor="right")
