"""Epochs of the policy over recurrent chunks: the only place where the actor's optimiser steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from maip3o.algo.finite import clip_gradients, require_finite
from maip3o.algo.losses import constraint_loss, cost_surrogate, reward_loss
from maip3o.algo.penalties import get_penalty, penalty_slope
from maip3o.config.schema import AlgoConfig
from maip3o.data.chunks import Chunks, Packed, pack, shuffled_minibatches
from maip3o.models.actor import Actor, entropy, gaussian_kl, log_prob

MAX_RATIO_ERROR = 1e-4
REPLAYED_CHUNKS = 150  # at a time: what they need stays in a core's cache


@dataclass(slots=True)
class PolicyData:
    """What the policy learns from. S active steps, K constraints."""

    observation: Tensor  # [S, O] normalised
    hidden: Tensor  # [S, H] stored memory before the step
    action: Tensor  # [S, U]
    log_prob: Tensor  # [S] as the rollout stored it
    advantage: Tensor  # [S]
    cost_advantage: Tensor  # [S, K]
    violation: Tensor  # [K] J_C - d
    scale: float  # of the cost surrogate
    multiplier: Tensor  # [K] of the Lagrangian penalty


@dataclass(slots=True)
class Replay:
    """The policy run over all stored steps."""

    mean: Tensor  # [S, U]
    log_std: Tensor  # [U]
    log_prob: Tensor  # [S]


@torch.no_grad()
def replay(actor: Actor, data: PolicyData, chunks: Chunks) -> Replay:
    mean = torch.empty_like(data.action)
    count = len(chunks.start)
    for chosen in np.array_split(np.arange(count), -(-count // REPLAYED_CHUNKS)):
        packed = pack(chunks, chosen)
        mean[_index(packed, data)] = _mean(actor, data, packed)
    log_std = actor.log_std.detach().clone()
    return Replay(mean, log_std, log_prob(data.action, mean, log_std))


def max_ratio_error(before: Replay, data: PolicyData) -> float:
    """max |r - 1| before any optimiser step. It must be float noise; otherwise every ratio afterwards is wrong."""
    error = float((before.log_prob - data.log_prob).expm1().abs().max())
    # Float noise in the mean action counts in units of the std: a nearly deterministic policy magnifies it.
    allowed = MAX_RATIO_ERROR * max(1.0, 0.3 / float(before.log_std.exp().min()))
    if not error <= allowed:
        raise RuntimeError(
            "replayed and stored log-probabilities differ before the first optimiser step: "
            f"max |ratio - 1| = {error:.2e} > {allowed:.1e}. The update does not see what the policy saw as it acted: "
            "other weights or normaliser statistics, a memory that was not stored or not reset, or an observation "
            "changed after acting"
        )
    return error


def mean_kl(after: Replay, before: Replay) -> float:
    """KL(after, before) over all stored steps; never negative, though its float may be."""
    return max(float(gaussian_kl(after.mean, after.log_std, before.mean, before.log_std).mean()), 0.0)


def update_policy(
    actor: Actor,
    optimiser: torch.optim.Optimizer,
    data: PolicyData,
    before: Replay,
    chunks: Chunks,
    names: Sequence[str],
    algo: AlgoConfig,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Up to algo.epochs epochs; stops when the KL to the policy that sampled leaves [kl_min, kl_max]."""
    losses: list[Tensor] = []
    clipped: list[Tensor] = []
    arguments: list[Tensor] = []
    norm_sum, finished, inside = 0.0, 0, True
    named = list(actor.named_parameters())
    while inside and finished < algo.epochs:
        for chosen in shuffled_minibatches(len(chunks.start), len(data.action), algo, rng):
            terms = minibatch_terms(actor, data, before, pack(chunks, chosen), algo)
            # Before the first step the KL is float noise, whatever kl_max is.
            inside = algo.kl_test == "epoch" or not losses or not float(terms.kl) > algo.kl_max
            if not inside:
                break
            optimiser.zero_grad()
            terms.require_finite()
            terms.loss.backward()
            norm_sum += clip_gradients("actor", named, algo.max_grad_norm)
            optimiser.step()
            losses.append(terms.reward.detach())
            clipped.append(((terms.ratio.detach() - 1.0).abs() > algo.clip).float().mean())
            arguments.append(terms.constraint.detach())
        finished += inside
        if inside and (algo.kl_test == "epoch" or algo.kl_min > 0.0):
            inside = algo.kl_min <= mean_kl(replay(actor, data, chunks), before) <= algo.kl_max
    # Numbers for the log, once for all steps: of small minibatches there are hundreds.
    penalty = get_penalty(algo.penalty.name)
    slope = penalty_slope(penalty, torch.stack(arguments), algo.penalty, data.multiplier).mean(0)
    return {
        "policy/epochs": float(finished),
        "policy/steps": float(len(losses)),
        "policy/grad_norm": norm_sum / len(losses),
        "loss/policy": float(torch.stack(losses).mean()),
        "policy/clip_fraction": float(torch.stack(clipped).mean()),
        **{f"constraint/{name}/minibatch_slope": float(slope[k]) for k, name in enumerate(names)},
    }


