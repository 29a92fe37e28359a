"""One episode as the rollout returns it: arrays over time and slots, nothing learnt, nothing padded."""

from __future__ import annotations

from dataclasses import dataclass

from maip3o.envs.contract import BoolArray, FloatArray, IntArray, WorldSpec


@dataclass(slots=True)
class Episode:
    """T steps of A slots. `active[t, a]` means: slot a acted at t. The step of death is active."""

    seed: int
    observation: FloatArray  # [T, A, O] float32, raw (the model normalises)
    memory: FloatArray  # [T, A, H] float32, the actor's memory before step t (zeros at `first`)
    action: FloatArray  # [T, A, U] float32, as sampled: the environment clips, the log-prob does not
    log_prob: FloatArray  # [T, A] float32
    active: BoolArray  # [T, A]
    first: BoolArray  # [T, A] first step of a life in its slot
    reward: FloatArray  # [T, A] float32
    cost: FloatArray  # [T, A, K] float32
    terminated: BoolArray  # [T, A]
    truncated: BoolArray  # [T, A]
    outcome: IntArray  # [T, A] int8, index into world.outcomes
    # Where a life was cut (truncated), the critic bootstraps from the observation after that step:
    final_index: IntArray  # [N, 2] int64 rows (t, a)
    final_observation: FloatArray  # [N, O] float32
    final_memory: FloatArray  # [N, H] float32, the memory after step t
    # Per life, in the order (t of end, a); lives still running cannot exist: the last step ends or cuts all.
    life_end: IntArray  # [M, 2] int64 rows (t, a)
    life_measurements: FloatArray  # [M, P] float32, in the order of world.measurements
    world: WorldSpec  # what the numbers above mean
    seconds_simulate: float
    seconds_infer: float

    @property
    def length(self) -> int:
        return int(self.active.shape[0])
