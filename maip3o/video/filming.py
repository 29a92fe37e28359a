"""From a recorded episode to footage: the critics' view of it is added here."""

from __future__ import annotations

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.driving.near import linear_lidar
from maip3o.envs.driving.observation import observation_layout
from maip3o.envs.driving.outcomes import ELIMINATED
from maip3o.policy import Policy
from maip3o.video.footage import Footage
from maip3o.video.recording import Recording


def make_footage(policy: Policy, scenario: ScenarioConfig, recording: Recording) -> Footage:
    """What a video or replay of this recording shows; the first constraint is the one in the strip.

    A policy trained without any shows who was eliminated, without a limit and without a prediction.
    """
    episode = recording.episode
    constraint = next(iter(policy.config.constraints), None)
    if constraint is None:
        cost, limit = np.isin(episode.outcome, ELIMINATED).astype(np.float32), float("nan")
        risk = np.full(episode.active.shape, np.nan, dtype=np.float32)
    else:
        cost, limit = episode.cost[..., 0], policy.config.constraints[constraint].limit
        risk = policy.predicted_costs(episode, constraint)
    beams, reach = _lidar(scenario)
    seen = episode.observation[..., beams]
    return Footage(
        policy=policy.name,
        scenario=scenario.name,
        seed=episode.seed,
        tracks=recording.tracks,
        active=episode.active,
        cause=episode.outcome,
        reward=np.where(episode.active, episode.reward, 0.0),
        cost=np.where(episode.active, cost, 0.0),
        constraint=constraint or "termination",
        limit=limit,
        risk=risk,
        value=policy.predicted_values(episode),
        lidar=linear_lidar(seen, reach) if scenario.observation == "near" else seen,
        lidar_range=reach,
    )


def _lidar(scenario: ScenarioConfig) -> tuple[slice, float]:
    """Where the beams stand in the observation, and their reach in metres."""
    if scenario.world != "driving":
        return slice(0, 0), 1.0
    part = next(part for part in observation_layout(scenario) if part.name == "lidar")
    return part.slice, part.high
