"""Episodes: the environment and the policy, no learning. Several run side by side, one in each environment."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from maip3o.data.episode import Episode
from maip3o.envs.contract import ArrayEnv, FloatArray
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.recorder import Recorder

NOISE_STEPS = 64  # drawn at a time; how many changes nothing


def rollout(env: ArrayEnv, actor: NumpyActor, seed: int, deterministic: bool) -> Episode:
    """Drive the episode that `seed` stands for: a pure function of (environment config, weights, seed)."""
    return rollouts([env], actor, [seed], deterministic)[0]


def rollouts(envs: Sequence[ArrayEnv], actor: NumpyActor, seeds: Sequence[int], deterministic: bool) -> list[Episode]:
    """`rollout` of each seed, in environments of one kind: they step in turns, and the policy acts for all at once.

    No episode depends on the others: its noise is its own, and the policy computes each row by itself.
    """
    started, seconds_infer = perf_counter(), 0.0
    slots, spec = envs[0].num_slots, envs[0].spec
    noise = None if deterministic else _Noise(seeds, slots, spec.action_size)
    recorder = Recorder(spec, len(envs), slots, actor.memory_size)
    memory = actor.initial_memory(len(envs) * slots)
    now = [env.reset(seed) for env, seed in zip(envs, seeds, strict=True)]
    going = [place for place, result in enumerate(now) if not result.over]
    t = 0
    while going:
        for place in going:
            recorder.decision(t, place, now[place])
        if actor.memory_size:
            memory[recorder.without_memory(t)] = 0.0
        inference_started = perf_counter()
        action, log_prob, after = actor.act(recorder.seen(t), memory, None if noise is None else noise.at(t))
        seconds_infer += perf_counter() - inference_started
        recorder.action(t, memory, action, log_prob)
        actions = action.reshape(len(envs), slots, -1)
        memory = after
        for place in going:
            now[place] = envs[place].step(actions[place])
            recorder.outcome(t, place, now[place], memory)
        going = [place for place in going if not now[place].over]
        t += 1
    episodes = [recorder.episode(place, seed) for place, seed in enumerate(seeds)]
    _share_seconds(episodes, perf_counter() - started, seconds_infer)
    return episodes


def _share_seconds(episodes: Sequence[Episode], seconds: float, seconds_infer: float) -> None:
    """By their lengths."""
    steps = sum(episode.length for episode in episodes)
    for episode in episodes:
        share = episode.length / steps
        episode.seconds_infer, episode.seconds_simulate = share * seconds_infer, share * (seconds - seconds_infer)


class _Noise:
    """Standard normal numbers of each episode's own generator, a step's at a time.

    Drawn for every slot, acting or not: whether a car lives must not shift another car's noise.
    """

    def __init__(self, seeds: Sequence[int], slots: int, size: int) -> None:
        self._generators = [np.random.default_rng([seed, 1]) for seed in seeds]
        self._shape = (NOISE_STEPS, slots, size)
        self._block = np.zeros((0,))

    def at(self, t: int) -> FloatArray:
        """[E * A, U] of step t; to be asked for one step after another."""
        if t % NOISE_STEPS == 0:
            blocks = [generator.standard_normal(self._shape, np.float32) for generator in self._generators]
            self._block = np.concatenate(blocks, axis=1)
        return self._block[t % NOISE_STEPS]
