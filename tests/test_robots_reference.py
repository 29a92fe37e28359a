"""The robots against what safety-gymnasium 1.0.0 computed on mujoco 2.3.3 (tests/record_velocity.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.robots.velocity import ROBOTS

REFERENCE = np.load(Path(__file__).parent / "data" / "velocity.npz")
PUSHES = ((0.0, 0.0), (1.6, 0.0), (0.9, 0.9))  # as they were recorded
# MuJoCo 2.3.3 and 3.3.7 round differently, and contacts magnify that. Relative to the largest number of the same step
# these episodes agree to 3e-7 (four of the robots to 1e-11), the contact forces that Humanoid observes to 2e-4.
TOLERANCE, TOLERANCE_OF_FORCES = 1e-6, 1e-3
FORCES = 292  # where they begin in Humanoid's observation, the longest
FILES = {load_scenario(name).id: name for name in ("ant_velocity", "half_cheetah_velocity", "hopper_velocity")}
FILES |= {load_scenario(name).id: name for name in ("humanoid_velocity", "swimmer_velocity", "walker2d_velocity")}


def make(robot: str, version: str, **changes: Any) -> Any:
    scenario = replace(load_scenario(FILES[robot]), settings={"version": version}, **changes)
    return make_array_env(scenario, ["velocity"])


def push(env: Any, limit: float, factors: tuple[float, float]) -> None:
    """The robot moves at the start, as it did when it was recorded."""
    data, axes = env.robot.env.data, 2 if ROBOTS[env.robot.name].v0.of == "xy" else 1
    data.qvel[:axes] += limit * np.array(factors[:axes])
    mujoco.mj_forward(env.robot.env.model, data)


def assert_close(mine: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    largest = max(1.0, np.abs(theirs).max(initial=0.0))
    assert np.abs(mine - theirs).max(initial=0.0) <= tolerance * largest


@pytest.mark.parametrize("robot", ROBOTS)
def test_limits_are_the_reference_s(robot: str) -> None:
    for version in ("v1", "v0"):
        assert getattr(ROBOTS[robot], version).metres_per_second == REFERENCE[f"{robot}/{version}"]


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("seed", range(len(PUSHES)))
def test_steps_are_the_reference_s(robot: str, seed: int) -> None:
    reference = {
        name: REFERENCE[f"{robot}/{seed}/{name}"] for name in ("observation", "action", "reward", "terminated")
    }
    costs = {"v1": REFERENCE[f"{robot}/{seed}/cost"], "v0": REFERENCE[f"{robot}/{seed}/cost_v0"]}
    for version, cost in costs.items():
        env = make(robot, version)
        now = env.reset(seed)
        assert np.abs(now.observation[0] - reference["observation"][0]).max() <= 1e-7, "the first observation is exact"
        push(env, float(REFERENCE[f"{robot}/v1"]), PUSHES[seed])
        for t, action in enumerate(reference["action"]):
            now = env.step(action[None])
            seen = now.final_observation if now.over else now.observation
            assert_close(seen[0, :FORCES], reference["observation"][t + 1, :FORCES], TOLERANCE)
            assert_close(seen[0, FORCES:], reference["observation"][t + 1, FORCES:], TOLERANCE_OF_FORCES)
            assert now.reward[0] == pytest.approx(reference["reward"][t], rel=TOLERANCE, abs=TOLERANCE)
            assert now.terminated[0] == reference["terminated"][t]
            assert now.cost[0, 0] == cost[t]


def test_every_reason_of_a_cost_was_recorded() -> None:
    """Below and above each limit; on the plane also above it by x and y together alone."""
    for robot in ROBOTS:
        for name in ("cost", "cost_v0"):
            seen = np.concatenate([REFERENCE[f"{robot}/{seed}/{name}"] for seed in range(len(PUSHES))])
            assert set(seen) == {0, 1} or (robot, name) in {("Humanoid", "cost_v0"), ("Swimmer", "cost_v0")}
        assert robot not in ("Ant", "Humanoid") or REFERENCE[f"{robot}/2/cost"].any()


@pytest.mark.parametrize("robot", ["HalfCheetah", "Swimmer"])
def test_an_episode_is_as_long_as_the_reference_s(robot: str) -> None:
    env = make(robot, "v1")
    now, steps = env.reset(0), 0
    while not now.over:
        now, steps = env.step(np.zeros((1, env.spec.action_size))), steps + 1
    assert steps == REFERENCE[f"{robot}/length"] == 1000
    assert now.truncated[0]
