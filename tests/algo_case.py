"""A policy over made-up steps, without episodes: what the proofs of the algorithms share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maip3o.algo.constraints import Constraints
from maip3o.algo.view import PolicyData, PolicyView
from maip3o.config.schema import AlgoConfig, ModelConfig
from maip3o.data.chunks import Chunks
from maip3o.envs.contract import WorldSpec
from maip3o.models.actor import Actor
from maip3o.models.mlp import MLP, linear


def make_actor(
    observation: int, action: int, hidden: Sequence[int] = (), std: float = 1.0, double: bool = True, **model: Any
) -> Actor:
    """No hidden sizes: one linear layer. Double precision, unless told otherwise, so that a test can ask for digits."""
    spec = WorldSpec(observation, action, (), (), (), (0.0,) * action, (std,) * action, "agent")
    config = ModelConfig(hidden_sizes=list(hidden) or [1], **{"recurrent": False, **model})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        actor = Actor(spec, config)
        if not hidden:
            actor.encoder, actor.head = MLP(observation, [], "tanh", False), linear(observation, action, gain=0.01)
    return actor.double() if double else actor


def make_constraints(cost: Sequence[float], limit: Sequence[float], scale: float = 1.0, **values: float) -> Constraints:
    """values: alpha, eta; the same for all."""
    full = {key: torch.full((len(cost),), values.get(key, 1.0), dtype=torch.float64) for key in ("alpha", "eta")}
    names = tuple(f"cost{k}" for k in range(len(cost)))
    j_c, d = (torch.tensor(list(numbers), dtype=torch.float64) for numbers in (cost, limit))
    return Constraints(names=names, limit=d, cost=j_c, scale=scale, **full)


def make_view(
    actor: Actor,
    observation: Tensor,
    action: Tensor,
    advantage: Tensor,
    cost_advantage: Tensor,
    constraints: Constraints,
    algo: AlgoConfig,
    chunk_length: int = 1,
) -> PolicyView:
    """The policy as it is now is the one that sampled. Steps [S] in lives of chunk_length."""
    count = len(action)
    start = np.arange(0, count, chunk_length)
    chunks = Chunks(start, np.minimum(chunk_length, count - start))
    memory = torch.zeros(count, 0 if actor.gru is None else actor.head.in_features).to(observation)
    data = PolicyData(observation, memory, action, torch.zeros(count), advantage, cost_advantage, constraints)
    optimiser = torch.optim.Adam(actor.parameters(), lr=algo.lr, eps=1e-5)
    view = PolicyView(actor, optimiser, data, chunks, algo, np.random.default_rng(0))
    data.log_prob = view.before.log_prob
    return view


def random_view(
    actor: Actor, steps: int, constraints: Constraints, algo: AlgoConfig, seed: int = 0, chunk_length: int = 1
) -> PolicyView:
    """Random steps; the actions are some that the policy may have sampled."""
    rng, kind = np.random.default_rng(seed), actor.log_std.dtype
    inputs = next(layer.in_features for layer in [*actor.encoder, actor.head] if isinstance(layer, torch.nn.Linear))

    def draw(*shape: int) -> Tensor:
        return torch.as_tensor(rng.normal(size=shape)).to(kind)

    action = actor.head.bias.detach() + actor.log_std.detach().exp() * draw(steps, len(actor.log_std))
    columns = (draw(steps, inputs), action, draw(steps), draw(steps, len(constraints.names)))
    return make_view(actor, *columns, constraints, algo, chunk_length)
