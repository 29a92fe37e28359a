"""What a run needs besides a sound config: networks to start with that fit, a simulator that takes the scenario."""

from __future__ import annotations

from maip3o.config.schema import Config
from maip3o.config.validation import get
from maip3o.envs.registry import find_world
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
