"""Record what safety-gymnasium 1.0.0 computes on mujoco 2.3.3: tests/data/velocity.npz, which the tests compare with.

Runs in an environment of its own (Python 3.11), because those versions do not agree with this package's:

    pip install "numpy<2" gymnasium==0.28.1 mujoco==2.3.3 gymnasium-robotics==1.2.2 xmltodict pyyaml imageio pygame
    pip install --no-deps safety-gymnasium==1.0.0
    python tests/record_velocity.py

On Python 3.11 its navigation tasks, which come with the import, need `field(default_factory=...)` where a dataclass has
an array for a default. Of each robot: its limits, how long an episode is that nothing ends, and three short episodes,
of which two begin with a push, so that the robot is above its limit along x alone and along x and y together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import safety_gymnasium

ROBOTS = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Swimmer", "Walker2d")
STEPS = 50
PUSHES = ((0.0, 0.0), (1.6, 0.0), (0.9, 0.9))  # of each episode: velocity along x and y at its start, over the limit
OUT = Path(__file__).parent / "data" / "velocity.npz"


def swing(seed: int, size: int) -> np.ndarray:
    """[T, U] in units of the motors' range, and some beyond it."""
    rng = np.random.default_rng(seed)
    pace, phase = rng.uniform(0.2, 0.9, size), rng.uniform(0, 2 * np.pi, size)
    return (1.2 * np.sin(pace * np.arange(STEPS)[:, None] + phase)).astype(np.float32)


def make(robot: str, version: str) -> Any:
    return safety_gymnasium.make(f"Safety{robot}Velocity-{version}")


def episode(robot: str, version: str, seed: int, actions: np.ndarray) -> dict[str, np.ndarray]:
    env = make(robot, version)
    first = env.reset(seed=seed)[0]
    push(env.unwrapped, make(robot, "v1").unwrapped._velocity_threshold, PUSHES[seed])
    bound = env.unwrapped.model.actuator_ctrlrange[:, 1]
    observations, rows = [first], []
    for action in actions.astype(np.float64):
        observation, reward, cost, terminated, _, _ = env.step(bound * action)
        observations.append(observation)
        rows.append((reward, cost, terminated))
        if terminated:
            break
    reward, cost, terminated = np.array(rows, np.float64).T
    seen = np.array(observations, np.float32)
    return {"observation": seen, "reward": reward, "cost": cost.astype(np.int8), "terminated": terminated.astype(bool)}


def push(env: Any, limit: float, factors: tuple[float, float]) -> None:
    qpos, qvel = env.data.qpos.copy(), env.data.qvel.copy()
    on_the_plane = env.spec.id.startswith(("SafetyAnt", "SafetyHumanoid", "SafetySwimmer"))
    qvel[: 2 if on_the_plane else 1] += limit * np.array(factors[: 2 if on_the_plane else 1])
    env.set_state(qpos, qvel)


def full_length(robot: str) -> int:
    """Steps until the time-out of a robot that cannot fall; 0 for one that can."""
    env = make(robot, "v1")
    if hasattr(env.unwrapped, "is_healthy"):
        return 0
    env.reset(seed=0)
    steps, truncated = 0, False
    while not truncated:
        truncated, steps = env.step(np.zeros(env.action_space.shape))[4], steps + 1
    return steps


def record(robot: str) -> dict[str, np.ndarray]:
    found = {f"{robot}/length": np.array(full_length(robot))}
    for version in ("v1", "v0"):
        found[f"{robot}/{version}"] = np.array(make(robot, version).unwrapped._velocity_threshold)
    for seed in range(len(PUSHES)):
        actions = swing(seed, make(robot, "v1").action_space.shape[0])
        seen = episode(robot, "v1", seed, actions)
        seen |= {"cost_v0": episode(robot, "v0", seed, actions)["cost"], "action": actions[: len(seen["reward"])]}
        found |= {f"{robot}/{seed}/{name}": values for name, values in seen.items()}
    return found


if __name__ == "__main__":
    OUT.parent.mkdir(exist_ok=True)
    np.savez_compressed(OUT, **{name: values for robot in ROBOTS for name, values in record(robot).items()})
    print(f"{OUT}: {OUT.stat().st_size / 1024:.0f} KiB")