@dataclass(slots=True)
class Terms:
    """The loss of one minibatch and its parts."""

    ratio: Tensor  # [s]
    kl: Tensor  # scalar
    reward: Tensor  # scalar, L_R
    constraint: Tensor  # [K], L_C
    loss: Tensor  # scalar, L

    def require_finite(self) -> None:
        named = {"policy ratio": self.ratio, "L_R": self.reward, "L_C": self.constraint, "L": self.loss}
        require_finite(named.items())


def minibatch_terms(actor: Actor, data: PolicyData, before: Replay, packed: Packed, algo: AlgoConfig) -> Terms:
    rows = _index(packed, data)
    columns = (data.action, before.log_prob, before.mean, data.advantage, data.cost_advantage)
    action, old_log_prob, old_mean, advantage, cost_advantage = (column.index_select(0, rows) for column in columns)
    mean = _mean(actor, data, packed)
    ratio = torch.exp(log_prob(action, mean, actor.log_std) - old_log_prob)
    kl = gaussian_kl(mean.detach(), actor.log_std.detach(), old_mean, before.log_std).mean()
    reward = reward_loss(ratio, advantage, algo.clip)
    surrogate = cost_surrogate(ratio, cost_advantage, algo.clip if algo.clip_cost else None)
    constraint = constraint_loss(surrogate, data.scale, data.violation)
    penalty = get_penalty(algo.penalty.name)(constraint, algo.penalty, data.multiplier)
    loss = reward + algo.penalty.eta * penalty.sum() - algo.entropy_bonus * entropy(actor.log_std)
    return Terms(ratio, kl, reward, constraint, loss)


def constraint_diagnostics(
    actor: Actor, data: PolicyData, before: Replay, packed: Packed, names: Sequence[str], algo: AlgoConfig
) -> dict[str, float]:
    """Argument and slope of each penalty before the first step, and the cosine between the gradients of L_R and L_C.

    The argument is that of all data (every ratio is 1), the gradients are those of `packed`. The penalty's own gradient
    is the slope times that of L_C, so the cosine is defined even where the slope is 0.
    """
    argument = constraint_loss(data.cost_advantage.mean(0), data.scale, data.violation)
    slope = penalty_slope(get_penalty(algo.penalty.name), argument, algo.penalty, data.multiplier)
    terms = minibatch_terms(actor, data, before, packed, algo)
    parameters = list(actor.parameters())

    def gradient(loss: Tensor) -> Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters, retain_graph=True)])

    metrics: dict[str, float] = {}
    reward_gradient = gradient(terms.reward)
    for k, name in enumerate(names):
        cosine = torch.nn.functional.cosine_similarity(reward_gradient, gradient(terms.constraint[k]), dim=0)
        metrics[f"constraint/{name}/penalty_argument"] = float(argument[k])
        metrics[f"constraint/{name}/penalty_slope"] = float(slope[k])
        metrics[f"constraint/{name}/gradient_cosine"] = float(cosine)
    return metrics


def _index(packed: Packed, data: PolicyData) -> Tensor:
    return torch.as_tensor(packed.rows, device=data.action.device)


def _mean(actor: Actor, data: PolicyData, packed: Packed) -> Tensor:
    memory = data.hidden[torch.as_tensor(packed.first_rows, device=data.hidden.device)]
    # index_select: seven times as fast as indexing on a CPU.
    return actor(data.observation.index_select(0, _index(packed, data)), memory, packed.batch_sizes)
