"""CPPO-PID (Stooke et al. 2020): PPO-Lagrangian whose multiplier is the output of a PID controller.

e = J_C - d,   I <- max(0, I + ki e),   P <- b P + (1 - b) e,   D = max(0, EMA_b(J_C) - that of `delay` ago)
lambda = max(0, kp P + I + kd D)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from maip3o.algo.constraints import Constraints
from maip3o.algo.ppo_lagrangian import PPOLagrangian
from maip3o.config.algorithms import PIDSettings


class PIDMultiplier:
    def __init__(self, size: int, settings: PIDSettings) -> None:
        self.settings = settings
        self.proportional = torch.zeros(size, dtype=torch.float64)
        self.integral = torch.full((size,), settings.multiplier_start, dtype=torch.float64)
        self.costs = torch.zeros((1, size), dtype=torch.float64)  # EMA of J_C, the last `delay` iterations, newest last

    def step(self, constraints: Constraints) -> Tensor:
        s = self.settings
        cost = constraints.cost.double().cpu()
        error = cost - constraints.limit.double().cpu()
        self.integral = (self.integral + s.ki * error).clamp(0.0, s.multiplier_max)
        self.proportional = s.smoothing * self.proportional + (1.0 - s.smoothing) * error
        latest = s.smoothing * self.costs[-1] + (1.0 - s.smoothing) * cost
        rise = (latest - self.costs[0]).clamp(min=0.0)
        self.costs = torch.cat((self.costs, latest[None]))[-max(s.delay, 1) :]
        value = s.kp * self.proportional + self.integral + s.kd * rise
        return value.clamp(0.0, s.multiplier_max).to(constraints.violation)

    def state_dict(self) -> dict[str, Any]:
        return {"proportional": self.proportional, "integral": self.integral, "costs": self.costs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.proportional, self.integral, self.costs = (state[k].clone() for k in ("proportional", "integral", "costs"))


class CPPOPID(PPOLagrangian):
    def make_rule(self) -> PIDMultiplier:
        return PIDMultiplier(self.size, self.settings)
