"""MetaDrive's traps, one test each, on the corrected stock simulator."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import env_trace
import numpy as np
import psutil
import pytest
from env_trace import Job

from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.contract import ArrayEnv, StepResult
from maip3o.envs.driving.outcomes import Cause
from maip3o.errors import UserError

pytestmark = pytest.mark.simulator

FORWARD = (0.0, 1.0)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap 1: the wheel ships no assets, and MetaDrive's engine fetches them when it starts. All tests here run so."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("touched the network")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[ArrayEnv] = []

    def make_one(name: str, **overrides: Any) -> ArrayEnv:
        scenario = load_scenario(name, **{"backend": "stock", "end_rule": "all", **overrides})
        made.append(make_array_env(scenario, ["termination", "crash", "off_road"]))
        return made[-1]

    yield make_one
    for env in made:
        env.close()


def steps(env: ArrayEnv, seed: int, count: int, action: tuple[float, float] = FORWARD) -> list[StepResult]:
    """Up to `count` steps in which every car does the same."""
    env.reset(seed)
    results: list[StepResult] = []
    while len(results) < count and not (results and results[-1].over):
        results.append(env.step(np.tile(action, (env.num_slots, 1))))
    return results


def test_network_and_engine_per_process(make: Any) -> None:
    """Traps 1 and 2: starts with sockets blocked; a second engine in the process is refused in one line."""
    env = make("intersection", num_agents=2)
    env.reset(0)
    with pytest.raises(UserError, match="one environment per process"):
        make("parking_lot")
    env.close()
    with pytest.raises(UserError, match="closed"):
        env.reset(0)
    make("parking_lot", num_agents=2).reset(0)


@pytest.mark.parametrize("name", ["intersection", "parking_lot"])
def test_any_seed_is_an_episode_of_its_own(make: Any, name: str) -> None:
    """Trap 3: a seed is MetaDrive's scenario index, below num_scenarios, and spawns are unseeded unless told so."""
    env = make(name)
    seeds = [0, 1, 123_456_789, 2**31 - 1]
    first = {seed: env_trace.drive(env, seed, 3) for seed in seeds}
    assert len(set(first.values())) == len(seeds)
    assert {seed: env_trace.drive(env, seed, 3) for seed in reversed(seeds)} == first


def test_time_out_is_truncation(make: Any) -> None:
    """Trap 4: truncate_as_terminate gives both flags at the horizon."""
    results = steps(make("intersection", num_agents=3, horizon=4), 0, 10, (0.0, 0.0))
    assert len(results) == 4
    last = results[-1]
    assert last.over
    assert last.truncated.all()
    assert not last.terminated.any()
    assert (last.outcome == Cause.TIME_OUT).all()
    assert last.final_observation.any(axis=1).all()


def test_a_road_exit_costs_and_does_not_hide_a_crash(make: Any) -> None:
    """Trap 5: MetaDrive's cost of a road exit is 0."""
    results = steps(make("intersection"), 0, 80, (0.4, 1.0))
    causes = np.stack([result.outcome for result in results])
    off_road = causes == Cause.OFF_ROAD
    assert off_road.any()
    costs = np.stack([result.cost for result in results])
    assert (costs[off_road] == [1, 0, 1]).all()
    assert (costs[causes == Cause.CRASH_VEHICLE][:, :2] == 1).all()
    assert not costs[causes == Cause.NONE][:, 0].any()


@pytest.mark.parametrize("name", ["intersection", "parking_lot"])
def test_the_episode_ends_when_nobody_lives(make: Any, name: str) -> None:
    """Trap 6: MetaDrive raises when stepped with no living car, and `__all__` may stay False on a mixed last step."""
    env = make(name, num_agents=4, horizon=120)
    results = steps(env, 3, 200, (0.05, 0.8))
    assert results[-1].over
    lives = np.stack([result.outcome for result in results])
    assert ((lives != Cause.NONE).sum(axis=0) == 1).all()
    with pytest.raises(UserError, match="after the end"):
        env.step(np.zeros((4, 2)))


def test_wrecks_stay_25_steps_in_their_slots_and_new_cars_take_freed_ones(make: Any) -> None:
    """Trap 7: dead cars remain as obstacles, and respawn makes new ids for ever."""
    env = make("intersection_respawn", num_agents=12)
    env.reset(1)
    ended_at: dict[int, int] = {}
    waits, lives = [], env.num_slots
    for t in range(90):
        result = env.step(np.tile((0.05, 0.8), (env.num_slots, 1)))
        present = env.car_states().present
        lives += int(result.fresh.sum())
        for slot in np.flatnonzero(result.fresh):
            if slot in ended_at:
                waits.append(t - ended_at.pop(slot))
        for slot in np.flatnonzero((result.outcome != Cause.NONE) & (result.outcome != Cause.ARRIVED)):
            ended_at[int(slot)] = t
        assert all(present[slot] for slot, since in ended_at.items() if t - since < 25)
        assert present.sum() <= env.num_slots
    assert lives > env.num_slots
    assert waits
    assert min(waits) == 25


