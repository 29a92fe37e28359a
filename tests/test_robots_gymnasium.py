"""Environments of Gymnasium that this package does not ship, with a cost by a key of info or by a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import ArrayEnv
from maip3o.envs.registry import find_world, make_array_env
from maip3o.errors import UserError
from maip3o.runners.compose import compose
from tests.toy_run import final_state, train_inline


def too_fast(env: Any, info: Mapping[str, Any]) -> float:
    """A cost: the pendulum turns faster than 2 rad/s."""
    return float(abs(env.state[1]) > 2.0)


class Odd(gymnasium.Env):
    """Four numbers in a square, three actions between -2 and 4; wrong in whatever way it is asked to be."""

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong
        self.observation_space = Box(-1.0, 1.0, (2, 2)) if wrong != "observations" else Dict({"a": Box(0.0, 1.0)})
        self.action_space = Box(-2.0, 4.0, (3,), np.float32) if wrong != "actions" else Discrete(2)
        if wrong == "bounds":
            self.action_space = Box(-np.inf, np.inf, (3,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.taken: list[Any] = []
        return self.np_random.random((2, 2)), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.taken.append(action)
        seen = np.full((2, 2), np.nan if self.wrong == "physics" else 0.5)
        info = {"cost": 0.25, "other": 1.0}
        return seen, np.nan if self.wrong == "reward" else 1.0, len(self.taken) == 4, False, info


gymnasium.register("Odd-v0", entry_point=Odd, max_episode_steps=50)


def scenario(**changes: Any) -> ScenarioConfig:
    usual: dict[str, Any] = {"world": "gymnasium", "num_agents": 1, "horizon": 100, "end_rule": "all", "cost": "cost"}
    return ScenarioConfig(**{"name": "test", "id": "Odd-v0", **usual, **changes})


def make(**changes: Any) -> ArrayEnv:
    return make_array_env(scenario(**changes), ["cost"])


def test_numbers_are_those_of_the_environment() -> None:
    theirs = gymnasium.make("Pendulum-v1")
    env = make(id="Pendulum-v1", cost=f"{__name__}:too_fast", horizon=1000)
    raw, now = theirs.reset(seed=3)[0], env.reset(3)
    costs = set()
    for action in np.random.default_rng(0).uniform(-1.5, 1.5, (200, 1, 1)):
        assert np.array_equal(now.observation[0], raw)
        raw, reward, _, truncated, _ = theirs.step(2.0 * action[0].clip(-1, 1).astype(np.float32))
        now = env.step(action)
        assert now.reward[0] == pytest.approx(reward, rel=1e-6)
        assert now.cost[0, 0] == (abs(theirs.unwrapped.state[1]) > 2.0)
        costs.add(float(now.cost[0, 0]))
    assert costs == {0.0, 1.0}
    assert truncated
    assert (now.over, now.truncated[0], now.terminated[0]) == (True, True, False), "the environment's own time limit"
    assert np.array_equal(now.final_observation[0], raw)


def test_arrays_are_flat_and_actions_are_mapped_to_their_bounds() -> None:
    env = make()
    assert (env.spec.observation_size, env.spec.action_size) == (4, 3)
    env.reset(0)
    now = env.step(np.array([[-1.0, 0.0, 7.0]]))
    assert now.observation.tolist() == [[0.5] * 4]
    assert now.cost.tolist() == [[0.25]]
    taken = env.robot.env.unwrapped.taken[0]  # type: ignore[attr-defined]
    assert (taken.tolist(), taken.dtype) == ([-2.0, 1.0, 4.0], np.float32)


def test_an_end_of_its_own_is_no_time_out() -> None:
    env = make()
    env.reset(0)
    for _ in range(4):
        now = env.step(np.zeros((1, 3)))
    assert (now.over, now.terminated[0], now.truncated[0]) == (True, True, False)
    assert env.spec.outcomes[now.outcome[0]].name == "ended"
    env = make(horizon=3)
    env.reset(0)
    for _ in range(3):
        now = env.step(np.zeros((1, 3)))
    assert (now.over, now.terminated[0], now.truncated[0]) == (True, False, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "scenario.id: name an environment of Gymnasium"),
        ({"id": "Pendullum-v1"}, "scenario.id=Pendullum-v1: gymnasium cannot make it .*[Pp]endulum"),
        ({"id": "no_such_package:Thing-v0"}, "scenario.id=no_such_package:Thing-v0: gymnasium cannot make it"),
        ({"settings": {"gravty": 1.0}}, "scenario.id=Odd-v0: gymnasium cannot make it .*gravty"),
        ({"settings": {"wrong": "actions"}}, "its actions must be an array of numbers \\(Box\\), not Discrete"),
        ({"settings": {"wrong": "observations"}}, "its observations must be an array of numbers \\(Box\\), not Dict"),
        ({"settings": {"wrong": "bounds"}}, "its actions have no bounds; they must have"),
        ({"settings": {"wrong": "physics"}}, "scenario.id=Odd-v0: its observation is not finite"),
        ({"settings": {"wrong": "reward"}}, "scenario.id=Odd-v0: its reward is not finite"),
        ({"cost": "costs"}, "scenario.cost=costs: the info of a step has no such key; it has cost, other"),
        ({"cost": "nowhere.at_all:cost"}, "scenario.cost=nowhere.at_all:cost: cannot be imported"),
        ({"cost": f"{__name__}:np"}, "must be a function, not <module 'numpy'"),
        ({"num_agents": 2}, "scenario.num_agents=2: world gymnasium has one robot; must be 1"),
    ],
)
def test_what_cannot_be_a_world_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    def refuse(wrong: ScenarioConfig) -> None:
        find_world(wrong).check(wrong)
        find_world(wrong).inspect(wrong)

    with pytest.raises(UserError, match=message) as error:
        refuse(scenario(**changes))
    assert "\n" not in str(error.value)


def test_an_action_of_another_size_is_refused() -> None:
    env = make()
    env.reset(0)
    with pytest.raises(UserError, match=r"action has shape \(1, 2\): must be \(1, 3\)"):
        env.step(np.zeros((1, 2)))


def test_a_constraint_needs_a_cost() -> None:
    with pytest.raises(UserError, match=r"scenario gymnasium has no cost; set scenario.cost, or drop it with ~constr"):
        compose(["+scenario=gymnasium", "scenario.id=Pendulum-v1"])
    config, _ = compose(["+scenario=gymnasium", "scenario.id=Pendulum-v1", "algo=ppo", "~constraints.cost"])
    assert not config.constraints


def test_one_that_is_not_shipped_trains(tmp_path: Path) -> None:
    task = ["+scenario=gymnasium", "scenario.id=Pendulum-v1", f"scenario.cost={__name__}:too_fast"]
    length = ["total_steps=1200", "steps_per_iteration=400", "evaluation.episodes=2", "algo.minibatch_steps=100"]
    how = ["num_workers=1", "torch_threads=1", "device=cpu", "logger.tensorboard=false", "logger.quiet=true"]
    config = compose([*task, *length, *how, "constraints.cost.limit=10", "algo=ip3o_paper"])[0]
    train_inline(config, tmp_path / "one")
    train_inline(replace(config), tmp_path / "other")
    assert final_state(tmp_path / "one") == final_state(tmp_path / "other")
