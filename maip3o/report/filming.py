"""From a recorded episode to footage: the critics' view of it is added here."""

from __future__ import annotations

import numpy as np

from maip3o.config import ScenarioConfig
from maip3o.envs.contract import ELIMINATED, FloatArray
from maip3o.envs.near import linear_lidar
from maip3o.policy import Policy
from maip3o.report.footage import Footage
from maip3o.runners.recording import Recording

LIDAR_RAYS, LIDAR_RANGE = 72, 40.0  # MetaDrive's multi-agent defaults


def make_footage(policy: Policy, scenario: ScenarioConfig, recording: Recording) -> Footage:
    """What a video or replay of this recording shows; the first constraint is the one in the strip.

    A policy trained without any shows who was eliminated, without a limit and without a prediction.
    """
    episode = recording.episode
    constraint = next(iter(policy.config.constraints), None)
    if constraint is None:
        cost, limit = np.isin(episode.cause, ELIMINATED).astype(np.float32), float("nan")
        risk = np.full(episode.active.shape, np.nan, dtype=np.float32)
    else:
        cost, limit = episode.cost[..., 0], policy.config.constraints[constraint].limit
        risk = policy.predicted_costs(episode, constraint)
    rays, reach = _lidar(scenario)
    seen = _last(episode.observation, rays)
    return Footage(
        policy=policy.name,
        scenario=scenario.name,
        seed=episode.seed,
        tracks=recording.tracks,
        active=episode.active,
        cause=episode.cause,
        reward=np.where(episode.active, episode.reward, 0.0),
        cost=np.where(episode.active, cost, 0.0),
        constraint=constraint or "termination",
        limit=limit,
        risk=risk,
        value=policy.predicted_values(episode),
        lidar=linear_lidar(seen, reach) if scenario.observation == "near" else seen,
        lidar_range=reach,
    )


def _lidar(scenario: ScenarioConfig) -> tuple[int, float]:
    """Number of rays and their range in metres: MetaDrive puts the rays last in the observation."""
    settings = scenario.metadrive.get("vehicle_config", {}).get("lidar", {})
    return int(settings.get("num_lasers", LIDAR_RAYS)), float(settings.get("distance", LIDAR_RANGE))


def _last(observation: FloatArray, rays: int) -> FloatArray:
    return observation[..., observation.shape[-1] - rays :] if rays <= observation.shape[-1] else observation[..., :0]
