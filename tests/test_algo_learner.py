"""The update as a whole: what it must not see, must not forget and must refuse."""

from __future__ import annotations

import copy
import io
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_episodes import toy_config, toy_learner, toy_rollouts, with_garbage

from maip3o.algo.learner import Learner, NonFiniteError
from maip3o.config.schema import Config, ConstraintConfig
from maip3o.envs.toy import ToyEnv

CRASHY = {"num_agents": 4, "horizon": 11, "hazard": 0.2, "distance": 4.0}
WORLDS = {
    "deaths": ToyEnv(**CRASHY),
    "respawn": ToyEnv(**CRASHY, respawn=True),
    "half rule": ToyEnv(**CRASHY, end_rule="half"),
    "one agent": ToyEnv(1, 6, hazard=0.1),
}


def flat(state: object) -> list[torch.Tensor]:
    """All tensors and numbers of a state dict, in order."""
    if isinstance(state, dict):
        return [tensor for value in state.values() for tensor in flat(value)]
    if isinstance(state, (list, tuple)):
        return [tensor for value in state for tensor in flat(value)]
    return [state] if isinstance(state, torch.Tensor) else [torch.tensor(state)] if state is not None else []


def assert_same_state(one: Learner, other: Learner) -> None:
    ours, theirs = flat(one.state_dict()), flat(other.state_dict())
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("chunk_length", [1, 2, 3, 5, 11, 50])
def test_replayed_ratio_is_one_for_every_chunk_length(world: str, chunk_length: int) -> None:
    learner = toy_learner(toy_config(chunk_length=chunk_length))
    for i in range(2):  # again with trained weights and a normaliser that has seen data
        episodes = toy_rollouts(learner, WORLDS[world], 5, first_seed=100 * i)
        assert learner.update(episodes)["policy/max_ratio_error"] < 1e-5


@pytest.mark.parametrize(("progress", "eta"), [(0.0, 0.5), (0.25, 1.5), (1.0, 4.5)])
def test_a_growing_penalty_has_the_weight_of_its_progress(progress: float, eta: float) -> None:
    growing, constant = toy_config(), toy_config()
    growing.algo.penalty.eta_start, growing.algo.penalty.eta = 0.5, 4.5
    constant.algo.penalty.eta = eta
    learners = [toy_learner(config) for config in (growing, constant)]
    episodes = toy_rollouts(learners[0], WORLDS["deaths"], 5)
    metrics = [learner.update(episodes, progress) for learner in learners]
    assert metrics[0]["constraint/termination/eta"] == eta
    assert_same_state(*learners)


def test_a_weight_by_odds_is_zero_while_nobody_arrives_and_learns_like_mappo() -> None:
    careful, plain = toy_config(), toy_config()
    careful.algo.penalty.growth, plain.algo.method = "odds", "ppo"
    learners = [toy_learner(config) for config in (careful, plain)]
    episodes = toy_rollouts(learners[0], ToyEnv(3, 8), 5)  # a world without a destination
    metrics = [learner.update(episodes) for learner in learners]
    assert metrics[0]["constraint/termination/eta"] == metrics[0]["policy/competence"] == 0.0
    assert_same_state(*learners)


def test_a_weight_by_odds_follows_the_share_that_arrives_and_is_resumed() -> None:
    config = toy_config()
    config.algo.penalty.growth, config.algo.penalty.eta = "odds", 4.0
    learner, world = toy_learner(config), ToyEnv(3, 8, hazard=0.0, distance=1e-9)
    episodes = toy_rollouts(learner, world, 5)  # everybody arrives
    for iteration in (1, 2, 3):
        expected = 1.0 - 0.98**iteration
        metrics = learner.update(episodes[:5]) if iteration == 1 else learner.update(toy_rollouts(learner, world, 5))
        assert metrics["policy/competence"] == pytest.approx(expected)
        assert metrics["constraint/termination/eta"] == pytest.approx(expected / (1.0 - expected))
    again = toy_learner(config)
    again.load_state_dict(learner.state_dict())
    assert again.competence == learner.competence


@settings(max_examples=25, deadline=None)
@given(
    agents=st.integers(1, 6),
    horizon=st.integers(1, 15),
    respawn=st.booleans(),
    end_rule=st.sampled_from(["all", "half", "first"]),
    chunk_length=st.integers(1, 20),
    recurrent=st.booleans(),
    credit=st.sampled_from(["team", "decomposed"]),
    value_target=st.sampled_from(["team", "agent"]),
    seed=st.integers(0, 999),
)
def test_any_shape_learns_with_ratio_one_and_finite_metrics(
    agents: int,
    horizon: int,
    respawn: bool,
    end_rule: str,
    chunk_length: int,
    recurrent: bool,
    credit: str,
    value_target: str,
    seed: int,
) -> None:
    config = toy_config(
        model={"recurrent": recurrent}, chunk_length=chunk_length, credit=credit, value_target=value_target, epochs=1
    )
    learner = toy_learner(config)
    env = ToyEnv(agents, horizon, hazard=0.3, distance=3.0, end_rule=end_rule, respawn=respawn)
    metrics = learner.update(toy_rollouts(learner, env, 2, first_seed=seed))
    assert metrics["policy/max_ratio_error"] < 1e-5
    # Undefined only where nothing varies.
    undefined = {name for name, value in metrics.items() if not math.isfinite(value)}
    assert all("explained_variance" in name for name in undefined)


