"""Everything that a video or a replay shows of one episode, as plain arrays.

Axis letters: T steps, A agent slots, L lidar rays. Arrays of states have T + 1 rows: row t is the world before step t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray, IntArray
from maip3o.envs.driving.outcomes import ELIMINATED, Cause
from maip3o.envs.driving.views import RoadMap

STEP_SECONDS = 0.1  # of simulated time
CAR_LENGTH, CAR_WIDTH = 4.515, 1.852  # metres, MetaDrive's default vehicle

CAUSE_TEXT = {
    Cause.NONE: "driving",
    Cause.ARRIVED: "arrived",
    Cause.CRASH_VEHICLE: "hit a car",
    Cause.CRASH_OBJECT: "hit an object",
    Cause.CRASH_SIDEWALK: "hit the kerb",
    Cause.OFF_ROAD: "left the road",
    Cause.TIME_OUT: "timed out",
    Cause.CUT: "cut short",
}


@dataclass(slots=True)
class Route:
    """The way of the car that took `slot` before step `start`."""

    slot: int
    start: int
    line: FloatArray  # [n, 2] metres, from spawn to destination


@dataclass(slots=True)
class Tracks:
    """Where every car stood, before and after every step."""

    road: RoadMap
    routes: list[Route]
    present: BoolArray  # [T + 1, A]
    position: FloatArray  # [T + 1, A, 2] metres
    heading: FloatArray  # [T + 1, A] radians
    speed: FloatArray  # [T + 1, A] m/s


@dataclass(slots=True)
class Footage:
    """One episode, ready to be drawn."""

    policy: str  # name shown to people
    scenario: str
    seed: int
    tracks: Tracks
    active: BoolArray  # [T, A]
    cause: IntArray  # [T, A] of Cause
    reward: FloatArray  # [T, A]
    cost: FloatArray  # [T, A] of the constraint shown
    constraint: str  # its name
    limit: float  # its limit, per car; NaN if there is none
    risk: FloatArray  # [T, A] the cost critic's prediction; NaN where nobody acts
    value: FloatArray  # [T, A] the value critic's prediction; NaN where nobody acts
    lidar: FloatArray  # [T, A, L] share of the range at which each ray ends; ray i points heading + 2 pi i / L
    lidar_range: float  # metres

    @property
    def steps(self) -> int:
        return int(self.active.shape[0])

    @property
    def slots(self) -> int:
        return int(self.active.shape[1])

    def status(self) -> IntArray:
        """What became of each slot's latest car, as known before each step: [T + 1, A] of Cause, NONE while driving."""
        status = np.zeros((self.steps + 1, self.slots), dtype=np.int8)
        for step in range(self.steps):
            status[step][self.active[step]] = Cause.NONE
            status[step + 1] = np.where(self.cause[step] != Cause.NONE, self.cause[step], status[step])
        return status

    def endings(self) -> list[tuple[int, int, Cause]]:
        """Every end of a life as (step, slot, cause), in order of time."""
        return [(int(t), int(a), Cause(int(self.cause[t, a]))) for t, a in np.argwhere(self.cause != Cause.NONE)]

    def end_position(self, step: int, slot: int) -> FloatArray:
        """Where the life that ended in `step` ended [2]: an arrived car has already left the world after it."""
        row = step + 1 if self.tracks.present[step + 1, slot] else step
        return self.tracks.position[row, slot]

    def crashes(self) -> list[int]:
        """Steps at which a car crashed or left the road."""
        return sorted({step for step, _, cause in self.endings() if cause in ELIMINATED})

    def focus(self) -> IntArray:
        """The slot worth following at each step [T]: the next to be eliminated, else the one that drives longest."""
        slots = np.zeros(self.steps, dtype=np.int64)
        failures = [(step, slot) for step, slot, cause in self.endings() if cause in ELIMINATED]
        fallback = int(self.active.sum(axis=0).argmax())
        for step in range(self.steps):
            coming = (slot for end, slot in failures if end >= step and self.active[step, slot])
            driving = np.flatnonzero(self.active[step])
            quiet = fallback if self.active[step, fallback] or not len(driving) else int(driving[0])
            slots[step] = next(coming, quiet)
        return slots
