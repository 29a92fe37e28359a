"""What becomes of a rollout's steps: arrays that are filled as they happen, and episodes that are cut out of them."""

from __future__ import annotations

import numpy as np

from maip3o.data.episode import Episode
from maip3o.envs.contract import BoolArray, FloatArray, IntArray, StepResult, WorldSpec

FIRST_ROOM = 256  # steps; doubled when they are full


class Recorder:
    """Steps of E worlds side by side, each array [T, E, A, ...]. What a world hands out is copied at once."""

    def __init__(self, spec: WorldSpec, worlds: int, slots: int, memory_size: int) -> None:
        self._spec = spec
        shape, measured = (FIRST_ROOM, worlds, slots), len(spec.measurements)
        self.observation = np.zeros((*shape, spec.observation_size), np.float32)
        self.memory = np.zeros((*shape, memory_size), np.float32)
        self.acted = np.zeros((*shape, spec.action_size), np.float32)
        self.log_prob = np.zeros(shape, np.float32)
        self.active = np.zeros(shape, np.bool_)
        self.first = np.zeros(shape, np.bool_)
        self.reward = np.zeros(shape)
        self.cost = np.zeros((*shape, len(spec.costs)), np.float32)
        self.terminated = np.zeros(shape, np.bool_)
        self.truncated = np.zeros(shape, np.bool_)
        self.ended = np.zeros(shape, np.int8)
        self.measurements = np.zeros((*shape, measured))
        self._length = [0] * worlds
        # of each world: t, slot, observation [O], memory [H] of lives that were cut
        self._cut: list[list[tuple[int, int, FloatArray, FloatArray]]] = [[] for _ in range(worlds)]

    def decision(self, t: int, world: int, now: StepResult) -> None:
        """What the world shows before step t."""
        if t == len(self.active):
            self._make_room()
        self.observation[t, world] = now.observation
        self.active[t, world] = now.alive
        self.first[t, world] = now.fresh

    def seen(self, t: int) -> FloatArray:
        """[E * A, O] of step t, zeros where nobody acts."""
        observation = self.observation[t]
        return observation.reshape(-1, observation.shape[-1])

    def without_memory(self, t: int) -> BoolArray:
        """[E * A]: whose life begins with step t, and who does not act."""
        return (self.first[t] | ~self.active[t]).reshape(-1)

    def action(self, t: int, memory: FloatArray, action: FloatArray, log_prob: FloatArray) -> None:
        """What the policy does in step t, of all worlds: [E * A, ...]. memory: before the step."""
        self.memory[t] = memory.reshape(self.memory.shape[1:])
        self.acted[t] = action.reshape(self.acted.shape[1:])
        self.log_prob[t] = log_prob.reshape(self.log_prob.shape[1:])

    def outcome(self, t: int, world: int, after: StepResult, memory: FloatArray) -> None:
        """What came of it. memory [E * A, H]: after the step."""
        self.reward[t, world] = after.reward
        self.cost[t, world] = after.cost
        self.measurements[t, world] = after.measurements
        self._length[world] = t + 1
        if not np.count_nonzero(after.outcome):  # five times as fast as any(), and asked in every step
            return
        self.ended[t, world] = after.outcome
        self.terminated[t, world] = after.terminated
        self.truncated[t, world] = after.truncated
        for a in np.flatnonzero(after.truncated).tolist():
            self._cut[world].append(
                (t, a, after.final_observation[a].copy(), memory[world * len(after.alive) + a].copy())
            )

    def _make_room(self) -> None:
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, np.concatenate([values, np.zeros_like(values)]))

    def episode(self, world: int, seed: int) -> Episode:
        if not self._length[world]:
            raise RuntimeError(f"the episode of seed {seed} ended before its first step")
        mine, cut = (slice(self._length[world]), world), self._cut[world]
        active, first = self.active[mine].copy(), self.first[mine].copy()
        terminated, truncated = self.terminated[mine].copy(), self.truncated[mine].copy()
        life_end = np.argwhere(terminated | truncated)
        rows = len(cut)
        return Episode(
            seed=seed,
            observation=self.observation[mine].copy(),
            memory=np.where(active[..., None], self.memory[mine], np.float32(0)),
            action=np.where(active[..., None], self.acted[mine], np.float32(0)),
            log_prob=np.where(active, self.log_prob[mine], np.float32(0)),
            active=active,
            first=first,
            reward=self.reward[mine].astype(np.float32),
            cost=self.cost[mine].copy(),
            terminated=terminated,
            truncated=truncated,
            outcome=self.ended[mine].copy(),
            final_index=np.array([row[:2] for row in cut], np.int64).reshape(rows, 2),
            final_observation=np.array([row[2] for row in cut], np.float32).reshape(rows, self.observation.shape[-1]),
            final_memory=np.array([row[3] for row in cut], np.float32).reshape(rows, self.memory.shape[-1]),
            life_end=life_end,
            life_measurements=_measure_lives(self.measurements[mine], self._spec, active, first, life_end),
            world=self._spec,
            seconds_simulate=0.0,
            seconds_infer=0.0,
        )


def _measure_lives(
    values: FloatArray, world: WorldSpec, active: BoolArray, first: BoolArray, life_end: IntArray
) -> FloatArray:
    """Measurements [T, A, P] of each life, [M, P] float32."""
    lives = np.zeros((len(life_end), len(world.measurements)), np.float32)
    for column, measurement in enumerate(world.measurements):
        part = values[..., column]
        if measurement.reduce == "mean":
            lives[:, column] = _mean_over_lives(part, active, first, life_end)
        else:
            lives[:, column] = part[life_end[:, 0], life_end[:, 1]]
    return lives


def _mean_over_lives(values: FloatArray, active: BoolArray, first: BoolArray, life_end: IntArray) -> FloatArray:
    """Mean of values [T, A] over each life, [M] float32."""
    steps = np.arange(len(values))[:, None]
    start = np.maximum.accumulate(np.where(first, steps, 0), axis=0)
    sums = np.cumsum(np.where(active, values, 0.0), axis=0, dtype=np.float64)
    end, slot = life_end[:, 0], life_end[:, 1]
    begin = start[end, slot]
    before = np.where(begin > 0, sums[np.maximum(begin - 1, 0), slot], 0.0)
    return ((sums[end, slot] - before) / (end - begin + 1)).astype(np.float32)
