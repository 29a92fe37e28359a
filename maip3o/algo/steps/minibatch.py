"""Passes over shuffled minibatches with Adam: the step that most algorithms share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from maip3o.algo.finite import clip_gradients, require_finite
from maip3o.algo.view import PolicyView, Replay, Sample
from maip3o.models.actor import entropy


def run_epochs(
    view: PolicyView, loss: Callable[[Sample], Tensor], reference: Replay | None = None
) -> tuple[dict[str, float], Tensor]:
    """Up to algo.epochs passes; they stop when the KL to `reference` (the policy that sampled) leaves [kl_min, kl_max].

    Returns numbers for the log, and L_C of every minibatch, [steps, K].
    """
    algo, reference = view.algo, reference or view.before
    losses: list[Tensor] = []
    clipped: list[Tensor] = []
    arguments: list[Tensor] = []
    norm_sum, finished, inside = 0.0, 0, True
    named = list(view.actor.named_parameters())
    while inside and finished < algo.epochs:
        for packed in view.minibatches():
            sample = view.evaluate(packed)
            # Before the first step the KL is float noise, whatever kl_max is.
            inside = algo.kl_test == "epoch" or not losses or not _kl(sample, reference) > algo.kl_max
            if not inside:
                break
            view.optimiser.zero_grad()
            total = minibatch_loss(view, sample, loss)
            checked = {
                "policy ratio": sample.ratio,
                "L_R": sample.reward_loss,
                "L_C": sample.constraint_loss,
                "L": total,
            }
            require_finite(checked.items())
            total.backward()
            norm_sum += clip_gradients("actor", named, algo.max_grad_norm)
            view.optimiser.step()
            losses.append(sample.reward_loss.detach())
            clipped.append(((sample.ratio.detach() - 1.0).abs() > algo.clip).float().mean())
            arguments.append(sample.constraint_loss.detach())
        finished += inside
        if inside and (algo.kl_test == "epoch" or algo.kl_min > 0.0):
            inside = algo.kl_min <= view.mean_kl(reference) <= algo.kl_max
    # Numbers for the log, once for all steps: of small minibatches there are hundreds.
    metrics = {
        "policy/epochs": float(finished),
        "policy/steps": float(len(losses)),
        "policy/grad_norm": norm_sum / len(losses),
        "loss/policy": float(torch.stack(losses).mean()),
        "policy/clip_fraction": float(torch.stack(clipped).mean()),
    }
    return metrics, torch.stack(arguments)


def minibatch_loss(view: PolicyView, sample: Sample, loss: Callable[[Sample], Tensor]) -> Tensor:
    """What is minimised: the algorithm's loss, less the bonus for entropy."""
    return loss(sample) - view.algo.entropy_bonus * entropy(view.actor.log_std)


@torch.no_grad()
def _kl(sample: Sample, reference: Replay) -> float:
    return float(sample.kl_to(reference).mean())
