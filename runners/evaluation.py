"""Held-out episodes of a policy, through the same worker pool that training uses.

Two protocols: `first` is the paper's (an episode ends at the first crash or road exit, or when everybody has arrived),
`full` lets everybody drive to their own end, which shows how far from safe an unsafe policy is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from maip3o.config.schema import Config
from maip3o.data.episode import Episode
from maip3o.envs.contract import FloatArray
from maip3o.runners.pool import Pool
from maip3o.runners.worker import Job

END_RULES = {"first": "first", "full": "all"}
"""Protocol -> the scenario's end rule."""


def evaluation_job(config: Config, weights: dict[str, FloatArray], protocol: str, deterministic: bool) -> Job:
    """What a worker needs to drive held-out episodes. Shares nothing with the training's random state."""
    scenario = replace(config.scenario, end_rule=END_RULES[protocol])
    return Job(scenario, tuple(config.constraints), config.model, weights, deterministic)


def evaluate_policy(
    pool: Pool, config: Config, weights: dict[str, FloatArray], seeds: Sequence[int], protocol: str, deterministic: bool
) -> list[Episode]:
    """The episodes of `seeds`, in that order: a pure function of (config, weights, seeds), whatever the pool."""
    return pool.map(evaluation_job(config, weights, protocol, deterministic), seeds)
