"""Digests of episodes, to compare them byte for byte between processes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
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
        for array in (result.observation, result.final_observation, result.reward, result.cost, result.cause):
            digest.update(array.tobytes())
        states = env.car_states()
        digest.update(states.present.tobytes() + states.position.tobytes() + states.heading.tobytes())
    return digest.hexdigest()


def random_actions(seed: int, steps: int, num_slots: int) -> FloatArray:
    """[steps, A, 2]: mostly forward, sometimes braking."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.normal(0, 0.15, (steps, num_slots)), rng.uniform(-0.3, 1, (steps, num_slots))], axis=-1)


def trace(scenario: str, backend: str, seeds: list[int], steps: int) -> dict[int, str]:
    env = make_array_env(load_scenario(scenario, backend=backend, end_rule="all"), ["termination"])
    try:
        return {seed: drive(env, seed, steps) for seed in seeds}
    finally:
        env.close()


def trace_in_new_process(
    scenario: str, backend: str, seeds: list[int], steps: int, hash_seed: int = 0
) -> dict[int, str]:
    command = [sys.executable, __file__, scenario, backend, ",".join(map(str, seeds)), str(steps)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(hash_seed)}
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return {int(seed): digest for seed, digest in (line.split() for line in output.splitlines())}


if __name__ == "__main__":
    name, which, wanted, length = sys.argv[1:]
    for episode, result in trace(name, which, [int(seed) for seed in wanted.split(",")], int(length)).items():
        print(episode, result)
