"""Adam's memory, where compiled code takes its steps."""

from __future__ import annotations

import torch
from torch import Tensor


def adam_state(optimiser: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    """Adam's own state of a parameter, made as Adam makes it before its first step."""
    state = optimiser.state[parameter]
    if not state:
        averages = {key: torch.zeros_like(parameter.detach()) for key in ("exp_avg", "exp_avg_sq")}
        state.update(step=torch.tensor(0.0), **averages)
    return state
