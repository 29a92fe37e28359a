"""Kinds of worlds, by the name that scenario.world has. A package outside names its own: `package.module:WORLD`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import ArrayEnv
from maip3o.errors import UserError


def _nothing(scenario: ScenarioConfig) -> None:
    pass


@dataclass(frozen=True, slots=True)
class World:
    """What the rest of the package asks of a kind of world. Only `make` and `inspect` may import a simulator."""

    make: Callable[[ScenarioConfig, tuple[str, ...]], ArrayEnv]  # (scenario, names of its costs)
    costs: Callable[[ScenarioConfig], Mapping[str, str]]  # every cost that it knows -> event | count
    check: Callable[[ScenarioConfig], None] = _nothing  # raises a UserError that names the key
    inspect: Callable[[ScenarioConfig], None] = _nothing  # the same, by the simulator itself: it may take seconds
    observation_size: Callable[[ScenarioConfig], int] | None = None  # if it can be known without an environment
    takes_costs: bool = False  # a constraint may name another cost function and its parameters (scenario.costs)
    protocols: tuple[str, ...] = ("full",)  # of an evaluation; with `first` also until the first failure of any agent
    side_by_side: int = 1  # environments that one process may have: more of them share one call of the policy
    view: str = ""  # of films: map (driving.views.DrivingEnv), camera or plan (robots.views); empty: there are none


BUILT_IN = {
    "driving": "maip3o.envs.driving.world:WORLD",
    "toy": "maip3o.envs.toy:WORLD",
    "velocity": "maip3o.envs.robots.velocity:WORLD",
    "navigation": "maip3o.envs.robots.navigation:WORLD",
    "bullet": "maip3o.envs.robots.bullet:WORLD",
    "gymnasium": "maip3o.envs.robots.gymnasium:WORLD",
    "pettingzoo": "maip3o.envs.robots.pettingzoo:WORLD",
}


def find_world(scenario: ScenarioConfig) -> World:
    """The kind of world that the scenario names."""
    name = BUILT_IN.get(scenario.world, scenario.world)
    module, colon, attribute = name.partition(":")
    if not colon:
        known = ", ".join(BUILT_IN)
        raise UserError(f"scenario.world={scenario.world}: must be one of {known}, or package.module:NAME of your own")
    try:
        found: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"scenario.world={scenario.world}: cannot be imported ({error})") from None
    if not isinstance(found, World):
        raise UserError(f"scenario.world={scenario.world}: must be a maip3o.envs.registry.World, not {found!r}")
    return found


def make_array_env(scenario: ScenarioConfig, cost_names: Sequence[str]) -> ArrayEnv:
    """The environment that rollouts use. One per process: MetaDrive has one engine per process."""
    world = find_world(scenario)
    world.check(scenario)
    known = world.costs(scenario)
    for name in cost_names:  # an unknown name must not leave an engine behind
        if name not in known:
            raise UserError(f"unknown constraint {name!r}: known are {', '.join(known)}")
    env = world.make(scenario, tuple(cost_names))
    for key in ("initial_mean", "initial_std"):
        values = getattr(scenario, key)
        if values is not None:
            if len(values) not in (1, env.spec.action_size):
                env.close()
                raise UserError(f"scenario.{key}={values}: must have 1 or {env.spec.action_size} numbers")
            given: Any = {key: tuple(values)}
            env.spec = replace(env.spec, **given)
    return env