@pytest.mark.parametrize("world", ["deaths", "half rule"])
@pytest.mark.parametrize("value_target", ["team", "agent"])
def test_garbage_in_dead_slots_changes_no_bit(world: str, value_target: str) -> None:
    config = toy_config(value_target=value_target)
    clean, spoilt = toy_learner(config), toy_learner(config)
    episodes = toy_rollouts(clean, WORLDS[world], 6)
    assert any((~e.active).any() for e in episodes)
    one = clean.update(episodes)
    other = spoilt.update(with_garbage(episodes, np.random.default_rng(1)))
    assert one == pytest.approx(other, abs=0, rel=0, nan_ok=True)
    assert_same_state(clean, spoilt)


def test_two_times_n_iterations_equal_n_then_resume_then_n() -> None:
    config = toy_config("ppo_lagrangian", lr_schedule="linear")
    straight, resumed = toy_learner(config), toy_learner(config)

    def iterate(learner: Learner, iterations: range) -> Learner:
        for i in iterations:
            learner.update(toy_rollouts(learner, WORLDS["half rule"], 4, first_seed=10 * i), progress=i / 4)
        return learner

    iterate(straight, range(4))
    iterate(resumed, range(2))
    buffer = io.BytesIO()
    torch.save(resumed.state_dict(), buffer)
    buffer.seek(0)
    fresh = toy_learner(config)
    fresh.load_state_dict(torch.load(buffer, weights_only=True))
    iterate(fresh, range(2, 4))
    assert_same_state(straight, fresh)
    assert float(fresh.algorithm.multiplier) > 0


def test_a_learner_is_a_function_of_its_seed_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, same = toy_learner(toy_config()), toy_learner(toy_config())
    assert torch.equal(torch.rand(3), expected)
    assert_same_state(one, same)
    config = toy_config()
    config.seed = 4
    assert not torch.equal(toy_learner(config).actor.encoder[0].weight, one.actor.encoder[0].weight)


def test_maip3o_equals_map3o_while_the_constraint_is_violated_and_not_once_it_is_met() -> None:
    def learn(method: str, limit: float) -> Learner:
        config = toy_config(method)
        config.constraints["termination"].limit = limit
        config.algo.penalty.alpha = 2.0
        learner = toy_learner(config)
        episodes = toy_rollouts(learner, ToyEnv(**CRASHY), 6)
        metrics = learner.update(episodes)
        assert (metrics["constraint/termination/penalty_argument"] > 0) == (limit < 0)
        return learner

    assert_same_state(learn("ip3o", -5.0), learn("p3o", -5.0))
    met_celu, met_relu, met_none = (learn(name, 5.0).actor_weights() for name in ("ip3o", "p3o", "ppo"))
    assert any((met_celu[name] != met_relu[name]).any() for name in met_celu)
    assert all((met_none[name] == met_relu[name]).all() for name in met_none)


def test_a_log_prob_that_does_not_belong_to_the_weights_stops_the_run() -> None:
    learner = toy_learner(toy_config())
    episodes = toy_rollouts(learner, WORLDS["deaths"], 3)
    before = copy.deepcopy(learner.state_dict())
    episodes[0].log_prob[2, 0] += 0.01
    with pytest.raises(RuntimeError, match=r"max \|ratio - 1\| = .*e-0.*memory that was not stored"):
        learner.update(episodes)
    assert all(torch.equal(a, b) for a, b in zip(flat(before), flat(learner.state_dict()), strict=True))


