"""Observations that magnify what is near: distances by their logarithm (`scenario.observation=near`).

MetaDrive's numbers are linear over 40 or 50 m: a hand's breadth between two cars is 0.0025, which a network tells apart
from nothing only by weights in the hundreds.
"""

from __future__ import annotations

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.observation import ObservationPart, observation_layout
from maip3o.errors import UserError
from maip3o.jit import kernel

HALF_LENGTH, HALF_WIDTH = 4.515 / 2, 1.852 / 2  # metres, of the car model that all agents drive
CAR_SCALE, POINT_SCALE = 0.5, 1.0  # metres: distances are linear well below it, logarithmic well above
POINTS = ("checkpoint_ahead", "checkpoint_left", "next_checkpoint_ahead", "next_checkpoint_left")


def near_encoding(scenario: ScenarioConfig) -> NearEncoding:
    """The encoding of a scenario's observations, if its cars can have one. Starts no engine."""
    model = scenario.metadrive.get("vehicle_config", {}).get("vehicle_model", "static_default")
    if scenario.metadrive.get("random_agent_model", False) or model not in ("default", "static_default"):
        raise UserError("scenario.observation=near: knows the outline of MetaDrive's default car only; use linear")
    layout = observation_layout(scenario)
    for part in layout:
        if part.name == "lidar" and part.high <= np.hypot(HALF_LENGTH, HALF_WIDTH):
            key = f"scenario.metadrive.vehicle_config.lidar.distance={part.high:g}"
            raise UserError(f"{key}: must be above 2.5 m, beyond the car's own outline, with scenario.observation=near")
    return NearEncoding(layout)


class NearEncoding:
    """Turns linear observations [..., O] into near ones, number by number and still in [0, 1].

    lidar: log(1 + d / 0.5 m), where d is the free space beyond the car's own outline; 1: nothing within reach.
    checkpoints, ahead and left: log(1 + |d| / 1 m) with d's sign, around 0.5.
    All else stays as it is, and so do rows of zeros, which stand for no car.
    """

    def __init__(self, layout: list[ObservationPart]) -> None:
        size = layout[-1].stop
        self._zero = np.zeros(size)  # the linear number that stands for no distance
        self._gain = np.zeros(size)  # scales of distance per linear number; 0 where it is no distance
        self._share = np.zeros(size)  # of [0, 1] on one side of no distance
        for part in layout:
            if part.name == "lidar":
                self._zero[part.slice] = outline(part.stop - part.start) / part.high
                self._gain[part.slice] = part.high / CAR_SCALE
                self._share[part.slice] = 1.0
            elif part.name in POINTS:
                self._zero[part.slice] = self._share[part.slice] = 0.5
                self._gain[part.slice] = (part.high - part.low) / POINT_SCALE
        self._full = log_of_distance(self._gain * (1.0 - self._zero))  # at the full reach

    def __call__(self, observation: FloatArray) -> FloatArray:
        """[A, O] linear -> [A, O] near, a new array."""
        return _encode(observation, self._zero, self._gain, self._share, self._full)


def linear_lidar(near: FloatArray, reach: float) -> FloatArray:
    """Shares of the reach at which beams [..., L] end, from their near encoding."""
    own = outline(near.shape[-1])
    free = CAR_SCALE * np.expm1(near * np.log1p((reach - own) / CAR_SCALE))
    return (own + free) / reach


def outline(beams: int) -> FloatArray:
    """[beams] metres from a car's centre to its own outline; beam 0 ahead, counter-clockwise."""
    angle = 2.0 * np.pi * np.arange(beams) / beams
    with np.errstate(divide="ignore"):
        return np.minimum(HALF_LENGTH / np.abs(np.cos(angle)), HALF_WIDTH / np.abs(np.sin(angle)))


@kernel
def log_of_distance(scales):  # type: ignore[no-untyped-def]
    """Compiled like _encode, so that the full reach is 1 to the last bit."""
    return np.log1p(scales)


@kernel
def _encode(observation, zero, gain, share, full):  # type: ignore[no-untyped-def]
    near = observation.copy()
    for a in range(observation.shape[0]):
        for i in range(observation.shape[1]):
            if gain[i] > 0.0:
                away = (observation[a, i] - zero[i]) * gain[i]
                part = share[i] * (np.log1p(abs(away)) / full[i])
                near[a, i] = max(1.0 - share[i] + (part if away > 0.0 else -part), 0.0)
    return near
