"""Batch and values -> advantages and critic targets, for the reward and for each constraint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maip3o.config import AlgoConfig
from maip3o.data.advantage import gae
from maip3o.data.batch import Batch, by_episode, by_life

Array = NDArray[np.float64]


@dataclass(slots=True)
class Returns:
    """All raw: nothing is standardised here."""

    advantage: Array  # [S] of the reward, by the configured credit
    target: Array  # [S] each agent's own return, for v_i
    team_target: Array  # [G] the team's return, for V_tot
    team_value: Array  # [G] V_tot that the critic predicted
    cost_advantage: Array  # [S, K]
    cost_target: Array  # [S, K]


def compute_returns(batch: Batch, value: Array, final_value: Array, algo: AlgoConfig) -> Returns:
    """value [S, 1 + K] and final_value [F, 1 + K]: column 0 the reward's, then one per constraint."""
    next_value = _next_value(batch, value, final_value)
    own = _gae_of_lives(batch, batch.reward, value[:, 0], next_value[:, 0], algo.gamma, algo.gae_lambda)
    cost = _gae_of_lives(batch, batch.cost, value[:, 1:], next_value[:, 1:], algo.cost_gamma, algo.cost_gae_lambda)
    team_advantage, team_value = _team_gae(batch, value[:, 0], final_value[:, 0], algo)
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


def _team_gae(batch: Batch, value: Array, final_value: Array, algo: AlgoConfig) -> tuple[Array, Array]:
    """Advantage and V_tot of the team, [G]. Reward and value are sums over the agents that act at each moment."""
    moments = len(batch.moment_time)
    reward = np.bincount(batch.moment, weights=batch.reward, minlength=moments)
    team_value = np.bincount(batch.moment, weights=value, minlength=moments).astype(np.float64)
    # A car that was cut is worth its bootstrap to the team, beside those who drive on (and those who entered).
    cut = np.bincount(batch.moment[batch.final_row], weights=final_value, minlength=moments)
    reward_te, value_te, cut_te = (by_episode(batch, rows) for rows in (reward, team_value, cut))
    following = np.zeros_like(value_te)
    following[:-1] = value_te[1:]
    continues = np.ones(value_te.shape, bool)
    advantage = gae(reward_te, value_te, following + cut_te, continues, algo.gamma, algo.gae_lambda)
    return advantage[batch.moment_time, batch.moment_episode], team_value
