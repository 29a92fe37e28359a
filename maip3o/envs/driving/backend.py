"""What a simulator gives to the rules above it: raw arrays over slots, no dictionaries, no opinion on costs or causes.

Two implementations, `stock.StockBackend` and `fast.FastBackend`, both built from a
ScenarioConfig alone. `rules.SlotEnv` turns either into the ArrayEnv of contract.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray
from maip3o.envs.driving.views import CarStates, RoadMap


@dataclass(slots=True)
class RawStep:
    """One simulator step. The backend may reuse the arrays in its next step: whoever keeps them copies.

    Rows of slots whose car did not act in this step hold zeros / False.
    """

    acted: BoolArray  # [A]: the slot's car was alive and acted in this step (after a reset: all False)
    observation: FloatArray  # [A, O] float32, after the step, of cars that acted
    reward: FloatArray  # [A] float64
    ended: BoolArray  # [A]: the simulator took the car out of play in this step, for whatever reason
    # Flags of cars that acted; several may be true at once, and none of them implies `ended`:
    arrived: BoolArray  # [A]
    crash_vehicle: BoolArray  # [A]
    crash_object: BoolArray  # [A] traffic objects, buildings, people
    crash_sidewalk: BoolArray  # [A]
    out_of_road: BoolArray  # [A]
    max_step: BoolArray  # [A] the car has driven `horizon` steps
    route_completion: FloatArray  # [A] float64
    speed: FloatArray  # [A] float64, m/s
    fresh: BoolArray  # [A]: a new car stands in the slot and acts in the next step (reset or respawn)
    fresh_observation: FloatArray  # [A, O] float32, the first observation of fresh cars


class Backend(Protocol):
    """A simulator. A wreck keeps its slot until it is removed; a new car takes the lowest free slot."""

    num_slots: int  # A
    observation_size: int  # O
    action_size: int

    def reset(self, seed: int) -> RawStep: ...

    def step(self, action: FloatArray) -> RawStep:
        """action: [A, action_size], finite; rows of slots without a living car are ignored."""

    def car_states(self) -> CarStates: ...

    def road_map(self) -> RoadMap: ...

    def routes(self) -> list[FloatArray]: ...

    def close(self) -> None: ...


def empty_raw_step(num_slots: int, observation_size: int) -> RawStep:
    """Zeros everywhere."""

    def flags() -> BoolArray:
        return np.zeros(num_slots, dtype=np.bool_)

    def numbers() -> FloatArray:
        return np.zeros(num_slots, dtype=np.float64)

    def observations() -> FloatArray:
        return np.zeros((num_slots, observation_size), dtype=np.float32)

    return RawStep(
        acted=flags(),
        observation=observations(),
        reward=numbers(),
        ended=flags(),
        arrived=flags(),
        crash_vehicle=flags(),
        crash_object=flags(),
        crash_sidewalk=flags(),
        out_of_road=flags(),
        max_step=flags(),
        route_completion=numbers(),
        speed=numbers(),
        fresh=flags(),
        fresh_observation=observations(),
    )
