"""Epochs of the critics over active steps: VDN for the reward, each agent's own return for the costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from maip3o.algo.finite import NonFiniteError, clip_gradients, require_finite
from maip3o.algo.losses import huber
from maip3o.algo.steps.adam import adam_state
from maip3o.config.schema import AlgoConfig
from maip3o.data.batch import Rows
from maip3o.data.chunks import shuffled_minibatches
from maip3o.models.compiled.critics import fit_critic
from maip3o.models.critic import Critic, team_value
from maip3o.models.mlp import array, arrays, compiled_for


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
    moments = len(data.team_target)
    epochs = [shuffled_minibatches(moments, len(data.target), algo, rng) for _ in range(algo.epochs)]
    minibatches = [np.sort(chosen) for epoch in epochs for chosen in epoch]
    compiled = compiled_for(data.inputs, critics["value"].body.compiled)
    fit = _fit_compiled if compiled else _fit
    losses, norm_sum = fit(critics, optimiser, data, minibatches, algo)
    steps = len(minibatches)
    metrics = {f"loss/{name if name == 'value' else 'cost_' + name}": total / steps for name, total in losses.items()}
    return {**metrics, "critic/grad_norm": norm_sum / steps / len(critics)}


def _fit(
    critics: dict[str, Critic],
    optimiser: torch.optim.Optimizer,
    data: CriticData,
    minibatches: Sequence[Rows],
    algo: AlgoConfig,
) -> tuple[dict[str, float], float]:
    """One optimiser step per minibatch [g] of moments; sums of each critic's losses and of all gradient norms."""
    named = {name: list(critic.named_parameters()) for name, critic in critics.items()}
    losses, norm_sum = dict.fromkeys(critics, 0.0), 0.0
    for chosen in minibatches:
        optimiser.zero_grad()
        each = critic_losses(critics, data, chosen, algo)
        require_finite((f"loss of critic {name}", loss) for name, loss in each.items())
        torch.stack(list(each.values())).sum().backward()
        for name, loss in each.items():
            losses[name] += loss.item()
            norm_sum += clip_gradients(f"critic {name}", named[name], algo.max_grad_norm)
        optimiser.step()
    return losses, norm_sum


def _fit_compiled(
    critics: dict[str, Critic],
    optimiser: torch.optim.Optimizer,
    data: CriticData,
    minibatches: Sequence[Rows],
    algo: AlgoConfig,
) -> tuple[dict[str, float], float]:
    """The same, critic by critic: neither weights nor clipping connect them."""
    losses, norm_sum = dict.fromkeys(critics, 0.0), 0.0
    order, bounds = np.concatenate(minibatches), np.cumsum([0, *map(len, minibatches)])
    agents = np.diff(data.moment_start)
    longest = max(int(agents[chosen].sum()) for chosen in minibatches)
    settings = optimiser.param_groups[0]
    for k, (name, critic) in enumerate(critics.items()):
        layers = [layer for layer in critic.modules() if isinstance(layer, nn.Linear)]
        parameters: list[list[Tensor]] = [[layer.weight for layer in layers], [layer.bias for layer in layers]]
        state = [adam_state(optimiser, p) for group in parameters for p in group]
        averages = [
            [optimiser.state[p][key] for p in group] for group in parameters for key in ("exp_avg", "exp_avg_sq")
        ]
        sizes = [data.inputs.shape[1], *map(len, parameters[1])]
        scratch = (tuple(np.empty((longest, size), np.float32) for size in sizes) for _ in ("outputs", "gradients"))
        losses[name], norms, fitted = fit_critic(
            array(data.inputs),
            array(data.target[:, k]),
            array(data.team_target[: None if k == 0 and algo.value_target == "team" else 0]),
            data.moment_start,
            order,
            bounds,
            *critic.normaliser.statistics(),
            algo.huber_delta,
            critic.body.activation == "relu",
            *map(arrays, parameters),
            *map(arrays, averages),
            int(state[0]["step"]),
            settings["lr"],
            *settings["betas"],
            settings["eps"],
            algo.max_grad_norm,
            *scratch,
            *(tuple(np.empty_like(one) for one in arrays(group)) for group in parameters),
        )
        if fitted < len(minibatches):
            _fit(critics, optimiser, data, minibatches[fitted : fitted + 1], algo)  # finds the tensor and names it
            raise NonFiniteError(f"gradient norm of critic {name}")
        for one in state:
            one["step"] += fitted
        norm_sum += norms
    return losses, norm_sum


def critic_losses(critics: dict[str, Critic], data: CriticData, chosen: Rows, algo: AlgoConfig) -> dict[str, Tensor]:
    """Huber losses in units of each critic's own std, as in models.compiled.critics. chosen: [g] moments."""
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
