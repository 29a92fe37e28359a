"""Multi-agent MetaDrive as a kind of world: fixed slots, honest costs."""

from __future__ import annotations

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import ArrayEnv
from maip3o.envs.driving.backend import Backend
from maip3o.envs.driving.costs import driving_costs, known_costs
from maip3o.envs.driving.lean_import import import_metadrive
from maip3o.envs.driving.observation import observation_size
from maip3o.envs.driving.rules import SlotEnv
from maip3o.envs.registry import World
from maip3o.envs.scenarios import check_scenario, load_scenario, scenario_names


def _make(scenario: ScenarioConfig, cost_names: tuple[str, ...]) -> ArrayEnv:
    from maip3o.envs.driving.near import near_encoding  # late: numba takes half a second to load

    costs = driving_costs(scenario, cost_names)  # before an engine starts: a wrong one is refused
    encode = near_encoding(scenario) if scenario.observation == "near" else np.copy
    return SlotEnv(_make_backend(scenario), scenario.end_rule, costs, encode)


def _make_backend(scenario: ScenarioConfig) -> Backend:
    # Imported late: MetaDrive takes seconds to import, and nobody needs it to read a config.
    import_metadrive()
    if scenario.backend == "fast":
        from maip3o.envs.driving.fast import FastBackend

        return FastBackend(scenario)
    from maip3o.envs.driving.stock import StockBackend

    return StockBackend(scenario)


def _check(scenario: ScenarioConfig) -> None:
    check_scenario(scenario)
    driving_costs(scenario, list(scenario.costs))


def _inspect(scenario: ScenarioConfig) -> None:
    """What only MetaDrive knows (its own keys, places to start from), asked if it was changed."""
    if scenario.name in scenario_names():
        shipped = load_scenario(scenario.name)
        keys = ("map", "metadrive", "num_agents", "respawn", "backend")
        if all(getattr(scenario, key) == getattr(shipped, key) for key in keys):
            return
    from maip3o.envs.driving.simulator import make_metadrive

    make_metadrive(scenario)
    if scenario.observation == "near":
        from maip3o.envs.driving.near import near_encoding

        near_encoding(scenario)
    if scenario.backend == "fast":
        from maip3o.envs.driving.fast.settings import check_scenario as check_fast

        check_fast(scenario)


WORLD = World(
    make=_make,
    costs=known_costs,
    takes_costs=True,
    check=_check,
    inspect=_inspect,
    observation_size=observation_size,
    protocols=("first", "full"),
    view="map",
)
