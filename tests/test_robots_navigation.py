"""Safety Gymnasium's navigation: the package's own numbers to the bit, those of MuJoCo 2.3.3 where physics allow."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import ArrayEnv
from maip3o.envs.registry import find_world, make_array_env
from maip3o.envs.robots.navigation import COSTS, IDS
from maip3o.envs.robots.navigation_course import UNSTABLE, Course
from maip3o.envs.robots.safety_gymnasium import import_builder
from maip3o.errors import UserError
from tests.record_robots import NAVIGATION, SEED, actions

TRACES = Path(__file__).parent / "data" / "robots.npz"
SENSORS = {"Point": 12, "Car": 24}  # numbers of an observation before what lies where


def scenario(name: str, **changes: Any) -> ScenarioConfig:
    return ScenarioConfig(
        **{
            "name": "test",
            "world": "navigation",
            "id": name,
            "num_agents": 1,
            "horizon": 1000,
            "end_rule": "all",
            **changes,
        }
    )


def make(name: str, *costs: str) -> ArrayEnv:
    return make_array_env(scenario(name), costs or ("cost",))


def robot_of(name: str) -> str:
    return "Car" if name.startswith("Car") else "Point"


def towards_goal(course: Course, robot: str) -> np.ndarray:
    """An action [2] that drives at the goal, so that goals and costs happen."""
    way = np.append(course._xpos[course._goal_body][:2] - course._position[:2], 0.0) @ course._rotation.reshape(3, 3)
    if robot == "Point":
        return np.array([np.clip(way[0], -0.6, 0.6), np.clip(2.0 * np.arctan2(way[1], way[0]), -1.0, 1.0)])
    turn = np.arctan2(way[0], -way[1])
    return np.array([0.5 + turn, 0.5 - turn])


@pytest.mark.parametrize("name", ["PointGoal1", "CarGoal2", "PointButton1", "CarButton2"])
def test_a_step_is_the_packages_own_to_the_bit(name: str) -> None:
    robot, task = robot_of(name), name.removeprefix(robot_of(name))
    theirs = import_builder()(task_id=f"Safety{name}-v0", config={"agent_name": robot})
    names = COSTS[task]
    ours, seen = Course(robot, task, names), np.zeros(theirs.observation_space.shape[0], np.float32)
    goals = found = 0
    theirs.reset(seed=4)
    ours.reset(4)
    noise = np.random.default_rng(4).normal(0.0, 0.2, (250, 2))
    for bump in noise:
        action = towards_goal(ours, robot) + bump
        observation, reward, _, _, _, info = theirs.step(action)
        result = ours.step(action)
        ours.observe(seen)
        goals += info.get("goal_met", False)
        found += info["cost_sum"] > 0
        keys = ["cost_sum" if cost == "cost" else f"cost_{cost}" for cost in names]
        assert (result[0], result[1], result[3]) == (reward, [info.get(key, 0.0) for key in keys], goals)
        assert np.array_equal(ours._data.qpos, theirs.task.data.qpos)
        assert np.array_equal(seen, observation.astype(np.float32))
    assert goals
    assert found or name == "PointGoal1"


@pytest.mark.parametrize("name", NAVIGATION)
def test_traces_of_the_published_package(name: str) -> None:
    """MuJoCo 2.3.3 and 3.3.7: a Point moves alike for 40 steps; a Car bounces on its wheels, which is chaos at once."""
    traces = np.load(TRACES)
    rows, numbers = traces[f"{name}.observations"], traces[f"{name}.rewards_costs"]
    env, plain = make(name), SENSORS[robot_of(name)]
    assert np.array_equal(env.reset(SEED).observation[0, plain:], rows[0, plain:]), "another layout"
    is_point = robot_of(name) == "Point"
    for step, action in enumerate(actions()[: 40 if is_point else 10]):
        now = env.step(action[None])
        if is_point:
            assert now.observation[0, :plain] == pytest.approx(rows[step + 1, :plain], rel=1e-6, abs=1e-6)
            # Gremlins, boxes on the floor, settle otherwise by a millimetre.
            assert now.observation[0, plain:] == pytest.approx(rows[step + 1, plain:], abs=5e-3)
        assert now.reward[0] == pytest.approx(numbers[step, 0], abs=1e-6 if is_point else 0.02)
        assert now.cost[0, 0] == numbers[step, 1]


def test_an_episode_is_a_pure_function_of_its_seed() -> None:
    def bytes_of(env: ArrayEnv, seed: int) -> list[bytes]:
        found = [env.reset(seed).observation.tobytes()]
        for action in actions()[:25]:
            now = env.step(action[None])
            found.append(now.observation.tobytes() + now.reward.tobytes() + now.cost.tobytes())
        return found

    env = make("CarButton1")
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    first = bytes_of(env, 3)
    bytes_of(env, 4)
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
    assert bytes_of(env, 3) == first == bytes_of(make("CarButton1"), 3)
    assert bytes_of(env, 4) != first


def test_physics_that_break_down_end_the_life() -> None:
    env = make("PointGoal1")
    env.reset(0)
    env.robot._data.qvel[0] = np.nan  # type: ignore[attr-defined]
    now = env.step(np.zeros((1, 2)))
    assert (now.over, now.terminated[0], now.outcome[0], now.reward[0]) == (True, True, UNSTABLE, -10.0)
    assert np.isfinite(now.final_observation).all()
    assert env.reset(0).alive.all()


def test_costs_by_name() -> None:
    assert dict(find_world(scenario("PointGoal1")).costs(scenario("PointGoal1"))) == {
        "cost": "count",
        "hazards": "count",
    }
    env = make("CarButton1", "gremlins", "cost", "buttons")
    assert env.spec.cost_names == ("gremlins", "cost", "buttons")
    with pytest.raises(
        UserError, match="unknown constraint 'vases_contact': known are cost, hazards, buttons, gremlins"
    ):
        make("PointButton1", "vases_contact")


def test_refusals_are_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"scenario.id=PointPush1: must be one of PointGoal1, .*, CarButton2$"):
        make("PointPush1")
    with pytest.raises(UserError, match=r"scenario\.num_agents=2"):
        make_array_env(scenario("PointGoal1", num_agents=2), ["cost"])
    assert len(IDS) == 8

    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr("maip3o.envs.robots.safety_gymnasium.version", missing)
    with pytest.raises(UserError, match=r"not installed; pip install .* --no-deps safety-gymnasium==1.0.0$"):
        make("PointGoal1")
