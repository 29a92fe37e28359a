"""Steps inside a KL ball: gradients, Fisher-vector products, conjugate gradients, line search.

Recurrent policies included: the Fisher product differentiates twice, on the torch path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from maip3o.algo.finite import require_finite
from maip3o.algo.view import PolicyView
from maip3o.config.algorithms import TrustRegionSettings

CG_TOLERANCE = 1e-6  # of the residual, relative to the right-hand side


@dataclass(slots=True)
class Quadratic:
    """The problem of one step: gain g, costs B, metric H, all seen through H^-1."""

    gain: Tensor  # [N] g, of the reward surrogate
    cost: Tensor  # [K, N] B, of the cost surrogates
    natural_gain: Tensor  # [N] H^-1 g
    natural_cost: Tensor  # [K, N] H^-1 B
    error: float  # largest relative residual of these solutions: 0 exact, 1 nothing found

    @property
    def q(self) -> Tensor:
        return self.gain @ self.natural_gain

    @property
    def r(self) -> Tensor:
        return self.cost @ self.natural_gain

    @property
    def s(self) -> Tensor:
        return self.cost @ self.natural_cost.T


def surrogates(view: PolicyView) -> Tensor:
    """[1 + K]: E[r A_R] and scale E[r A_Ck] over all steps, differentiable."""
    total, count = torch.zeros(()), len(view.data.action)
    for packed in view.everything():
        sample = view.evaluate(packed)
        columns = torch.cat((sample.advantage[:, None], sample.constraints.scale * sample.cost_advantage), 1)
        total = total + (sample.ratio[:, None] * columns).sum(0) / count
    return total


def quadratic(view: PolicyView, settings: TrustRegionSettings) -> Quadratic:
    values = surrogates(view)
    gradients = torch.stack([flat(torch.autograd.grad(v, view.parameters, retain_graph=True)) for v in values])
    require_finite([("gradients of the surrogates", gradients)])
    product = fisher_product(view, settings.damping)
    found = [conjugate_gradient(product, g, settings.cg_iterations) for g in gradients]
    natural, error = torch.stack([x for x, _ in found]), max(residual for _, residual in found)
    require_finite([("conjugate gradients", natural)])
    return Quadratic(gradients[0], gradients[1:], natural[0], natural[1:], error)


def fisher_product(view: PolicyView, damping: float) -> Callable[[Tensor], Tensor]:
    """v -> (Hessian of the mean KL to the policy that sampled + damping) v, [N] -> [N]"""
    count, pieces = len(view.data.action), []
    for packed in view.everything():
        sample = view.evaluate(packed, twice=True)
        kl = sample.kl_to(sample.before).sum() / count
        pieces.append(flat(torch.autograd.grad(kl, view.parameters, create_graph=True)))
    gradient = torch.stack(pieces).sum(0)

    def product(v: Tensor) -> Tensor:
        return flat(torch.autograd.grad(gradient @ v, view.parameters, retain_graph=True)) + damping * v

    return product


def conjugate_gradient(product: Callable[[Tensor], Tensor], b: Tensor, iterations: int) -> tuple[Tensor, float]:
    """x with H x = b as far as `iterations` go, and its residual relative to b.

    It stops where H is not positive in float arithmetic. Wherever it stops, x'Hx = b'x.
    """
    x, residual = torch.zeros_like(b), b.clone()
    direction, square = residual.clone(), residual @ residual
    size = square
    for _ in range(iterations):
        if square <= CG_TOLERANCE**2 * size:
            break
        image = product(direction)
        curvature = direction @ image
        if not curvature > 0:
            break
        x = x + square / curvature * direction
        residual = residual - square / curvature * image
        square, before = residual @ residual, square
        direction = residual + square / before * direction
    return x, float((square / size).sqrt()) if size > 0 else 0.0


@torch.no_grad()
def line_search(
    view: PolicyView,
    step: Tensor,
    accept: Callable[[Tensor, float], bool],
    settings: TrustRegionSettings,
) -> int:
    """Shrink the step until accept(change of the surrogates [1 + K], KL); returns the tries, 0 if none was taken."""
    start = flat(view.parameters)
    before = surrogates(view)
    fraction = 1.0
    for tries in range(1, settings.line_search_steps + 1):
        _assign(view.parameters, start + fraction * step)
        change, kl = surrogates(view) - before, view.mean_kl()
        if bool(torch.isfinite(change).all()) and accept(change, kl):
            return tries
        fraction *= settings.backtrack
    _assign(view.parameters, start)
    return 0


def flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


@torch.no_grad()
def _assign(parameters: Sequence[Tensor], values: Tensor) -> None:
    for parameter, part in zip(parameters, values.split([p.numel() for p in parameters]), strict=True):
        parameter.copy_(part.view_as(parameter))
