"""The policy that all agents share: encoder, GRU over the agent's own observations, diagonal Gaussian.

Training data comes as packed chunks: time-major rows of chunks sorted by length, so that step j of all chunks that
reach it stands together and there is no padding to mask.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maip3o.config.schema import ModelConfig
from maip3o.envs.contract import WorldSpec
from maip3o.models.gru import PackedGRU
from maip3o.models.mlp import MLP, compiled_for, dense, linear

LOG_2_PI = math.log(2.0 * math.pi)


class Actor(nn.Module):
    """O observation, H memory, U action, S packed steps, N chunks."""

    def __init__(self, world: WorldSpec, model: ModelConfig) -> None:
        super().__init__()
        self.compiled = model.compiled == "auto"
        self.encoder = MLP(world.observation_size, model.hidden_sizes, model.activation, self.compiled)
        features = model.hidden_sizes[-1]
        self.gru = PackedGRU(features, model.memory_size, self.compiled) if model.recurrent else None
        self.head = linear(model.memory_size if model.recurrent else features, world.action_size, gain=0.01)
        with torch.no_grad():
            self.head.bias.copy_(torch.tensor(world.initial_mean))
        self.log_std = nn.Parameter(torch.tensor(world.initial_std).expand(world.action_size).log())

    def forward(self, observation: Tensor, memory: Tensor, batch_sizes: NDArray[np.int64]) -> Tensor:
        """Mean actions of packed chunks.

        observation: [S, O] normalised, packed; memory: [N, H] before each chunk's first step;
        batch_sizes: [L] how many chunks reach step j. Returns [S, U].
        """
        if self.gru is None:
            return self.encoder(observation, self.head)
        memories = self.gru(self.encoder(observation), memory, batch_sizes)
        if compiled_for(memories, self.compiled):
            return dense(memories, [self.head], False, True)
        return self.head(memories)


def log_prob(action: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log-density of the action as sampled (the environment clips, the Gaussian does not). [S, U] -> [S]"""
    z = (action - mean) * torch.exp(-log_std)
    return (-0.5 * z.square() - log_std - 0.5 * LOG_2_PI).sum(-1)


def entropy(log_std: Tensor) -> Tensor:
    """Entropy of the diagonal Gaussian, a scalar: the std does not depend on the state."""
    return (log_std + 0.5 * (1.0 + LOG_2_PI)).sum()


def gaussian_kl(mean: Tensor, log_std: Tensor, old_mean: Tensor, old_log_std: Tensor) -> Tensor:
    """KL(new || old) at each step, the order of Algorithm 1's trust-region test. [S, U] -> [S]"""
    variance_ratio = torch.exp(2.0 * (log_std - old_log_std))
    distance = ((mean - old_mean) * torch.exp(-old_log_std)).square()
    return 0.5 * (variance_ratio + distance - 1.0 - torch.log(variance_ratio)).sum(-1)
