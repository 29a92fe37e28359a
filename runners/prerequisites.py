"""What a run needs besides a sound config: networks to start with that fit, a simulator that takes the scenario."""

from __future__ import annotations

import difflib

from maip3o.config.schema import Config
from maip3o.config.validation import get
from maip3o.envs.registry import find_world
from maip3o.errors import UserError


def require_sound_world(config: Config) -> Config:
    """The world that the scenario names takes it, and knows the costs of all constraints."""
    world = find_world(config.scenario)
    world.check(config.scenario)
    if config.scenario.costs and not world.takes_costs:
        name, settings = next(iter(config.scenario.costs.items()))
        raise UserError(f"constraints.{name}.{next(iter(settings))}: the costs of this world take no parameters")
    kinds = world.costs(config.scenario)
    if config.algo.method != "ppo" and not config.constraints:
        raise UserError(f"constraints: algo.method={config.algo.method} needs at least one ({', '.join(kinds)})")
    for name, constraint in config.constraints.items():
        if not kinds:
            where = f"scenario {config.scenario.name} has no cost"
            raise UserError(f"constraints.{name}: {where}; set scenario.cost, or drop it with ~constraints.{name}")
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            where = f"no such cost in scenario {config.scenario.name}"
            raise UserError(f"constraints.{name}: {where}; {hint}known are {', '.join(kinds)}")
        if kinds[name] == "event":
            _require_share(config, f"constraints.{name}.limit", constraint.limit)
    return config


def _require_share(config: Config, key: str, limit: float) -> None:
    """The limit of a cost that comes at most once in a life."""
    unit, most = config.algo.constraint_unit, config.scenario.num_agents
    if unit == "per_agent" and limit >= 1:
        raise UserError(f"{key}={limit}: a share of lives must be below 1 (algo.constraint_unit=per_agent)")
    if unit == "per_team" and not config.scenario.respawn and limit >= most:
        raise UserError(f"{key}={limit}: must be below the scenario.num_agents={most} of a team")


def require_fitting_init(config: Config) -> None:
    """config.init is readable and fits this run. Apart from `validate`: a run outlives what it began with."""
    if config.init is None:
        return
    from maip3o.runners.checkpoint import find_checkpoint, load  # they take torch's seconds to import

    try:
        theirs = load(find_checkpoint(config.init)).config
    except UserError as error:
        raise UserError(f"init={config.init}: {error}") from None
    network = ("model.hidden_sizes", "model.activation", "model.recurrent", "model.memory_size")
    for key in (*network, "scenario.observation", "constraints"):
        before, now = get(theirs, key), get(config, key)
        if (sorted(before) != sorted(now)) if key == "constraints" else (before != now):
            raise UserError(f"init={config.init}: its {key} is {before}, that of this run {now}")


def check_init_observation(config: Config) -> None:
    """The networks of config.init read observations of this scenario's size. After the world's own inspection."""
    size = find_world(config.scenario).observation_size
    if config.init is None or size is None:
        return
    from maip3o.runners.checkpoint import find_checkpoint, load

    theirs, mine = load(find_checkpoint(config.init)), config.scenario
    if all(getattr(theirs.config.scenario, key) == getattr(mine, key) for key in ("world", "map", "metadrive")):
        return  # known without MetaDrive's seconds
    before, now = int(theirs.learner["normaliser"]["mean"].shape[0]), size(mine)
    if before != now:
        raise UserError(
            f"init={config.init}: its networks read {before} numbers, an observation of scenario {mine.name} has {now}"
        )
