"""Epochs of the critics over active steps: VDN for the reward, each agent's own return for the costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from maip3o.algo.finite import clip_gradients, require_finite
from maip3o.algo.losses import huber
from maip3o.config import AlgoConfig
from maip3o.data.chunks import shuffled_minibatches
from maip3o.models.critic import Critic, team_value


@dataclass(slots=True)
class CriticData:
    """What the critics learn from, ordered by moment: the agents that act together stand together."""

    inputs: Tensor  # [S, O + H]
    target: Tensor  # [S, 1 + K] each agent's own return, of the reward and of each cost
    team_target: Tensor  # [G]
    moment_start: np.ndarray  # [G + 1] first row of each moment


def update_critics(
    critics: dict[str, Critic],
    optimiser: torch.optim.Optimizer,
    data: CriticData,
    algo: AlgoConfig,
    rng: np.random.Generator,
) -> dict[str, float]:
    """critics: `value` first, then one per constraint in the order of the target's columns."""
    for k, critic in enumerate(critics.values()):
        critic.update_normaliser(data.target[:, k])
    named = {name: list(critic.named_parameters()) for name, critic in critics.items()}
    losses = dict.fromkeys(critics, 0.0)
    norm_sum, steps = 0.0, 0
    moments = len(data.team_target)
    for _ in range(algo.epochs):
        for chosen in shuffled_minibatches(moments, len(data.target), algo, rng):
            optimiser.zero_grad()
            each = critic_losses(critics, data, np.sort(chosen), algo)
            require_finite((f"loss of critic {name}", loss) for name, loss in each.items())
            torch.stack(list(each.values())).sum().backward()
            for name, loss in each.items():
                losses[name] += loss.item()
            for name, parameters in named.items():
                norm_sum += clip_gradients(f"critic {name}", parameters, algo.max_grad_norm)
            optimiser.step()
            steps += 1
    metrics = {f"loss/{name if name == 'value' else 'cost_' + name}": total / steps for name, total in losses.items()}
    return {**metrics, "critic/grad_norm": norm_sum / steps / len(critics)}


def critic_losses(
    critics: dict[str, Critic], data: CriticData, chosen: np.ndarray, algo: AlgoConfig
) -> dict[str, Tensor]:
    """Huber losses in units of each critic's own std. chosen: [g] moments."""
    starts = data.moment_start[chosen]
    counts = data.moment_start[chosen + 1] - starts
    group = np.repeat(np.arange(len(chosen)), counts)
    rows_np = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    device = data.inputs.device
    rows = torch.as_tensor(rows_np, device=device)
    inputs, targets = data.inputs.index_select(0, rows), data.target.index_select(0, rows)
    losses = {}
    for k, (name, critic) in enumerate(critics.items()):
        value = critic(inputs)
        _, std = critic.normaliser.statistics()
        if k == 0 and algo.value_target == "team":
            total = team_value(value, torch.as_tensor(group, device=device), len(chosen))
            # The team's error grows with the square root of the agents in it: back to the scale of one agent.
            std *= (len(rows_np) / len(chosen)) ** 0.5
            error = total - data.team_target[torch.as_tensor(chosen, device=device)]
        else:
            error = value - targets[:, k]
        losses[name] = huber(error / std, algo.huber_delta)
    return losses
