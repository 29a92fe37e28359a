"""PettingZoo's own tests, and a short drive on every map."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test
from pettingzoo.test.seed_test import parallel_seed_test

import maip3o
from maip3o.envs import observation_layout, scenario_names

pytestmark = pytest.mark.simulator


@pytest.mark.parametrize("name", ["intersection", "parking_lot"])
def test_parallel_api(name: str) -> None:
    env = maip3o.make_env(name)
    assert env.possible_agents == [f"agent{index}" for index in range(10)]
    assert env.observation_space("agent0").shape == (91,)
    assert env.action_space("agent0").shape == (2,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(env, num_cycles=300)
    env.close()


def serve(connection: Any) -> None:
    """Host one environment after the other in this process, on behalf of RemoteEnv."""
    env: Any = None
    while True:
        name, arguments, keywords = connection.recv()
        if name == "quit":
            return
        if name == "make_env":
            env = maip3o.make_env(*arguments, **keywords)
            answer = None
        else:
            answer = getattr(env, name)(*arguments, **keywords)
        connection.send((answer, list(env.agents)))


class RemoteEnv:
    """A ParallelEnv in a process of its own. Spaces live here, for PettingZoo seeds and samples them."""

    def __init__(self, connection: Any, scenario: str) -> None:
        self.connection = connection
        self.agents: list[str] = []
        self.spaces: dict[tuple[str, str], Any] = {}
        self._call("make_env", scenario)

    def _call(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        self.connection.send((name, arguments, keywords))
        answer, self.agents = self.connection.recv()
        return answer

    def reset(self, seed: int) -> Any:
        return self._call("reset", seed=seed)

    def step(self, actions: dict[str, Any]) -> Any:
        return self._call("step", actions)

    def close(self) -> None:
        self._call("close")

    def _space(self, kind: str, agent: str) -> Any:
        if (kind, agent) not in self.spaces:
            self.spaces[kind, agent] = self._call(kind, agent)
        return self.spaces[kind, agent]

    def action_space(self, agent: str) -> Any:
        return self._space("action_space", agent)

    def observation_space(self, agent: str) -> Any:
        return self._space("observation_space", agent)


@pytest.mark.slow
def test_parallel_seed_with_each_environment_in_its_own_process() -> None:
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(2)]
    hosts = [context.Process(target=serve, args=(theirs,), daemon=True) for _, theirs in pipes]
    for host in hosts:
        host.start()
    for name in ("intersection", "parking_lot"):
        waiting = [ours for ours, _ in pipes]
        parallel_seed_test(lambda: RemoteEnv(waiting.pop(), name), num_cycles=30)  # noqa: B023
    for ours, _ in pipes:
        ours.send(("quit", (), {}))
    for host in hosts:
        host.join(20)
        assert host.exitcode == 0


@pytest.mark.parametrize("name", scenario_names("driving"))
def test_every_scenario_drives(name: str) -> None:
    env = maip3o.make_env(name, costs=["termination", "crash", "off_road"])
    observations, _ = env.reset(seed=7)
    layout = observation_layout(name)
    for _ in range(8):
        for agent in env.agents:
            assert env.observation_space(agent).contains(observations[agent])
            assert len(observations[agent]) == layout[-1].stop
        if not env.agents:
            break
        observations, rewards, _, _, infos = env.step({agent: np.array([0.0, 0.5]) for agent in env.agents})
        assert np.isfinite(list(rewards.values())).all()
        assert all(set(info["costs"]) == {"termination", "crash", "off_road"} for info in infos.values())
    road_map = env.road_map()
    x_min, y_min, x_max, y_max = road_map.bounds
    states = env.car_states()
    assert states.present.all()
    assert ((states.position > [x_min, y_min]) & (states.position < [x_max, y_max])).all()
    assert road_map.lines
    for route, position in zip(env.array_env.routes(), states.position, strict=True):
        assert np.linalg.norm(route - position, axis=1).min() < 60
    env.close()
