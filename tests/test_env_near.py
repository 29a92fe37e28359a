"""Observations that magnify what is near."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from eval_policies import make_run

from maip3o.config.schema import RunnerConfig
from maip3o.envs import load_scenario, make_array_env, observation_layout
from maip3o.envs.driving.near import NearEncoding, linear_lidar, near_encoding, outline
from maip3o.envs.driving.world import WORLD
from maip3o.errors import UserError
from maip3o.evaluation.filming import Cameraman
from maip3o.evaluation.procedure import Evaluation
from maip3o.evaluation.request import Request
from maip3o.evaluation.run import evaluated_config
from maip3o.policy import load_policy
from maip3o.runners.pool import make_pool
from maip3o.runners.prerequisites import require_fitting_init
from maip3o.video.filming import _lidar

LAYOUT = {part.name: part for part in observation_layout("parking_lot")}
LIDAR, SIZE = LAYOUT["lidar"], LAYOUT["lidar"].stop


def encoded(name: str, metres: float, beam: int = 0) -> float:
    """The near number of a part at so many metres."""
    part = LAYOUT[name]
    linear = np.full((1, SIZE), 0.5, np.float32)
    linear[0, part.start + beam] = (metres - part.low) / (part.high - part.low)
    return float(NearEncoding(list(LAYOUT.values()))(linear)[0, part.start + beam])


def test_lidar_is_the_logarithm_of_the_free_space_beyond_the_own_car() -> None:
    for beam, own in ((0, 2.2575), (18, 0.926), (36, 2.2575), (54, 0.926)):  # ahead, left, behind, right
        full = np.log1p((40 - own) / 0.5)
        for free in (0.0, 0.1, 1.0, 10.0):
            assert encoded("lidar", own + free, beam) == pytest.approx(np.log1p(free / 0.5) / full, abs=1e-5)
        assert encoded("lidar", own - 0.1, beam) == 0.0
        assert encoded("lidar", 40.0, beam) == 1.0


def test_a_corner_of_the_own_car_is_where_its_two_sides_meet() -> None:
    own, angle = outline(72), np.radians(5 * np.arange(72))
    inside = np.stack([own * np.cos(angle), own * np.sin(angle)])
    assert np.allclose(np.maximum(abs(inside[0]) / 2.2575, abs(inside[1]) / 0.926), 1.0)


@pytest.mark.parametrize("name", ["checkpoint_ahead", "next_checkpoint_left"])
def test_checkpoints_keep_their_sign(name: str) -> None:
    assert encoded(name, 0.0) == 0.5
    assert encoded(name, 50.0) == 1.0
    assert encoded(name, -50.0) == 0.0
    for metres in (0.2, 3.0, 30.0):
        assert encoded(name, metres) == pytest.approx(0.5 + 0.5 * np.log1p(metres) / np.log1p(50), abs=1e-5)
        assert encoded(name, -metres) == pytest.approx(1 - encoded(name, metres), abs=1e-5)


def test_all_else_and_empty_rows_stay_as_they_are() -> None:
    linear = np.random.default_rng(0).uniform(size=(5, SIZE)).astype(np.float32)
    linear[2] = 0.0
    near = NearEncoding(list(LAYOUT.values()))(linear)
    assert near.dtype == np.float32
    assert not near[2].any()
    assert near.min() >= 0.0
    assert near.max() <= 1.0
    same = (near[[0, 1, 3, 4]] == linear[[0, 1, 3, 4]]).all(axis=0)
    distances = {"lidar", "checkpoint_ahead", "checkpoint_left", "next_checkpoint_ahead", "next_checkpoint_left"}
    for name, part in LAYOUT.items():
        assert same[part.slice].all() == (name not in distances)


def test_films_get_back_what_the_lidar_saw() -> None:
    own = outline(72) / 40
    linear = np.random.default_rng(1).uniform(own, 1.0, (3, 4, 72)).astype(np.float32)
    rows = np.full((12, SIZE), 0.5, np.float32)
    rows[:, LIDAR.slice] = linear.reshape(12, 72)
    near = NearEncoding(list(LAYOUT.values()))(rows)[:, LIDAR.slice].reshape(linear.shape)
    assert np.allclose(linear_lidar(near, 40.0), linear, atol=1e-5)


@pytest.mark.simulator
def test_the_world_is_the_same_and_only_seen_otherwise() -> None:
    worlds = []
    for observation in ("linear", "near"):
        env = make_array_env(load_scenario("parking_lot", observation=observation, horizon=60), ["termination"])
        results, draws = [env.reset(5)], np.random.default_rng(0)
        while not results[-1].over:
            results.append(env.step(draws.uniform((-1, 0), 1, (env.num_slots, 2))))
        env.close()
        worlds.append(results)
    encode = NearEncoding(observation_layout("parking_lot"))
    assert len(worlds[0]) == len(worlds[1])
    ends = 0
    for linear, near in zip(*worlds, strict=True):
        assert np.array_equal(near.observation, encode(linear.observation))
        assert np.array_equal(near.final_observation, encode(linear.final_observation))
        assert np.array_equal(near.reward, linear.reward)
        assert np.array_equal(near.outcome, linear.outcome)
        ends += int((linear.outcome > 0).sum())
    assert ends == 10


@pytest.mark.simulator
def test_a_film_of_it_shows_the_same_lidar(tmp_path: Path) -> None:
    films = []
    with make_pool(RunnerConfig(), 1) as pool:
        for observation in ("linear", "near"):
            world = {"name": "parking_lot", "horizon": 20, "observation": observation}
            policy = load_policy(str(make_run(tmp_path / observation, **world)))
            policy.learner.actor.head.weight.data.zero_()  # acts alike, whatever it sees
            films.append(Cameraman(pool, Evaluation(policy.config, deterministic=True), "full").footage(policy, 3))
    linear, near = (np.where(film.active[..., None], film.lidar, 1.0) for film in films)
    assert linear.min() < 0.2
    assert np.allclose(np.maximum(linear, outline(72) / 40), near, atol=1e-5)


@pytest.mark.parametrize(
    ("metadrive", "words"),
    [
        ({"vehicle_config": {"lidar": {"distance": 2.0}}}, "lidar.distance=2: must be above 2.5 m"),
        ({"random_agent_model": True}, "default car only"),
        ({"vehicle_config": {"vehicle_model": "xl"}}, "default car only"),
    ],
)
def test_cars_that_it_does_not_fit_are_refused(metadrive: dict[str, object], words: str) -> None:
    scenario = load_scenario("parking_lot", observation="near", backend="stock", metadrive=metadrive)
    for check in (near_encoding, WORLD.inspect):
        with pytest.raises(UserError, match=words):
            check(scenario)


def test_a_film_finds_the_lidar_where_the_layout_says() -> None:
    part = next(part for part in observation_layout("tollgate") if part.name == "lidar")
    assert _lidar(load_scenario("tollgate")) == (part.slice, part.high)
    assert part.stop < observation_layout("tollgate")[-1].stop


@pytest.mark.simulator
def test_a_worker_simulates_without_pytorch() -> None:
    code = """
import sys
from maip3o.envs import load_scenario, make_array_env
make_array_env(load_scenario("parking_lot", observation="near"), ["termination"]).close()
sys.exit("torch" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_policy_sees_other_scenarios_as_it_was_trained_to(tmp_path: Path) -> None:
    policy = load_policy(str(make_run(tmp_path, name="parking_lot", observation="near")))
    assert evaluated_config(policy, Request(""), None).scenario.observation == "near"
    elsewhere = evaluated_config(policy, Request("", scenario="intersection"), None).scenario
    assert (elsewhere.name, elsewhere.observation) == ("intersection", "near")


def test_networks_that_saw_otherwise_are_no_beginning(tmp_path: Path) -> None:
    start = load_policy(str(make_run(tmp_path, observation="near"))).config
    start.init = str(tmp_path)
    require_fitting_init(start)
    start.scenario.observation = "linear"
    with pytest.raises(UserError, match=r"its scenario.observation is near, that of this run linear"):
        require_fitting_init(start)