@pytest.mark.parametrize("name", ["observation", "reward", "cost", "action"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_non_finite_number_in_the_data_is_refused_by_name(name: str, value: float) -> None:
    learner = toy_learner(toy_config())
    learner.update(toy_rollouts(learner, WORLDS["deaths"], 3))
    episodes = toy_rollouts(learner, WORLDS["deaths"], 3)
    before = copy.deepcopy(learner.state_dict())
    getattr(episodes[1], name)[0, 0] = value
    with pytest.raises(NonFiniteError, match=rf"batch\.{name} holds NaN or infinity in iteration 1:") as caught:
        learner.update(episodes, progress=0.25)
    assert all(torch.equal(a, b) for a, b in zip(flat(before), flat(learner.state_dict()), strict=True))
    dump = caught.value.dump
    assert (dump["progress"], dump["tensor"], len(dump["episodes"])) == (0.25, f"batch.{name}", 3)
    np.testing.assert_array_equal(dump["episodes"][1][name], getattr(episodes[1], name))
    twin = toy_learner(toy_config())
    twin.load_state_dict(dump["learner"])
    assert_same_state(twin, learner)


def test_an_update_that_overflows_half_way_leaves_everything_as_it_was() -> None:
    config = toy_config(value_target="agent", model={"normalise_value": False, "activation": "relu"}, critic_lr=1e30)
    learner = toy_learner(config)
    episodes = toy_rollouts(learner, WORLDS["deaths"], 3)
    before = copy.deepcopy(learner.state_dict())
    with pytest.raises(NonFiniteError, match=r"critic .* iteration 0: update refused"):
        learner.update(episodes)
    assert all(torch.equal(a, b) for a, b in zip(flat(before), flat(learner.state_dict()), strict=True))


def test_every_promised_metric_is_there() -> None:
    config = toy_config()
    config.constraints["speed"] = ConstraintConfig(limit=2.0)
    learner = toy_learner(config)
    env = ToyEnv(**CRASHY, end_rule="half", cost_names=("termination", "speed"))
    metrics = learner.update(toy_rollouts(learner, env, 6))
    expected = {f"loss/{n}" for n in ("policy", "value", "cost_termination", "cost_speed")}
    policy = ("kl", "clip_fraction", "entropy", "std", "grad_norm", "max_ratio_error", "epochs", "steps", "lr")
    expected |= {f"policy/{n}" for n in policy} | {"bound/theorem2"}
    expected |= {"critic/explained_variance", "critic/grad_norm"}
    for name in ("termination", "speed"):
        keys = (
            "mean",
            "uncensored",
            "limit",
            "eta",
            "penalty_argument",
            "penalty_slope",
            "minibatch_slope",
            "gradient_cosine",
        )
        expected |= {f"constraint/{name}/{key}" for key in keys} | {f"critic/{name}/explained_variance"}
    assert expected <= set(metrics)
    assert all(math.isfinite(metrics[name]) for name in expected)
    assert -1 <= metrics["constraint/termination/gradient_cosine"] <= 1
    assert metrics["policy/kl"] > 0
    assert metrics["constraint/speed/mean"] == pytest.approx(metrics["constraint/speed/uncensored"], rel=0.5)


def test_each_critic_has_its_own_normaliser() -> None:
    config = toy_config()
    learner = toy_learner(config)
    learner.update(toy_rollouts(learner, WORLDS["deaths"], 6))
    value, cost = (learner.critics[name].normaliser.statistics() for name in ("value", "termination"))
    assert value != cost
    assert "normaliser.mean" in learner.state_dict()["critics"]["termination"]


def test_kl_outside_its_interval_stops_the_epochs() -> None:
    def work(**algo: Any) -> tuple[float, float]:
        learner = toy_learner(toy_config(epochs=6, **algo))
        metrics = learner.update(toy_rollouts(learner, WORLDS["deaths"], 6))
        return metrics["policy/epochs"], metrics["policy/steps"]

    minibatches = toy_config().algo.minibatches
    assert minibatches > 1
    assert work(kl_max=math.inf) == (6, 6 * minibatches)
    assert work(kl_max=1e-7) == (0, 1)
    assert work(kl_max=math.inf, kl_min=1e3) == (1, minibatches)
    assert work(kl_max=math.inf, kl_min=1e-9, minibatches=1) == (6, 6)


def test_kl_tested_after_epochs_lets_every_minibatch_speak() -> None:
    def update(epochs: int, kl_max: float) -> dict[str, float]:
        learner = toy_learner(toy_config(epochs=epochs, kl_max=kl_max, kl_test="epoch"))
        return learner.update(toy_rollouts(learner, WORLDS["deaths"], 6))

    kl = [update(epochs, math.inf)["policy/kl"] for epochs in range(1, 7)]
    assert kl[0] < max(kl)
    bound = (kl[0] + max(kl)) / 2
    passed = next(epochs for epochs, value in enumerate(kl, 1) if value > bound)
    stopped = update(6, bound)
    assert (stopped["policy/epochs"], stopped["policy/kl"]) == (passed, kl[passed - 1])
    assert stopped["policy/steps"] == passed * toy_config().algo.minibatches


def test_predictions_are_those_of_the_critics_on_raw_observations() -> None:
    learner = toy_learner(toy_config())
    learner.update(toy_rollouts(learner, WORLDS["deaths"], 6))
    observation, memory = np.ones((2, 5, 3), np.float32), np.zeros((2, 5, 6), np.float32)
    assert learner.predict_value(observation, memory).shape == (2, 5)
    costs = learner.predict_costs(observation, memory)
    assert list(costs) == ["termination"]
    assert costs["termination"].shape == (2, 5)
    assert np.ptp(costs["termination"]) == pytest.approx(0, abs=1e-6)


def test_without_constraints_it_is_mappo() -> None:
    config: Config = toy_config("ppo")
    config.constraints = {}
    learner = toy_learner(config)
    env = ToyEnv(**CRASHY, cost_names=())
    metrics = learner.update(toy_rollouts(learner, env, 4))
    assert math.isfinite(metrics["loss/policy"])
    assert not any(name.startswith("constraint/") for name in metrics)
