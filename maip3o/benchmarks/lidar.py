"""Does a policy drive differently on closed-form lidar? The same policy, the same held-out episodes, both lidars.

python -m maip3o.benchmark lidar checkpoint=<run directory, file or shipped name> episodes=100
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

from maip3o.benchmarks.traces import in_child
from maip3o.config.schema import Config
from maip3o.data.episode import Episode
from maip3o.data.statistics import bootstrap_ratio, estimates, tabulate
from maip3o.envs import make_array_env
from maip3o.envs.contract import FloatArray
from maip3o.errors import UserError
from maip3o.models.compiled.act import NumpyActor
from maip3o.policy import load_policy
from maip3o.runners.rollout import rollout

FIGURES = ("return", "arrived", "crash_vehicle", "off_road")


def run(checkpoint: str = "", episodes: int = 50) -> dict[str, Any]:
    """Drives held-out episodes 0 to `episodes` - 1 to their end, with the mean of the policy."""
    if not checkpoint:
        raise UserError("checkpoint= is missing: a run directory, a checkpoint file or the name of a shipped policy")
    policy = load_policy(checkpoint)
    tables = {
        lidar: tabulate(in_child(partial(_drive, policy.config, policy.weights, lidar, episodes)))
        for lidar in ("exact", "analytic")
    }
    difference = bootstrap_ratio(tables["analytic"].reward - tables["exact"].reward)
    return {
        "checkpoint": checkpoint,
        "scenario": policy.config.scenario.name,
        "episodes": episodes,
        "return_difference": asdict(difference),
        **{lidar: {name: asdict(estimates(table)[name]) for name in FIGURES} for lidar, table in tables.items()},
    }


def _drive(config: Config, weights: dict[str, FloatArray], lidar: str, episodes: int) -> list[Episode]:
    scenario = replace(config.scenario, backend="fast", lidar=lidar, end_rule="all")
    env = make_array_env(scenario, tuple(config.constraints))
    actor = NumpyActor(weights, config.model)
    return [rollout(env, actor, seed, deterministic=False) for seed in range(episodes)]


def table(result: dict[str, Any]) -> str:
    lines = [f"{result['scenario']}, {result['episodes']} episodes, 95 % intervals"]
    lines.append(f"{'':<10}" + "".join(f"{name:>26}" for name in FIGURES))
    for lidar in ("exact", "analytic"):
        lines.append(f"{lidar:<10}" + "".join(f"{_show(result[lidar][name]):>26}" for name in FIGURES))
    return "\n".join([*lines, f"return, analytic minus exact, same episodes: {_show(result['return_difference'])}"])


def _show(estimate: dict[str, float]) -> str:
    return f"{estimate['mean']:.3f} ({estimate['low']:.3f}..{estimate['high']:.3f})"
