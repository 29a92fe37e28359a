"""What every algorithm is: a policy update from data with one reward advantage and K cost advantages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from maip3o.algo.constraints import Constraints
from maip3o.algo.view import PolicyData, PolicyView
from maip3o.config.algorithms import METHODS, read_settings
from maip3o.config.schema import AlgoConfig
from maip3o.errors import UserError


class Algorithm:
    """One paper. Subclasses write `update`; those with a memory (multipliers) write the two state methods as well."""

    def __init__(self, algo: AlgoConfig, constraints: int, settings: Any = None) -> None:
        """constraints: K; settings: the algorithm's own, of config/algorithms.py."""
        self.algo, self.size, self.settings = algo, constraints, settings

    def update(self, view: PolicyView, data: PolicyData) -> dict[str, float]:
        """Change the policy in view.actor; returns numbers for the log."""
        raise NotImplementedError

    def weights(self, constraints: Constraints) -> Tensor | None:
        """eta of Theorem 2, [K]; None: the theorem does not speak of this algorithm."""
        return None

    def slope(self, x: Tensor, constraints: Constraints) -> Tensor:
        """How hard each constraint pushes at L_C = x, [..., K]: the weight of its gradient, without eta."""
        return torch.zeros_like(x)

    def residual(self, x: Tensor, constraints: Constraints) -> Tensor:
        """|alpha log h| of Theorem 2, [K]: how far below the limit the constraint still pushes at L_C = x."""
        return torch.zeros_like(x)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """`state` may be empty: then the algorithm begins afresh."""


def make_algorithm(algo: AlgoConfig, constraints: int) -> Algorithm:
    """The algorithm that algo.method names."""
    path, _ = METHODS.get(algo.method, (algo.method, None))
    module, _, name = path.partition(":")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"algo.method={algo.method}: cannot be imported ({error})") from None
    if not (isinstance(kind, type) and issubclass(kind, Algorithm)):
        raise UserError(f"algo.method={algo.method}: must be a subclass of maip3o.algo.algorithm.Algorithm")
    settings = read_settings(algo.method, algo.settings) if algo.method in METHODS else algo.settings
    return kind(algo, constraints, settings)