def test_cars_cut_by_the_half_rule_are_truncated_one_by_one(make: Any) -> None:
    """Trap 8: the flag is per car, and the dead stay terminated."""
    results = steps(make("intersection", end_rule="half"), 0, 150, (0.1, 1.0))
    last = results[-1]
    cut = last.outcome == Cause.CUT
    assert last.over
    assert cut.any()
    assert (last.truncated == cut).all()
    eliminated = sum(int(result.cost[:, 0].sum()) for result in results)
    assert 6 <= eliminated <= 10 - int(cut.sum())


@pytest.mark.slow
def test_episodes_are_the_same_bytes_in_any_order_and_in_any_process() -> None:
    """The other process has another PYTHONHASHSEED, another order of maps and another order of episodes."""
    jobs = [
        Job("intersection", "fast", tuple(range(1000, 1050)), 40),
        Job("parking_lot", "fast", tuple(range(1000, 1050)), 40),
        Job("parking_lot_respawn", "stock", (11, 12), 50),
    ]
    rng = np.random.default_rng(0)
    shuffled = [replace(job, seeds=tuple(rng.permutation(job.seeds).tolist())) for job in jobs]
    here = [env_trace.trace(job) for job in jobs]
    assert env_trace.trace_in_new_process(shuffled[::-1], hash_seed=1)[::-1] == here


def test_the_corrections_leave_a_first_episode_as_metadrive_has_it(make: Any) -> None:
    """Our subclasses change what follows the first episode, and respawn; not how cars drive."""
    from metadrive.envs.marl_envs import MultiAgentIntersectionEnv

    from maip3o.envs.driving.corrected import OfflineEngine

    class Upstream(MultiAgentIntersectionEnv):
        def lazy_init(self) -> None:
            OfflineEngine(self.config)
            self.setup_engine()

    seed, length = 5, 60
    actions = env_trace.random_actions(seed, length, 10)
    config = {"num_agents": 10, "allow_respawn": False, "horizon": 500, "num_scenarios": 10, "log_level": 50}
    upstream = Upstream({**config, "force_seed_spawn_manager": True})
    try:
        expected = [upstream.reset(seed=seed)[0]]
        rewards = []
        for action in actions:
            observation, reward, *_ = upstream.step({agent: action[int(agent[5:])] for agent in upstream.agents})
            expected.append(observation)
            rewards.append(reward)
    finally:
        upstream.close()
    env = make("intersection")
    result = env.reset(seed)
    assert all((result.observation[int(agent[5:])] == row).all() for agent, row in expected[0].items())
    for action, observations, reward in zip(actions, expected[1:], rewards, strict=True):
        result = env.step(action)
        ours = result.observation + result.final_observation  # one of the two is zero
        for agent, row in observations.items():
            assert (ours[int(agent[5:])] == row).all()
            assert result.reward[int(agent[5:])] == reward[agent]


def test_parking_lot_respawns_where_it_should(make: Any) -> None:
    """MetaDrive 0.4.3 puts every new car at one place, and computes a filter of spaces that it then ignores."""
    env = make("parking_lot_respawn")
    env.reset(2)
    metadrive = env._backend._env
    places = set()
    for _ in range(120):
        result = env.step(np.tile((0.1, 0.5), (env.num_slots, 1)))
        if result.over:
            break
        for slot in np.flatnonzero(result.fresh):
            car = env._backend._cars()[slot]
            places.add(car.config["spawn_lane_index"])
            lane = metadrive.current_map.road_network.get_lane(car.config["spawn_lane_index"])
            along, across = lane.local_coordinates(car.position)
            assert 0 < along < lane.length
            assert abs(across) < 0.1
            spawned_in = [node[:3] for node in car.config["spawn_lane_index"][:2] if "P" in node]
            others = [other for other in env._backend._cars() if other is not None and other is not car]
            living = set(metadrive.agents.values())
            destinations = {other.config["destination"][:3] for other in others if other in living}
            assert not destinations.intersection(spawned_in)
    assert len(places) >= 4


@pytest.mark.parametrize(("backend", "resets"), [("fast", 500), ("stock", 30)])
def test_memory_does_not_grow(make: Any, backend: str, resets: int) -> None:
    """MetaDrive leaks 1 to 1.6 MB a reset."""
    env = make("intersection", backend=backend)
    for seed in range(5):
        env.reset(seed)
    before = psutil.Process().memory_info().rss
    for seed in range(resets):
        env.reset(seed)
    assert psutil.Process().memory_info().rss - before < 20e6 * max(resets, 100) / 500
