"""What a run needs besides a sound config: networks to start with that fit, a simulator that takes the scenario."""

from __future__ import annotations

from maip3o.config.schema import Config, ScenarioConfig
from maip3o.config.validation import get
from maip3o.errors import UserError


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
    """The networks of config.init read observations of this scenario's size. After check_simulator: its keys decide."""
    if config.init is None:
        return
    from maip3o.envs.driving.observation import observation_size
    from maip3o.runners.checkpoint import find_checkpoint, load

    theirs, mine = load(find_checkpoint(config.init)), config.scenario
    if (theirs.config.scenario.map, theirs.config.scenario.metadrive) == (mine.map, mine.metadrive):
        return  # known without MetaDrive's seconds
    before, now = int(theirs.learner["normaliser"]["mean"].shape[0]), observation_size(mine)
    if before != now:
        raise UserError(
            f"init={config.init}: its networks read {before} numbers, an observation of scenario {mine.name} has {now}"
        )


def check_simulator(scenario: ScenarioConfig) -> None:
    """What only MetaDrive knows (its own keys, places to start from), asked if it was changed: it takes seconds."""
    from maip3o.envs.scenarios import load_scenario, scenario_names

    if scenario.map == "toy":
        return
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
        from maip3o.envs.driving.fast.settings import check_scenario

        check_scenario(scenario)
