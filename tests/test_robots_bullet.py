"""Bullet Safety Gym: the package's own numbers, a simulated clock, and the same bytes for a seed."""

from __future__ import annotations

import random
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import ArrayEnv
from maip3o.envs.registry import make_array_env
from maip3o.envs.robots.bullet import IDS, UNSTABLE
from maip3o.envs.robots.bullet_safety_gym import TIME
from maip3o.errors import UserError
from tests.record_robots import BULLET, SEED, actions

TRACES = Path(__file__).parent / "data" / "robots.npz"


def scenario(name: str, **changes: Any) -> ScenarioConfig:
    usual = {"name": "test", "world": "bullet", "id": name, "num_agents": 1, "horizon": 200, "end_rule": "all"}
    return ScenarioConfig(**{**usual, **changes})


def make(name: str, *costs: str) -> ArrayEnv:
    return make_array_env(scenario(name), costs or ("cost",))


@pytest.mark.parametrize("name", BULLET)
def test_traces_of_the_published_package(name: str) -> None:
    """Recorded with Gymnasium 0.28.1 and NumPy 1.23.5, and its boxes on the simulation's time: equal to the bit."""
    traces = np.load(TRACES)
    rows, numbers = traces[f"{name}.observations"], traces[f"{name}.rewards_costs"]
    env = make(name)
    assert np.array_equal(env.reset(SEED).observation[0], rows[0])
    for step, action in enumerate(actions()):
        now = env.step(action[None])
        assert np.array_equal(now.observation[0], rows[step + 1])
        assert (now.reward[0], now.cost[0, 0]) == tuple(numbers[step])
    env.close()


@pytest.mark.parametrize("name", ["CarCircle", "BallReach"])
def test_an_episode_is_a_pure_function_of_its_seed(name: str) -> None:
    def bytes_of(env: ArrayEnv, seed: int) -> list[bytes]:
        found = [env.reset(seed).observation.tobytes()]
        for action in actions()[:30]:
            now = env.step(action[None])
            found.append(now.observation.tobytes() + now.reward.tobytes() + now.cost.tobytes())
        return found

    env = make(name)
    states = np.random.get_state()[1].tobytes(), random.getstate()  # noqa: NPY002
    first = bytes_of(env, 3)
    bytes_of(env, 4)
    assert (np.random.get_state()[1].tobytes(), random.getstate()) == states  # noqa: NPY002
    assert bytes_of(env, 3) == first
    other = make(name)
    assert bytes_of(other, 3) == first
    assert bytes_of(other, 4) != first
    env.close()
    other.close()


def test_worlds_side_by_side_do_not_meet() -> None:
    """Their clock and the memory of their bodies are each their own."""
    expected = []
    for seed in (0, 1):
        env = make("BallReach")
        env.reset(seed)
        expected.append([env.step(action[None]).observation.copy() for action in actions()[: 20 + seed]][-1])
        env.close()
    together = [make("BallReach"), make("BallReach")]
    together[1].reset(1)
    together[1].step(actions()[0][None])
    together[0].reset(0)
    for step in range(20):
        first = together[0].step(actions()[step][None]).observation.copy()
        second = together[1].step(actions()[step + 1][None]).observation.copy()
    assert np.array_equal([first, second], expected)
    for env in together:
        env.close()


def test_moving_boxes_follow_the_simulation() -> None:
    env = make("BallReach")
    env.reset(0)
    box = next(thing for thing in env.robot.env.obstacles if thing.movement == "circular")  # type: ignore[attr-defined]
    places = []
    for step in range(100):
        env.step(np.zeros((1, 2)))
        places.append(box.get_position()[:2])
        assert pytest.approx(step * 4 / 60) == TIME.now
    way = np.linalg.norm(np.diff(places[10:], axis=0), axis=1)  # the first steps bring it to its circle
    assert way.mean() == pytest.approx(0.7 * 4 / 60, rel=0.1)  # radius 0.7 m, 1 rad/s


def test_costs_by_name() -> None:
    env = make("CarRun", "velocity", "outside", "cost")
    env.reset(0)
    total = sum(env.step(np.array([[1.0, 0.4]])).cost[0] for _ in range(100))
    assert (total > 0).all()
    assert max(total[:2]) <= total[2] <= total[0] + total[1]
    with pytest.raises(UserError, match="unknown constraint 'velocity': known are cost, outside"):
        make("BallCircle", "velocity")


def test_numbers_that_are_none_end_the_life() -> None:
    env = make("BallRun")
    env.reset(0)
    robot = env.robot.env.agent  # type: ignore[attr-defined]
    robot.bc.resetBaseVelocity(robot.body_id, [np.nan, 0.0, 0.0])
    now = env.step(np.zeros((1, 2)))
    assert (now.over, now.terminated[0], now.outcome[0]) == (True, True, UNSTABLE)
    assert np.isfinite(now.final_observation).all()
    assert env.reset(0).alive.all()


def test_refusals_are_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"scenario\.id=BallGather: must be one of BallCircle, .*, CarReach$"):
        make("BallGather")
    assert len(IDS) == 6

    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr("maip3o.envs.robots.bullet_safety_gym.version", missing)
    with pytest.raises(UserError, match=r"not installed; pip install .* --no-deps bullet-safety-gym==1\.4\.0$"):
        make("BallRun")
