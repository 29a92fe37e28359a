"""One episode: the environment and the policy, no learning."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from maip3o.data.episode import Episode
from maip3o.envs.contract import ArrayEnv, BoolArray, FloatArray, IntArray, StepResult, WorldSpec
from maip3o.models.compiled.act import NumpyActor


def rollout(env: ArrayEnv, actor: NumpyActor, seed: int, deterministic: bool) -> Episode:
    """Drive the episode that `seed` stands for: a pure function of (environment config, weights, seed)."""
    noise_rng = np.random.default_rng([seed, 1])
    record = _Record()
    seconds_infer = 0.0
    started = perf_counter()

    now = env.reset(seed)
    memory = actor.initial_memory(env.num_slots)
    while not now.over:
        memory[now.fresh | ~now.alive] = 0.0
        # Drawn for every slot, driving or not: whether a car lives must not shift another car's noise.
        noise = None if deterministic else noise_rng.standard_normal((env.num_slots, env.spec.action_size), np.float32)
        inference_started = perf_counter()
        action, log_prob, next_memory = actor.act(now.observation, memory, noise)
        seconds_infer += perf_counter() - inference_started
        record.decision(now, memory, action, log_prob)
        now = env.step(action)
        record.outcome(now, next_memory)
        memory = next_memory

    episode = record.episode(seed, env.spec)
    episode.seconds_infer = seconds_infer
    episode.seconds_simulate = perf_counter() - started - seconds_infer
    return episode


class _Record:
    """Rows of an episode as they happen, copied: environment and actor may use their arrays again."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.cut: list[tuple[int, int, FloatArray, FloatArray]] = []  # t, slot, observation [O], memory [H]

    def decision(self, now: StepResult, memory: FloatArray, action: FloatArray, log_prob: FloatArray) -> None:
        seen = (now.observation, memory, action, log_prob, now.alive, now.fresh)
        self.rows.append([part.copy() for part in seen])

    def outcome(self, after: StepResult, memory: FloatArray) -> None:
        flags = (after.terminated, after.truncated, after.outcome)
        self.rows[-1] += [part.copy() for part in (after.reward, after.cost, *flags, after.measurements)]
        if after.truncated.any():
            for a in np.flatnonzero(after.truncated).tolist():
                self.cut.append((len(self.rows) - 1, a, after.final_observation[a].copy(), memory[a].copy()))

    def episode(self, seed: int, world: WorldSpec) -> Episode:
        if not self.rows:
            raise RuntimeError(f"the episode of seed {seed} ended before its first step")
        columns = [np.stack(column) for column in zip(*self.rows, strict=True)]
        observation, hidden, action, log_prob, active, first, reward, cost = columns[:8]
        terminated, truncated, outcome, measured = columns[8:]
        for values in (hidden, action, log_prob):
            values[~active] = 0.0
        life_end = np.argwhere(terminated | truncated)
        size, memory_size = observation.shape[-1], hidden.shape[-1]
        return Episode(
            seed=seed,
            observation=observation.astype(np.float32, copy=False),
            hidden=hidden.astype(np.float32, copy=False),
            action=action.astype(np.float32, copy=False),
            log_prob=log_prob.astype(np.float32, copy=False),
            active=active,
            first=first,
            reward=reward.astype(np.float32),
            cost=cost.astype(np.float32, copy=False),
            terminated=terminated,
            truncated=truncated,
            outcome=outcome.astype(np.int8, copy=False),
            final_index=np.array([row[:2] for row in self.cut], dtype=np.int64).reshape(-1, 2),
            final_observation=np.array([row[2] for row in self.cut], dtype=np.float32).reshape(len(self.cut), size),
            final_hidden=np.array([row[3] for row in self.cut], dtype=np.float32).reshape(len(self.cut), memory_size),
            life_end=life_end,
            life_measurements=_measure_lives(measured, world, active, first, life_end),
            world=world,
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
