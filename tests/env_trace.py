"""Digests of episodes, to compare them byte for byte between processes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.contract import ArrayEnv, FloatArray

ROOT = Path(__file__).resolve().parent.parent


def drive(env: ArrayEnv, seed: int, steps: int) -> str:
    """Digest of everything an episode gives, driven forward at random by a generator of its own."""
    actions = random_actions(seed, steps, env.num_slots)
    digest = hashlib.sha256()
    result = env.reset(seed)
    digest.update(result.observation.tobytes())
    for action in actions:
        if result.over:
            break
        result = env.step(action)
        for array in (result.observation, result.final_observation, result.reward, result.cost, result.outcome):
            digest.update(array.tobytes())
        states = env.car_states()
        digest.update(states.present.tobytes() + states.position.tobytes() + states.heading.tobytes())
    return digest.hexdigest()


def random_actions(seed: int, steps: int, num_slots: int) -> FloatArray:
    """[steps, A, 2]: mostly forward, sometimes braking."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.normal(0, 0.15, (steps, num_slots)), rng.uniform(-0.3, 1, (steps, num_slots))], axis=-1)


@dataclass(frozen=True)
class Job:
    scenario: str
    backend: str
    seeds: tuple[int, ...]
    steps: int


def trace(job: Job) -> dict[int, str]:
    """Digest per seed, in one environment."""
    env = make_array_env(load_scenario(job.scenario, backend=job.backend, end_rule="all"), ["termination"])
    try:
        return {seed: drive(env, seed, job.steps) for seed in job.seeds}
    finally:
        env.close()


def trace_in_new_process(jobs: list[Job], hash_seed: int) -> list[dict[int, str]]:
    """The same for several jobs, one after the other in a process with its own PYTHONHASHSEED."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, __file__, json.dumps([asdict(job) for job in jobs])]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return [{int(seed): digest for seed, digest in digests.items()} for digests in json.loads(output)]


if __name__ == "__main__":
    print(json.dumps([trace(Job(**job)) for job in json.loads(sys.argv[1])]))
