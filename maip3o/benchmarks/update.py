"""Does an update cost less than the sampling of its data? Both in turns, on the same episodes.

Two `fast` workers sample Intersection with a trained policy until there are enough agent-steps; then the learner
updates on these episodes, held to one core (where the system can do that), and once more as training does it, policy
and critics side by side. All are timed as often as there are repeats, one after the other.

python -m maip3o.benchmark update steps=50000 epochs=8
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch

from maip3o.algo.learner import Learner
from maip3o.data.episode import Episode
from maip3o.runners import checkpoint
from maip3o.runners.compose import compose
from maip3o.runners.pool import make_pool
from maip3o.runners.seeds import training_seeds
from maip3o.runners.worker import Job, world_spec


def run(
    steps: int = 50_000,
    epochs: int = 8,
    minibatches: int = 4,
    workers: int = 2,
    repeats: int = 5,
    policy: str = "maip3o-intersection",
) -> dict[str, Any]:
    """policy: whose episodes; its algorithm and network are the ones that are updated."""
    torch.set_num_threads(1)  # as torch_threads=auto
    loaded = checkpoint.load(checkpoint.find_checkpoint(policy))
    config, _ = compose(["+scenario=intersection"])
    # kl_max: all epochs must run.
    algo = replace(config.algo, epochs=epochs, minibatches=minibatches, kl_max=float("inf"))
    scenario = replace(config.scenario, observation=loaded.config.scenario.observation)
    config = replace(loaded.config, scenario=scenario, algo=algo)
    sampling, updating, side_by_side = [], [], []
    with make_pool(config.runner, workers) as pool:
        learner = Learner(config, pool.ask(world_spec, (config.scenario, tuple(config.constraints))))
        learner.load_networks(loaded.learner)
        start = deepcopy(learner.state_dict())
        weights: Any = learner.actor_weights()
        job = Job(config.scenario, tuple(config.constraints), config.model, weights)
        seeds: list[int] = []
        episodes: list[Episode] = []
        while _agent_steps(episodes) < steps:
            more = training_seeds(0, len(seeds), workers)
            seeds, episodes = seeds + more, episodes + pool.map(job, more)
        for _ in range(repeats):
            learner.load_state_dict(start)
            started = time.perf_counter()
            episodes = pool.map(job, seeds)
            sampling.append(time.perf_counter() - started)
            with one_core():
                updating.append(_seconds_of_update(learner, episodes))
            learner.load_state_dict(start)
            side_by_side.append(_seconds_of_update(learner, episodes))
    return {
        "agent_steps": _agent_steps(episodes),
        "episodes": len(seeds),
        "epochs": epochs,
        "workers": workers,
        "sampling_seconds": sampling,
        "update_seconds": updating,
        "update_side_by_side_seconds": side_by_side,
        "update_over_sampling": sorted(u / s for u, s in zip(updating, sampling, strict=True))[repeats // 2],
    }


def _seconds_of_update(learner: Learner, episodes: list[Episode]) -> float:
    started = time.perf_counter()
    learner.update(episodes)
    return time.perf_counter() - started


@contextmanager
def one_core() -> Iterator[None]:
    """Hold this thread, and those that it starts, to a single core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _agent_steps(episodes: list[Episode]) -> int:
    return sum(int(episode.active.sum()) for episode in episodes)


def table(result: dict[str, Any]) -> str:
    lines = [f"{result['agent_steps']} agent-steps of {result['episodes']} episodes"]
    whose = {"sampling": f"{result['workers']} workers", "update": "1 core", "update_side_by_side": "as in training"}
    for name, who in whose.items():
        seconds = sorted(result[f"{name}_seconds"])
        middle, span = seconds[len(seconds) // 2], f"({seconds[0]:.2f} to {seconds[-1]:.2f})"
        lines.append(f"{name.split('_')[0]:10}{who:>16}{middle:8.2f} s  {span}")
    lines.append(f"update over sampling, {result['epochs']} epochs: {result['update_over_sampling']:.2f}x (median)")
    return "\n".join(lines)
