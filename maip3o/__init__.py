"""Safe multi-agent reinforcement learning in driving."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maip3o.envs.parallel import ParallelDriving

# Threads that wait by spinning make an update ten times slower on a machine that is busy with something else too
# (workers, another run of a sweep). OpenMP reads this when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = ["make_env"]


def make_env(scenario: str, **overrides: Any) -> ParallelDriving:
    """A PettingZoo ParallelEnv: make_env("intersection", num_agents=6, costs=["crash"], backend="stock").

    `overrides` are fields of ScenarioConfig (conf/scenario/*.yaml explains them), `costs` names of envs/costs.py.
    """
    from maip3o.envs import parallel  # imported late: `import maip3o` stays light

    return parallel.make_env(scenario, **overrides)
