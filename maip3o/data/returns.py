"""Batch and values -> advantages and critic targets, for the reward and for each constraint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maip3o.config.schema import AlgoConfig
from maip3o.data.advantage import gae
from maip3o.data.batch import Batch, by_life

Array = NDArray[np.float64]


@dataclass(slots=True)
class Returns:
    """All raw: nothing is standardised here."""

    advantage: Array  # [S] of the reward, by the configured credit
    target: Array  # [S] each agent's own return, for v_i
    team_target: Array  # [G] the return of the cars that act, for V_tot
    team_value: Array  # [G] V_tot that the critic predicted
    cost_advantage: Array  # [S, K]
    cost_target: Array  # [S, K]


def compute_returns(batch: Batch, value: Array, final_value: Array, algo: AlgoConfig) -> Returns:
    """value [S, 1 + K] and final_value [F, 1 + K]: column 0 the reward's, then one per constraint."""
    next_value = _next_value(batch, value, final_value)
    own = _gae_of_lives(batch, batch.reward, value[:, 0], next_value[:, 0], algo.gamma, algo.gae_lambda)
    cost = _gae_of_lives(batch, batch.cost, value[:, 1:], next_value[:, 1:], algo.cost_gamma, algo.cost_gae_lambda)
    team_advantage, team_value = _sum_over_cars(batch, own), _sum_over_cars(batch, value[:, 0])
    return Returns(
        advantage=team_advantage[batch.moment] if algo.credit == "team" else own,
        target=own + value[:, 0],
        team_target=team_advantage + team_value,
        team_value=team_value,
        cost_advantage=cost,
        cost_target=cost + value[:, 1:],
    )


def _next_value(batch: Batch, value: Array, final_value: Array) -> Array:
    """[S, 1 + K]: v of the next step of the same life; of the last observation where it was cut; 0 where it ended."""
    following = np.zeros_like(value)
    following[:-1] = value[1:]
    following[batch.last_row] = 0.0
    following[batch.final_row] = final_value
    return following


def _gae_of_lives(batch: Batch, reward: Array, value: Array, next_value: Array, gamma: float, lam: float) -> Array:
    """GAE along each life by itself. [S] or [S, K]"""
    continues = np.ones(reward.shape, bool)
    continues[batch.last_row] = False
    r, v, v_next, go_on = (by_life(batch, rows) for rows in (reward, value, next_value, continues))
    return gae(r, v, v_next, go_on, gamma, lam)[batch.age, batch.life]


def _sum_over_cars(batch: Batch, rows: Array) -> Array:
    """[S] -> [G]: over the cars that act at each moment. GAE is linear, so the team's advantage is the sum of theirs.

    A car that enters later (respawn, staggered start) is no part of the team before: nobody who drives now brought it,
    and its reward in V_tot would make every v_i a share of the traffic to come instead of the car's own prospects.
    """
    return np.bincount(batch.moment, weights=rows).astype(np.float64)
