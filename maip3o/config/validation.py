"""What can be wrong with a config and known before the run starts. Each message names key, value and cure."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from maip3o.config.algorithms import check_method
from maip3o.config.budget import fewest_episodes
from maip3o.config.schema import Config, alpha_of
from maip3o.errors import UserError

Check = tuple[Callable[[Any], bool], str]

POSITIVE: Check = (lambda x: 0 < x < math.inf, "must be above 0 and finite")
NOT_NEGATIVE: Check = (lambda x: 0 <= x < math.inf, "must be 0 or above, and finite")
DISCOUNT: Check = (lambda x: 0 <= x < 1, "must be in [0, 1)")
SHARE: Check = (lambda x: 0 <= x <= 1, "must be in [0, 1]")
FINITE: Check = (math.isfinite, "must be a finite number")
COUNT: Check = (lambda x: x >= 1, "must be 1 or above")
COUNT_OR_0: Check = (lambda x: x >= 0, "must be 0 or above")
COUNT_OR_NULL: Check = (lambda x: x is None or x >= 1, "must be 1 or above, or null")
NAME: Check = (lambda x: bool(x.strip()), "must not be empty")
COUNT_OR_AUTO: Check = (
    lambda x: x == "auto" or (not isinstance(x, str) and 1 <= x <= 1024),
    "must be a number from 1 to 1024, or auto",
)


def one_of(*names: str) -> Check:
    return lambda x: x in names, f"must be one of {', '.join(names)}"


RULES: dict[str, Check] = {
    "seed": (lambda x: 0 <= x < 2**32, "must be in [0, 4294967296)"),
    "total_episodes": COUNT,
    "episodes_per_iteration": COUNT,
    "total_steps": COUNT_OR_NULL,
    "steps_per_iteration": COUNT_OR_NULL,
    "start_spread": (lambda x: x is None or x >= 1, "must be 1 step or above, or null"),
    "num_workers": COUNT_OR_AUTO,
    "torch_threads": COUNT_OR_AUTO,
    "device": (lambda x: x in ("auto", "cpu") or x.split(":")[0] == "cuda", "must be auto, cpu, cuda or cuda:<number>"),
    "checkpoint_every_episodes": COUNT_OR_0,
    "scenario.name": NAME,
    "scenario.num_agents": COUNT,
    "scenario.horizon": COUNT,
    "algo.name": NAME,
    "algo.penalty.eta": NOT_NEGATIVE,
    "algo.penalty.eta_start": (lambda x: x is None or 0 <= x < math.inf, "must be 0 or above and finite, or null"),
    "algo.penalty.growth": one_of("fixed", "odds"),
    "algo.penalty.alpha": (lambda x: x is None or 0 < x < math.inf, "must be above 0 and finite, or null"),
    "algo.gamma": DISCOUNT,
    "algo.gae_lambda": SHARE,
    "algo.cost_gamma": SHARE,
    "algo.cost_gae_lambda": SHARE,
    "algo.clip": (lambda x: 0 < x < 1, "must be in (0, 1)"),
    "algo.cost_scale": one_of("one", "horizon", "life"),
    "algo.constraint_estimate": one_of("mean", "uncensored"),
    "algo.constraint_unit": one_of("per_agent", "per_team"),
    "algo.reward_advantage": one_of("standardised", "centred", "raw"),
    "algo.cost_advantage": one_of("standardised", "centred", "raw"),
    "algo.credit": one_of("decomposed", "team"),
    "algo.value_target": one_of("team", "agent"),
    "algo.huber_delta": POSITIVE,
    "algo.epochs": COUNT,
    "algo.minibatches": COUNT,
    "algo.minibatch_steps": COUNT_OR_NULL,
    "algo.chunk_length": COUNT,
    "algo.lr": POSITIVE,
    "algo.critic_lr": POSITIVE,
    "algo.lr_schedule": one_of("constant", "linear"),
    "algo.entropy_bonus": NOT_NEGATIVE,
    "algo.max_grad_norm": POSITIVE,
    "algo.kl_min": FINITE,
    "algo.kl_max": POSITIVE,
    "algo.kl_test": one_of("minibatch", "epoch"),
    "model.hidden_sizes": (lambda x: len(x) > 0 and min(x) >= 1, "must list at least one size, each 1 or above"),
    "model.activation": one_of("tanh", "relu"),
    "model.memory_size": COUNT,
    "model.compiled": one_of("auto", "off"),
    "scenario.initial_std": (lambda x: x is None or min(x, default=0) > 0, "must be numbers above 0, or null"),
    "runner.name": one_of("local", "ray"),
    "runner.episode_timeout": POSITIVE,
    "runner.max_attempts": COUNT,
    "evaluation.every_episodes": COUNT_OR_0,
    "evaluation.episodes": (lambda x: 1 <= x <= 1_000_000, "must be in [1, 1000000]: the held-out seeds"),
}


def validate(config: Config) -> Config:
    """The config itself if its keys are sound; a UserError that names the first thing wrong otherwise.

    What only the scenario's world can tell is checked by `runners.prerequisites`.
    """
    validate_keys(config)
    for check in (_episodes, _start_spread, _workers, _sequences, _constraints, _algorithm, _device, _runner):
        check(config)
    return config


def validate_keys(config: Config) -> Config:
    """Of `validate` what concerns each key by itself, which is all that an evaluation needs."""
    for key, (holds, cure) in RULES.items():
        value = get(config, key)
        if not holds(value):
            raise UserError(f"{key}={value}: {cure}")
    return config


def get(config: Config, key: str) -> Any:
    """The value of a dotted key."""
    return reduce(getattr, key.split("."), config)


def _episodes(config: Config) -> None:
    total, each = config.total_episodes, config.episodes_per_iteration
    if (config.total_steps is None) != (config.steps_per_iteration is None):
        missing = "total_steps" if config.total_steps is None else "steps_per_iteration"
        raise UserError(f"{missing}=null: total_steps and steps_per_iteration belong together; set both, or neither")
    if config.total_steps is None and total % each:
        # A shorter last iteration would make the run differ from a longer one that passes the same point.
        near = max(round(total / each), 1) * each
        raise UserError(
            f"total_episodes={total}: must be a multiple of episodes_per_iteration={each}, for instance {near}"
        )


def _start_spread(config: Config) -> None:
    spread, horizon = config.start_spread, config.scenario.horizon
    if spread is not None and config.scenario.num_agents == 1:
        raise UserError(f"start_spread={spread}: scenario {config.scenario.name} has one agent, nobody starts after it")
    if spread is not None and spread >= horizon:
        raise UserError(f"start_spread={spread}: must be below scenario.horizon={horizon}, or some cars never drive")


def _workers(config: Config) -> None:
    number, each = config.num_workers, fewest_episodes(config)
    if not isinstance(number, str) and number > each:
        key = "steps_per_iteration" if config.total_steps else "episodes_per_iteration"
        raise UserError(
            f"num_workers={number}: an iteration has {each} episodes "
            f"({key}={get(config, key)}); set num_workers to {each} or less"
        )


def _sequences(config: Config) -> None:
    scenario, algo = config.scenario, config.algo
    if algo.chunk_length > scenario.horizon and config.model.recurrent:
        raise UserError(
            f"algo.chunk_length={algo.chunk_length}: no episode is longer than scenario.horizon={scenario.horizon}"
        )
    length = algo.chunk_length if config.model.recurrent else 1
    # chunks of an iteration in which every car drives to the end; with respawn there are more, of newcomers
    chunks = fewest_episodes(config) * scenario.num_agents * -(-scenario.horizon // length)
    if algo.minibatches > chunks and not scenario.respawn:
        raise UserError(
            f"algo.minibatches={algo.minibatches}: more than the {chunks} chunks of an iteration "
            f"({fewest_episodes(config)} episodes x scenario.num_agents={scenario.num_agents} "
            f"x scenario.horizon={scenario.horizon} / {length} steps of a chunk)"
        )


def _constraints(config: Config) -> None:
    or_null = {"alpha": POSITIVE, "eta": NOT_NEGATIVE}
    for name, constraint in config.constraints.items():
        for part, (holds, cure) in {"limit": NOT_NEGATIVE, **or_null}.items():
            value = getattr(constraint, part)
            if not (value is None and part in or_null) and not holds(value):
                raise UserError(f"constraints.{name}.{part}={value}: {cure}{', or null' if part in or_null else ''}")


def _algorithm(config: Config) -> None:
    penalty = config.algo.penalty
    check_method(config.algo.method, config.algo.settings)
    least = min([alpha_of(penalty, one) for one in config.constraints.values()], default=1.0)
    if config.algo.method in ("ip3o", "ipo") and least <= 0:
        raise UserError(f"algo.penalty.alpha={penalty.alpha}: a limit of 0 gives no scale; set algo.penalty.alpha")
    if penalty.floor_h is not None and not 0 < penalty.floor_h < min(least, 1.0):
        # From 1 on the floor would lie above 0, where the limit is violated.
        bound = f"alpha={least:g}" if least < 1 else "1"
        raise UserError(f"algo.penalty.floor_h={penalty.floor_h}: must be in (0, {bound}), or null")
    if penalty.growth == "odds" and penalty.eta_start is not None:
        raise UserError(
            f"algo.penalty.eta_start={penalty.eta_start}: algo.penalty.growth=odds decides the weight; "
            "set algo.penalty.growth=fixed for one that grows with the episodes"
        )
    if config.algo.cost_scale == "horizon" and config.algo.cost_gamma == 1:
        raise UserError("algo.cost_scale=horizon is 1 / (1 - algo.cost_gamma): algo.cost_gamma must be below 1")
    if config.algo.method == "cup" and config.algo.cost_gamma == 1:
        raise UserError("algo.cost_gamma=1.0: algo.method=cup divides by 1 - algo.cost_gamma; it must be below 1")
    if config.algo.kl_min >= config.algo.kl_max:
        raise UserError(f"algo.kl_min={config.algo.kl_min}: must be below algo.kl_max={config.algo.kl_max}")


def _device(config: Config) -> None:
    if config.device.startswith("cuda"):
        import torch

        number = config.device.partition(":")[2] or "0"
        if not number.isdigit():
            raise UserError(f"device={config.device}: must be auto, cpu, cuda or cuda:<number>")
        if int(number) >= torch.cuda.device_count():
            raise UserError(
                f"device={config.device}: this machine has {torch.cuda.device_count()} CUDA devices; use cpu or auto"
            )


def _runner(config: Config) -> None:
    from importlib.util import find_spec

    if config.runner.name == "ray" and find_spec("ray") is None:
        raise UserError("runner=ray: Ray is not installed; pip install 'maip3o[ray]'")
    if config.runner.name == "local" and config.runner.address is not None:
        raise UserError(f"runner.address={config.runner.address}: only runner=ray has an address")
    if config.logger.wandb_project is not None and find_spec("wandb") is None:
        raise UserError("logger.wandb_project is set, but wandb is not installed; pip install 'maip3o[wandb]'")
    if config.logger.wandb_project is not None and not config.logger.tensorboard:
        raise UserError("logger.wandb_project reads TensorBoard's events: logger.tensorboard must be true")
    if config.resume is not None and not Path(config.resume).is_dir():
        raise UserError(f"resume={config.resume}: no such run directory")
