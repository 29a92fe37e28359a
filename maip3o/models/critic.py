"""Value functions v(o_i, h_i): feed-forward over an agent's observation and the actor's stored memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from maip3o.config.schema import ModelConfig
from maip3o.models.mlp import MLP, linear
from maip3o.models.normaliser import ValueNormaliser


class Critic(nn.Module):
    """One value function, for the reward or for one constraint, with a normaliser of its own."""

    def __init__(self, observation_size: int, model: ModelConfig) -> None:
        super().__init__()
        memory_size = model.memory_size if model.recurrent else 0
        sizes, compiled = model.hidden_sizes, model.compiled == "auto"
        self.body = MLP(observation_size + memory_size, sizes, model.activation, compiled)
        self.head = linear(model.hidden_sizes[-1], 1, gain=1.0)
        self.normaliser = ValueNormaliser(model.normalise_value)

    def forward(self, inputs: Tensor) -> Tensor:
        """inputs: [..., O + H], by `critic_inputs`. Returns the value [...] in units of the return."""
        mean, std = self.normaliser.statistics()
        return mean + std * self.body(inputs, self.head).squeeze(-1)

    @torch.no_grad()
    def update_normaliser(self, returns: Tensor) -> None:
        """Take in new returns and rescale the last layer, so that no prediction changes (PopArt)."""
        old_mean, old_std = self.normaliser.statistics()
        self.normaliser.update(returns)
        mean, std = self.normaliser.statistics()
        self.head.weight.mul_(old_std / std)
        self.head.bias.mul_(old_std).add_(old_mean - mean).div_(std)


def critic_inputs(observation: Tensor, memory: Tensor) -> Tensor:
    """observation [..., O] normalised, memory [..., H] before the step -> [..., O + H], the same for all critics"""
    return torch.cat((observation, memory), -1)


def team_value(value: Tensor, moment: Tensor, moments: int) -> Tensor:
    """V_tot (VDN): the sum of v_i over the agents that act at each moment.

    value: [S] over active steps only; moment: [S] int64 index of (episode, time). Returns [moments].
    """
    return torch.zeros(moments, dtype=value.dtype, device=value.device).index_add(0, moment, value)
