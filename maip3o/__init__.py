"""Safe reinforcement learning with constraints: `train`, `evaluate`, `load_policy`, `film` and `make_env`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maip3o.api import evaluate, film, load_policy, train
    from maip3o.envs.parallel import make_env

# Threads that wait by spinning make an update ten times slower on a machine that is busy with something else too
# (workers, another run of a sweep). OpenMP reads this when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = ["evaluate", "film", "load_policy", "make_env", "train"]


def __getattr__(name: str) -> Any:
    """Functions are loaded when one is first used: `import maip3o` stays light, and `make_env` needs no torch."""
    if name not in __all__:
        raise AttributeError(f"module 'maip3o' has no attribute {name!r}")
    return getattr(import_module("maip3o.envs.parallel" if name == "make_env" else "maip3o.api"), name)
