"""Multi-agent MetaDrive with fixed slots, honest costs and episodes that are a pure function of their seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import ArrayEnv
from maip3o.envs.driving.backend import Backend
from maip3o.envs.driving.costs import cost_functions
from maip3o.envs.driving.lean_import import import_metadrive
from maip3o.envs.driving.near import near_encoding
from maip3o.envs.driving.observation import ObservationPart, observation_layout
from maip3o.envs.driving.rules import SlotEnv
from maip3o.envs.scenarios import check_scenario, load_scenario, scenario_names

__all__ = ["ObservationPart", "load_scenario", "make_array_env", "observation_layout", "scenario_names"]


def make_array_env(scenario: ScenarioConfig, cost_names: Sequence[str]) -> ArrayEnv:
    """The environment that rollouts use. One per process: MetaDrive has one engine per process."""
    if scenario.map == "toy":  # in no scenario of conf/: the runner's own tests train on it in seconds
        from maip3o.envs.toy import ToyEnv

        return ToyEnv(scenario.num_agents, scenario.horizon, cost_names=tuple(cost_names), **scenario.metadrive)
    check_scenario(scenario)
    cost_functions(cost_names)  # an unknown name must not leave an engine behind
    encode = near_encoding(scenario) if scenario.observation == "near" else np.copy
    return SlotEnv(_make_backend(scenario), scenario.end_rule, cost_names, encode)


def _make_backend(scenario: ScenarioConfig) -> Backend:
    # Imported late: MetaDrive takes seconds to import, and nobody needs it to read a config.
    import_metadrive()
    if scenario.backend == "fast":
        from maip3o.envs.driving.fast import FastBackend

        return FastBackend(scenario)
    from maip3o.envs.driving.stock import StockBackend

    return StockBackend(scenario)
