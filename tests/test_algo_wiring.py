"""Every setting of the algorithm reaches the loss: each test fails if its key is not read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from toy_episodes import toy_config, toy_learner, toy_rollouts

from maip3o.algo.bound import theorem2_bound
from maip3o.algo.constraints import Constraints
from maip3o.algo.cpo import CPO
from maip3o.algo.critic_update import critic_losses
from maip3o.algo.diagnostics import constraint_diagnostics
from maip3o.algo.ip3o import IP3O
from maip3o.algo.learner import Learner
from maip3o.algo.steps.minibatch import minibatch_loss
from maip3o.algo.view import PolicyData, PolicyView
from maip3o.config.schema import AlgoConfig, Config, ConstraintConfig, PenaltyConfig
from maip3o.data.advantage import gae
from maip3o.data.batch import make_batch
from maip3o.data.chunks import cut_into_chunks
from maip3o.data.episode import Episode
from maip3o.data.returns import Returns, compute_returns
from maip3o.envs.toy import ToyEnv

HALF = ToyEnv(num_agents=4, horizon=11, hazard=0.3, distance=6.0, end_rule="half")


def first_update(**algo: Any) -> tuple[Learner, dict[str, float]]:
    learner = toy_learner(toy_config(**algo))
    return learner, learner.update(toy_rollouts(learner, HALF, 6))


@pytest.mark.parametrize("estimate", ["mean", "uncensored"])
def test_the_chosen_estimate_of_j_c_enters_the_penalty(estimate: str) -> None:
    _, metrics = first_update(constraint_estimate=estimate)
    argument = metrics["constraint/termination/penalty_argument"]
    assert metrics["constraint/termination/mean"] != pytest.approx(metrics["constraint/termination/uncensored"])
    # The standardised advantage has mean 0, so that L_C is J_C - d at ratio 1.
    assert argument == pytest.approx(metrics[f"constraint/termination/{estimate}"] - 0.1, abs=1e-5)


def test_scale_and_unit_multiply_the_cost_surrogate() -> None:
    def surrogate(**algo: Any) -> float:
        _, metrics = first_update(cost_advantage="raw", constraint_estimate="mean", **algo)
        return metrics["constraint/termination/penalty_argument"] - (metrics["constraint/termination/mean"] - 0.1)

    plain = surrogate()
    assert abs(plain) > 1e-3
    assert surrogate(cost_scale="horizon", cost_gamma=0.99) == pytest.approx(100.0 * plain, rel=1e-4)
    assert surrogate(constraint_unit="per_team") == pytest.approx(HALF.num_slots * plain, rel=1e-4)


def policy_case(algo: AlgoConfig, seed: int = 0) -> tuple[Learner, PolicyView]:
    """Two constraints, random advantages, and a batch of real toy episodes."""
    constraints = {"termination": ConstraintConfig(0.1), "speed": ConstraintConfig(2.0)}
    config = Config(constraints=constraints, algo=algo, model=toy_config().model, seed=3)
    learner = Learner(config, ToyEnv().spec)
    env = ToyEnv(num_agents=3, horizon=9, hazard=0.2, cost_names=tuple(constraints))
    batch = make_batch(toy_rollouts(learner, env, 4), torch.device("cpu"))
    rng = torch.Generator().manual_seed(seed)
    steps = len(batch.action)
    data = PolicyData(
        observation=learner.normaliser(batch.observation),
        memory=batch.memory,
        action=batch.action,
        log_prob=batch.log_prob,
        advantage=torch.randn(steps, generator=rng),
        cost_advantage=torch.randn(steps, 2, generator=rng),
        constraints=Constraints(
            names=tuple(constraints),
            limit=torch.tensor([0.1, 2.0], dtype=torch.double),
            cost=torch.tensor([0.4, 1.95], dtype=torch.double),
            alpha=torch.tensor([0.2, 0.4], dtype=torch.double),
            eta=torch.tensor([2.5, 1.5], dtype=torch.double),
            scale=1.7,
        ),
    )
    optimiser, chunks = learner.actor_optimiser, cut_into_chunks(batch, 5)
    return learner, PolicyView(learner.actor, optimiser, data, chunks, algo, np.random.default_rng(seed))


@pytest.mark.parametrize("clip_cost", [True, False])
def test_the_loss_is_equation_6_written_out(clip_cost: bool) -> None:
    algo = AlgoConfig(name="maip3o", clip=0.1, clip_cost=clip_cost, entropy_bonus=0.03)
    learner, view = policy_case(algo)
    actor, data, before = learner.actor, view.data, view.before
    with torch.no_grad():  # ratios away from 1
        actor.head.bias += torch.tensor([0.2, -0.1])
        actor.log_std += 0.1
    (packed,) = view.everything()
    ours = minibatch_loss(view, view.evaluate(packed), IP3O(algo, 2).loss)
    parameters = [actor.head.bias, actor.log_std]
    gradient = torch.autograd.grad(ours, parameters, retain_graph=True)

    rows = torch.as_tensor(packed.rows)
    mean = actor(data.observation[rows], data.memory[torch.as_tensor(packed.first_rows)], packed.batch_sizes)
    normal = torch.distributions.Normal(mean, actor.log_std.exp())
    r = torch.exp(normal.log_prob(data.action[rows]).sum(-1) - before.log_prob[rows])
    assert ((r - 1).abs() > 0.1).any()
    clipped = r.clamp(0.9, 1.1)
    advantage, cost = data.advantage[rows], data.cost_advantage[rows]
    loss = -torch.minimum(r * advantage, clipped * advantage).mean() - 0.03 * normal.entropy()[0].sum()
    for k, (violation, alpha, eta) in enumerate(((0.3, 0.2, 2.5), (-0.05, 0.4, 1.5))):
        pessimistic = torch.maximum(r * cost[:, k], clipped * cost[:, k]) if clip_cost else r * cost[:, k]
        x = 1.7 * pessimistic.mean() + violation
        loss = loss + eta * (x if x >= 0 else alpha * (torch.exp(x / alpha) - 1.0))
    torch.testing.assert_close(ours, loss)
    for ours, written_out in zip(gradient, torch.autograd.grad(loss, parameters), strict=True):
        torch.testing.assert_close(ours, written_out)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cosine_is_one_where_reward_and_cost_want_the_same(sign: float) -> None:
    algo = AlgoConfig(name="maip3o")
    _, view = policy_case(algo)
    view.data.cost_advantage = -sign * view.data.advantage[:, None].expand(-1, 2)
    metrics = constraint_diagnostics(view, IP3O(algo, 2))
    assert metrics["constraint/speed/gradient_cosine"] == pytest.approx(sign, abs=1e-5)


def test_gradients_are_clipped() -> None:
    # Adam takes a full step for any gradient well above its epsilon, so that only a tiny norm shows.
    def moved(max_grad_norm: float) -> float:
        learner, metrics = first_update(max_grad_norm=max_grad_norm)
        fresh = toy_learner(toy_config())
        pairs = zip(learner.actor.parameters(), fresh.actor.parameters(), strict=True)
        assert metrics["policy/grad_norm"] > 1e-3  # as it was before the clipping
        return max(float((a - b).detach().abs().max()) for a, b in pairs)

    assert moved(1e-9) < 1e-2 * moved(0.5)


def test_costs_have_a_discount_and_a_lambda_of_their_own() -> None:
    learner = toy_learner(toy_config())
    env = ToyEnv(num_agents=1, horizon=6, hazard=0.5)
    episode: Episode = next(e for e in toy_rollouts(learner, env, 50) if e.terminated.any() and e.length > 2)
    batch = make_batch([episode], torch.device("cpu"))
    value = np.random.default_rng(0).normal(size=(episode.length, 2))
    algo = AlgoConfig(name="maip3o", gamma=0.9, gae_lambda=0.8, cost_gamma=0.7, cost_gae_lambda=0.6)
    returns = compute_returns(batch, value, np.zeros((0, 2)), algo)
    following = np.append(value[1:], np.zeros((1, 2)), 0)
    go_on = np.arange(episode.length) < episode.length - 1
    own = gae(batch.reward, value[:, 0], following[:, 0], go_on, 0.9, 0.8)
    cost = gae(batch.cost[:, 0], value[:, 1], following[:, 1], go_on, 0.7, 0.6)
    np.testing.assert_allclose(returns.advantage, own)
    np.testing.assert_allclose(returns.cost_advantage[:, 0], cost)


@pytest.mark.parametrize("target", ["team", "agent"])
def test_the_reward_critic_fits_the_return_of_its_target(target: str) -> None:
    learner = toy_learner(toy_config(value_target=target))
    batch = make_batch(toy_rollouts(learner, HALF, 4), torch.device("cpu"))
    observation = learner.normaliser(batch.observation)
    value, final = learner._values(observation, batch)
    data = learner._critic_data(batch, observation, compute_returns(batch, value, final, learner.algo))
    moments = np.arange(len(data.team_target))
    loss = critic_losses(learner.critics, data, moments, learner.algo)["value"]

    critic = learner.critics["value"]
    v = critic(data.inputs)
    std = float(critic.normaliser.statistics()[1])
    if target == "team":
        starts = data.moment_start
        v_tot = torch.stack([v[starts[g] : starts[g + 1]].sum() for g in moments])
        error = (v_tot - data.team_target) / (std * math.sqrt(len(v) / len(moments)))
    else:
        error = (v - data.target[:, 0]) / std
    assert (error.abs() < learner.algo.huber_delta).all()
    torch.testing.assert_close(loss, 0.5 * error.square().mean())


@pytest.mark.parametrize("floor", [0.05, None])
def test_theorem_2_by_hand(floor: float | None) -> None:
    algo = AlgoConfig(name="maip3o", penalty=PenaltyConfig(floor_h=floor), gamma=0.9, cost_gamma=0.8)
    _, view = policy_case(algo)
    data, steps = view.data, len(view.data.action)
    data.cost_advantage = torch.zeros(steps, 2)  # L_C = J_C - d = (0.3, -0.05)
    two = np.stack((np.linspace(-0.5, 0.25, steps), np.linspace(-0.1, 0.1, steps)), -1)
    nothing = np.zeros(1)
    returns = Returns(np.linspace(-3.0, 2.0, steps), nothing, nothing, nothing, two, two)
    spread = math.sqrt(2 * 0.02)
    residual = (0.0, 0.05) if floor is None else (0.2 * abs(math.log(0.05)), 0.4 * abs(math.log(0.05)))
    expected = spread * 0.9 * 3.0 / 0.1
    for eta, eps, left in zip((2.5, 1.5), (0.5, 0.1), residual, strict=True):
        expected += eta * (spread * 0.8 * eps / 0.2 + left)
    bound = theorem2_bound(0.02, np.ones(steps), returns, data, IP3O(algo, 2))
    assert bound["bound/theorem2"] == pytest.approx(expected)
    assert theorem2_bound(0.02, np.ones(steps), returns, data, CPO(algo, 2)) == {}


@pytest.mark.parametrize(("shift", "stops"), [(3e-4, True), (3e-5, False)])
def test_a_ratio_error_above_1e_4_stops_the_run(shift: float, stops: bool) -> None:
    learner = toy_learner(toy_config())
    episodes = toy_rollouts(learner, HALF, 3)
    episodes[0].log_prob[0, 0] += np.float32(shift)
    if not stops:
        learner.update(episodes)
        return
    with pytest.raises(RuntimeError, match=r"max \|ratio - 1\|"):
        learner.update(episodes)
