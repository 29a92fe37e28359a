"""The six robots of Safety Velocity: Gymnasium's own numbers, an end for each reason, and the same bytes for a seed."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

from maip3o.algo.learner import Learner
from maip3o.benchmarks.robots import _compare, table
from maip3o.config.schema import ScenarioConfig
from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.contract import ArrayEnv
from maip3o.envs.robots import extras
from maip3o.envs.robots.velocity import ROBOTS
from maip3o.errors import UserError
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.compose import compose
from maip3o.runners.rollout import rollout, rollouts
from tests.toy_run import assert_same_episode, final_state, train_inline

FILES = {
    "Ant": "ant_velocity",
    "HalfCheetah": "half_cheetah_velocity",
    "Hopper": "hopper_velocity",
    "Humanoid": "humanoid_velocity",
    "Swimmer": "swimmer_velocity",
    "Walker2d": "walker2d_velocity",
}


def make(robot: str, **changes: Any) -> ArrayEnv:
    return make_array_env(replace(load_scenario(FILES[robot]), **changes), ["velocity"])


def actions(env: ArrayEnv, seed: int, steps: int) -> np.ndarray:
    """[T, 1, U], some beyond the motors' range."""
    return np.random.default_rng(seed).normal(0.0, 0.8, (steps, 1, env.spec.action_size))


def gymnasium_robot(robot: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gymnasium.make(f"{robot}-v4", disable_env_checker=True)


@pytest.mark.parametrize("robot", ROBOTS)
def test_numbers_are_those_of_gymnasium(robot: str) -> None:
    env, theirs = make(robot), gymnasium_robot(robot)
    now = env.reset(7)
    raw = theirs.reset(seed=7)[0]
    if robot in ("Ant", "Humanoid"):
        root = theirs.unwrapped.data.qpos[3:7]
        assert abs(np.linalg.norm(root) - 1.0) > 1e-4, "MuJoCo 3 would leave the root as the noise made it"
        mujoco.mju_normalize4(root)
        raw = theirs.unwrapped._get_obs()
    assert np.array_equal(now.observation[0], raw.astype(np.float32))
    bound = theirs.action_space.high.astype(np.float64) if robot != "Humanoid" else 0.4
    for action in actions(env, 1, 150):
        if now.over:
            break
        raw, reward, terminated, _, info = theirs.step(bound * action[0])
        now = env.step(action)
        seen = now.final_observation if now.over else now.observation
        assert np.array_equal(seen[0], raw.astype(np.float32))
        assert now.reward[0] == pytest.approx(reward, rel=1e-12, abs=1e-12)
        assert now.terminated[0] == terminated
        speed = info["x_velocity"]
        if robot in ("Ant", "Humanoid"):
            speed = np.hypot(speed, info["y_velocity"])
        assert now.measurements[0, 0] == pytest.approx(speed, rel=1e-9)
        assert now.cost[0, 0] == (speed > ROBOTS[robot].v1.metres_per_second)


@pytest.mark.parametrize("robot", ROBOTS)
def test_an_episode_is_a_pure_function_of_its_seed(robot: str) -> None:
    def bytes_of(env: ArrayEnv, seed: int) -> list[bytes]:
        found = [env.reset(seed).observation.tobytes()]
        for action in actions(env, seed, 30):
            now = env.step(action)
            found.append(now.observation.tobytes() + now.reward.tobytes() + now.final_observation.tobytes())
            if now.over:
                break
        return found

    env = make(robot)
    first = bytes_of(env, 3)
    for other in (4, 5):
        bytes_of(env, other)
    assert bytes_of(env, 3) == first == bytes_of(make(robot), 3)
    assert bytes_of(env, 4) != first


@pytest.mark.parametrize("robot", ["HalfCheetah", "Hopper"])
def test_an_episode_does_not_depend_on_what_runs_beside_it(robot: str) -> None:
    config = compose([f"+scenario={FILES[robot]}"])[0]
    envs = [make(robot, horizon=80) for _ in range(4)]
    actor = NumpyActor(Learner(config, envs[0].spec).actor_weights(), config.model)
    together = rollouts(envs, actor, [1, 2, 3, 4], False)
    assert robot == "HalfCheetah" or len({episode.length for episode in together}) > 1
    for episode in together[::-1]:
        assert_same_episode(episode, rollout(envs[0], actor, episode.seed, False))


def test_out_of_time_is_a_cut_and_a_fall_is_an_end() -> None:
    env = make("HalfCheetah", horizon=5)
    now = env.reset(0)
    assert now.fresh.all()
    for action in actions(env, 0, 5):
        assert now.alive.all()
        assert not now.over
        now = env.step(action)
    assert (now.over, now.truncated[0], now.terminated[0], now.alive[0]) == (True, True, False, False)
    assert env.spec.outcomes[now.outcome[0]].name == "time_out"
    assert now.final_observation.any()
    assert not now.observation.any()
    with pytest.raises(UserError, match="after the end"):
        env.step(action)

    env = make("Hopper")
    now, steps = env.reset(0), 0
    while not now.over:
        now, steps = env.step(np.ones((1, 3))), steps + 1
    assert steps < 1000
    assert (now.truncated[0], now.terminated[0], now.outcome[0]) == (False, True, 2)


def test_a_fall_outranks_the_time_out_of_the_same_step() -> None:
    env = make("Hopper")
    now, steps = env.reset(0), 0
    while not now.over:
        now, steps = env.step(np.ones((1, 3))), steps + 1
    env = make("Hopper", horizon=steps)
    now = env.reset(0)
    while not now.over:
        now = env.step(np.ones((1, 3)))
    assert (now.truncated[0], now.terminated[0]) == (False, True)


def test_what_speed_is_limited() -> None:
    """Swimmer's newer limit is of the speed along x, its older one of the whole velocity."""
    env, older = make("Swimmer"), make("Swimmer", settings={"version": "v0"})
    for one in (env, older):
        one.reset(2)
    theirs = gymnasium_robot("Swimmer")
    theirs.reset(seed=2)
    for action in actions(env, 2, 200):
        info = theirs.step(action[0])[4]
        x, y = info["x_velocity"], info["y_velocity"]
        assert env.step(action).cost[0, 0] == (x > 0.2282)
        assert older.step(action).cost[0, 0] == (np.hypot(x, y) > 0.04845)


def test_without_constraints_there_is_no_cost() -> None:
    env = make_array_env(load_scenario("ant_velocity"), [])
    env.reset(0)
    assert env.step(np.zeros((1, 8))).cost.shape == (1, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "Cheetah"}, "scenario.id=Cheetah: must be one of Ant, HalfCheetah,"),
        ({"num_agents": 2}, "scenario.num_agents=2: world velocity has one robot; must be 1"),
        ({"respawn": True}, "scenario.respawn=true: world velocity has one robot"),
        ({"horizon": 0}, "scenario.horizon=0: must be at least 1"),
        ({"settings": {"version": "v2"}}, "scenario.settings.version=v2: must be v1 or v0"),
        ({"settings": {"verison": "v1"}}, "scenario.settings.verison: world velocity knows version alone"),
    ],
)
def test_bad_input_is_one_clear_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        make("Ant", **changes)
    assert "\n" not in str(error.value)


