"""What a world gives to the rollout: arrays over fixed slots. A world knows no tensor, no policy and no algorithm.

Axis letters, the same everywhere: T time, E episode, A agent slot, K constraint, O observation, P measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a life can end. goal, failure and end are terminations; timeout and cut are truncations."""

    name: str  # of its share of lives in metrics.jsonl and evaluation.json
    kind: str  # goal | failure | timeout | cut | end; running for the first one
    label: str = ""  # for people; empty: the name


RUNNING = Outcome("running", "running")
"""The first outcome of every world: the life goes on."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A figure of each life besides return and costs."""

    name: str
    reduce: str  # last | mean: over the steps of a life
    label: str = ""
    share: bool = False  # shown in per cent


@dataclass(frozen=True, slots=True)
class Cost:
    name: str
    kind: str  # event: at most once a life, so its mean is a share of lives; count: a sum over steps


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """What a world declares. It travels with every episode, so that nothing else has to know the world."""

    observation_size: int  # O
    action_size: int
    outcomes: tuple[Outcome, ...] = (RUNNING,)  # StepResult.outcome is an index into it
    measurements: tuple[Measurement, ...] = ()
    costs: tuple[Cost, ...] = ()  # K, those that were asked for
    initial_mean: tuple[float, ...] = (0.0,)  # of the actions of a policy that has learnt nothing; one, or one each
    initial_std: tuple[float, ...] = (1.0,)
    agent: str = "agent"  # what people call one that acts
    failure: str = "failed"  # what people call a life whose outcome is of kind failure

    def indices(self, *kinds: str) -> list[int]:
        """The outcomes of these kinds."""
        return [index for index, outcome in enumerate(self.outcomes) if outcome.kind in kinds]

    @property
    def cost_names(self) -> tuple[str, ...]:
        return tuple(cost.name for cost in self.costs)


@dataclass(slots=True)
class StepResult:
    """One environment step. Rows of slots that did not act hold zeros / False."""

    observation: FloatArray  # [A, O] float32: what each living agent acts on next; zeros where not alive
    alive: BoolArray  # [A]: the slot holds an agent that acts in the next step
    fresh: BoolArray  # [A]: a new agent took the slot in this step (respawn): start its memory from zero
    reward: FloatArray  # [A] float64
    cost: FloatArray  # [A, K] float32, in the order of `spec.costs`
    terminated: BoolArray  # [A]: the life ended in this step, no bootstrap
    truncated: BoolArray  # [A]: the life was cut in this step (time-out, end rule): bootstrap. Never both.
    outcome: IntArray  # [A] int8, index into `spec.outcomes`; 0 while the life goes on
    final_observation: FloatArray  # [A, O] float32: last observation of agents that ended in this step, else zeros
    measurements: FloatArray  # [A, P] float64 after this step, of agents that acted in it, in the order of the spec
    over: bool  # the episode has ended: nobody acts any more


def blank_result(spec: WorldSpec, num_slots: int) -> StepResult:
    """Nobody acts, and nothing has happened."""
    seen = (num_slots, spec.observation_size)
    return StepResult(
        observation=np.zeros(seen, np.float32),
        alive=np.zeros(num_slots, np.bool_),
        fresh=np.zeros(num_slots, np.bool_),
        reward=np.zeros(num_slots),
        cost=np.zeros((num_slots, len(spec.costs)), np.float32),
        terminated=np.zeros(num_slots, np.bool_),
        truncated=np.zeros(num_slots, np.bool_),
        outcome=np.zeros(num_slots, np.int8),
        final_observation=np.zeros(seen, np.float32),
        measurements=np.zeros((num_slots, len(spec.measurements))),
        over=False,
    )


class ArrayEnv(Protocol):
    """The environment as the rollout sees it."""

    spec: WorldSpec
    num_slots: int  # A
    end_rule: str  # half | first | all; a change holds from the next reset on

    def reset(self, seed: int) -> StepResult:
        """Start the episode that `seed` stands for. Only observation, alive, fresh (= alive) carry data."""

    def step(self, action: FloatArray) -> StepResult:
        """Advance one step. action: [A, action_size]; rows of slots that are not alive are ignored."""

    def close(self) -> None: ...
