"""Running statistics of observations and of returns. Buffers, so that every checkpoint holds them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

OBSERVATION_CLIP = 10.0
BLOCK_ROWS = 1024  # in double precision at a time: they stay in a core's cache
MIN_VARIANCE = 1e-4
"""Added to the variance: a feature that hardly ever moves must not explode when it does."""


class ObservationNormaliser(nn.Module):
    """Mean and variance of each feature over all active steps seen so far."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, size: int, enabled: bool) -> None:
        super().__init__()
        self.enabled = enabled
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def shift_and_scale(self) -> tuple[Tensor, Tensor]:
        """float32 [O], [O]: what both twins of the actor apply, so that they agree to the last bit."""
        if not self.enabled:
            return torch.zeros_like(self.mean, dtype=torch.float32), torch.ones_like(self.mean, dtype=torch.float32)
        return self.mean.float(), torch.rsqrt(self.variance + MIN_VARIANCE).float()

    def forward(self, observation: Tensor) -> Tensor:
        shift, scale = self.shift_and_scale()
        return ((observation - shift) * scale).clamp(-OBSERVATION_CLIP, OBSERVATION_CLIP)

    @torch.no_grad()
    def update(self, observation: Tensor) -> None:
        """Merge [S, O] into the statistics (Chan's parallel form of Welford's method)."""
        count, mean = float(observation.shape[0]), observation.mean(0, dtype=torch.float64)
        squares = [(rows - mean).square_().sum(0) for rows in observation.split(BLOCK_ROWS)]
        variance = torch.stack(squares).sum(0) / count
        if self.count == 0:
            self.mean.copy_(mean), self.variance.copy_(variance)
        else:
            total = self.count + count
            delta = mean - self.mean
            spread = self.variance * self.count + variance * count + delta.square() * self.count * count / total
            self.mean.add_(delta * count / total)
            self.variance.copy_(spread / total)
        self.count.add_(count)


class ValueNormaliser(nn.Module):
    """Mean and std of one kind of return, forgetting old policies. Each critic has its own."""

    mean: Tensor
    mean_square: Tensor
    weight: Tensor
    DECAY = 0.9

    def __init__(self, enabled: bool) -> None:
        super().__init__()
        self.enabled = enabled
        for name in ("mean", "mean_square", "weight"):
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))

    def statistics(self) -> tuple[float, float]:
        """(mean, std) of the returns; (0, 1) before any were seen."""
        mean, mean_square, weight = (buffer.item() for buffer in (self.mean, self.mean_square, self.weight))
        if not self.enabled or weight == 0:
            return 0.0, 1.0
        mean /= weight
        return mean, max(mean_square / weight - mean**2, 1e-6) ** 0.5

    @torch.no_grad()
    def update(self, returns: Tensor) -> None:
        """returns: any shape, at least one element."""
        rows = returns.double()
        for buffer, value in ((self.mean, rows.mean()), (self.mean_square, rows.square().mean()), (self.weight, 1.0)):
            buffer.mul_(self.DECAY).add_((1.0 - self.DECAY) * value)