def test_a_staggered_start_of_one_robot_is_refused() -> None:
    with pytest.raises(UserError, match="start_spread=5: scenario ant_velocity has one agent"):
        compose(["+scenario=ant_velocity", "start_spread=5"])


@pytest.mark.parametrize(
    ("version", "message"),
    [(None, "MuJoCo is not installed; pip install 'maip3o\\[mujoco\\]'"), ("4.0.0", "MuJoCo 4.0.0 is not the physics")],
)
def test_another_mujoco_is_refused(version: str | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_version", lambda package: version)
    with pytest.raises(UserError, match=message):
        compose(["+scenario=half_cheetah_velocity"])


def test_a_config_needs_no_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gymnasium.envs.mujoco", raising=False)
    compose(["+scenario=half_cheetah_velocity"])
    assert "gymnasium.envs.mujoco" not in sys.modules


def small(robot: str, *overrides: str) -> Any:
    length = ["total_steps=240", "steps_per_iteration=80", "scenario.horizon=40", "evaluation.episodes=2"]
    how = ["num_workers=1", "torch_threads=1", "device=cpu", "logger.tensorboard=false", "logger.quiet=true"]
    return compose([f"+scenario={FILES[robot]}", *length, *how, "algo.lr_schedule=constant", *overrides])[0]


@pytest.mark.parametrize("robot", ["HalfCheetah", "Humanoid"])
def test_a_robot_trains_and_goes_on_where_it_stopped(robot: str, tmp_path: Path) -> None:
    train_inline(small(robot), tmp_path / "whole")
    train_inline(small(robot, "total_steps=80"), tmp_path / "parts")
    train_inline(small(robot), tmp_path / "parts", prolong=True)
    assert final_state(tmp_path / "parts") == final_state(tmp_path / "whole")


def test_the_benchmark_sets_a_robot_beside_gymnasium_s() -> None:
    row = _compare("velocity", "Hopper", steps=60, rounds=1)
    assert row["package_steps_per_second"] > 0
    assert row["ours_steps_per_second"] > 0
    assert "Hopper" in table({"Hopper": row})


def test_scenarios_name_their_robots() -> None:
    assert {load_scenario(file).id: file for file in FILES.values()} == FILES
    for file in FILES.values():
        scenario: ScenarioConfig = load_scenario(file)
        assert (scenario.name, scenario.world, scenario.horizon) == (file, "velocity", 1000)
