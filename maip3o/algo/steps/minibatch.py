"""Passes over shuffled minibatches with Adam: the step that most algorithms share."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from maip3o.algo.finite import require_finite
from maip3o.algo.steps.networks import CompiledNetwork, TorchNetwork
from maip3o.algo.view import PolicyView, Replay, Sample
from maip3o.models.actor import entropy


def run_epochs(view: PolicyView, loss: Callable[[Sample], Tensor], reference: Replay | None = None) -> dict[str, float]:
    """Up to algo.epochs passes; they stop when the KL to `reference` (the policy that sampled) leaves [kl_min, kl_max].

    Returns numbers for the log.
    """
    algo, reference = view.algo, reference or view.before
    losses: list[Tensor] = []
    ratios: list[Tensor] = []
    norm_sum, finished, inside = 0.0, 0, True
    network = CompiledNetwork(view) if CompiledNetwork.fits(view) else TorchNetwork(view)
    while inside and finished < algo.epochs:
        for packed in view.minibatches():
            sample = network.evaluate(packed)
            # Before the first step the KL is float noise, whatever kl_max is.
            inside = algo.kl_test == "epoch" or not losses or not _kl(sample, reference) > algo.kl_max
            if not inside:
                break
            total = minibatch_loss(view, sample, loss)
            losses.append(total.detach())
            ratios.append(sample.ratio.detach())
            _require_finite(sample, losses[-1], ratios[-1])
            norm_sum += network.step(total)
        finished += inside
        if inside and (algo.kl_test == "epoch" or algo.kl_min > 0.0):
            inside = algo.kl_min <= view.mean_kl(reference) <= algo.kl_max
    # Numbers for the log, once for all steps: of small minibatches there are hundreds.
    return {
        "policy/epochs": float(finished),
        "policy/steps": float(len(losses)),
        "policy/grad_norm": norm_sum / len(losses),
        "loss/policy": float(torch.stack(losses).mean()),
        "policy/clip_fraction": float(((torch.cat(ratios) - 1.0).abs() > algo.clip).float().mean()),
    }


def minibatch_loss(view: PolicyView, sample: Sample, loss: Callable[[Sample], Tensor]) -> Tensor:
    """What is minimised: the algorithm's loss, less the bonus for entropy."""
    return loss(sample) - view.algo.entropy_bonus * entropy(view.actor.log_std)


def _require_finite(sample: Sample, total: Tensor, ratio: Tensor) -> None:
    """Raises by name. The ratio goes into every loss, but a clip may hide it there."""
    if not math.isfinite(float(total + ratio.sum())):
        require_finite(
            {"policy ratio": ratio, "L_R": sample.reward_loss, "L_C": sample.constraint_loss, "L": total}.items()
        )


@torch.no_grad()
def _kl(sample: Sample, reference: Replay) -> float:
    return float(sample.kl_to(reference).mean())
