"""Environments of PettingZoo as worlds, with those of MPE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import ArrayEnv
from maip3o.envs.registry import find_world, make_array_env
from maip3o.errors import UserError

SPREAD = {"continuous_actions": True, "max_cycles": 12}


def crowding(env: Any, agent: str, info: Mapping[str, Any]) -> float:
    """A cost: how many of the others overlap this agent."""
    scenario, (me,) = env.scenario, [one for one in env.world.agents if one.name == agent]
    return float(sum(scenario.is_collision(me, one) for one in env.world.agents if one is not me))


def wrong(env: Any, agent: str, info: Mapping[str, Any]) -> float:
    return float("nan")


def scenario(**changes: Any) -> ScenarioConfig:
    usual = {
        "name": "test",
        "world": "pettingzoo",
        "id": "mpe2.simple_spread_v3",
        "cost": f"{__name__}:crowding",
        "num_agents": 3,
        "horizon": 100,
        "end_rule": "all",
        "settings": SPREAD,
    }
    return ScenarioConfig(**{**usual, **changes})


def make(**changes: Any) -> ArrayEnv:
    return make_array_env(scenario(**changes), ["cost"])


def actions(steps: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1.5, 1.5, (steps, 3, 5))


def test_numbers_are_those_of_the_environment() -> None:
    from mpe2 import simple_spread_v3

    theirs = simple_spread_v3.parallel_env(N=3, **SPREAD)
    env = make()
    raw, now = theirs.reset(seed=5)[0], env.reset(5)
    steps = 0
    for action in actions(12):
        assert np.array_equal(now.observation, [raw[name] for name in theirs.agents])
        low_to_high = ((action.clip(-1, 1) + 1) / 2).astype(np.float32)
        names = list(theirs.agents)
        raw, rewards, _, truncated, _ = theirs.step(dict(zip(names, low_to_high, strict=True)))
        now, steps = env.step(action), steps + 1
        assert now.reward.tolist() == [rewards[name] for name in names]
        assert now.truncated.tolist() == [truncated[name] for name in names]
        assert now.cost[:, 0].tolist() == [crowding(theirs.unwrapped, name, {}) for name in names]
    assert (steps, now.over, now.outcome.tolist()) == (12, True, [2, 2, 2])
    assert np.array_equal(now.final_observation, [raw[name] for name in names])
    with pytest.raises(UserError, match="after the end"):
        env.step(action)


def test_our_horizon_cuts_every_life() -> None:
    env = make(horizon=4)
    env.reset(0)
    results = [env.step(action) for action in actions(4)]
    assert [now.over for now in results] == [False, False, False, True]
    assert results[-1].truncated.all()
    assert results[-1].final_observation.any()


def test_an_episode_is_a_pure_function_of_its_seed() -> None:
    def bytes_of(env: ArrayEnv, seed: int) -> list[bytes]:
        found = [env.reset(seed).observation.tobytes()]
        return found + [env.step(action).observation.tobytes() for action in actions(12)]

    env = make()
    first = bytes_of(env, 3)
    bytes_of(env, 4)
    assert bytes_of(env, 3) == first == bytes_of(make(), 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {}}, r"scenario\.id=mpe2.simple_spread_v3: the actions must be numbers \(Box\), not Discrete$"),
        ({"settings": {"speed": 3}}, r"scenario\.settings=.*: mpe2.simple_spread_v3 refuses them \(.*speed.*\)$"),
        ({"num_agents": 10}, r"scenario\.num_agents=10: mpe2.simple_spread_v3 has 3 agents$"),
        ({"id": ""}, r"scenario\.id: name the module that has parallel_env"),
        ({"id": "mpe2.nothing"}, r"scenario\.id=mpe2.nothing: must be a module that has parallel_env"),
        ({"id": "json"}, r"scenario\.id=json: must be a module that has parallel_env"),
        ({"cost": "json:nothing"}, r"scenario\.cost=json:nothing: cannot be imported"),
        ({"cost": ""}, "unknown constraint 'cost'"),
        ({"id": "mpe2.simple_speaker_listener_v4", "num_agents": 2}, "the agents must have observations of one shape"),
    ],
)
def test_what_cannot_be_a_world_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        make(**changes)
    assert "\n" not in str(error.value)


def test_a_cost_that_is_not_there_is_found_before_the_run() -> None:
    looked_for = scenario(cost="damage")
    with pytest.raises(UserError, match=r"scenario\.cost=damage: the info of a step has no such key; it has nothing$"):
        find_world(looked_for).inspect(looked_for)


def test_wrong_actions_and_numbers_that_are_none() -> None:
    env = make(cost=f"{__name__}:wrong")
    env.reset(0)
    with pytest.raises(UserError, match=r"action has shape \(3, 2\): must be \(3, 5\)"):
        env.step(np.zeros((3, 2)))
    with pytest.raises(UserError, match="the cost of agent_0 is not finite in step 1"):
        env.step(np.zeros((3, 5)))
