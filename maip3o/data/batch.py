"""Episodes -> one Batch: the active steps of all lives, flattened life by life. Dead slots never enter it.

Rows are ordered (episode, slot, time), so a life is a contiguous run of rows and a recurrent chunk is a slice of a
life: no chunk mixes agents, crosses a respawn, or needs a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maip3o.data.episode import Episode

Rows = NDArray[np.int64]


@dataclass(slots=True)
class Batch:
    """S active steps of M lives in E episodes; F lives were cut; G moments are the pairs (episode, time)."""

    observation: Tensor  # [S, O] raw
    memory: Tensor  # [S, H] the actor's memory before the step
    action: Tensor  # [S, U]
    log_prob: Tensor  # [S]
    final_observation: Tensor  # [F, O] after the cut
    final_memory: Tensor  # [F, H]
    reward: NDArray[np.float64]  # [S]
    cost: NDArray[np.float64]  # [S, K]
    final_row: Rows  # [F] row of the step at which the life was cut
    life_start: Rows  # [M] row of a life's first step
    life_length: Rows  # [M]
    life_cut: NDArray[np.bool_]  # [M] the life was cut (time-out, end rule), it did not end
    life_goal: NDArray[np.bool_] | None  # [M] the life reached its goal; None: the world has none
    life_episode: Rows  # [M]
    moment: Rows  # [S] index of (episode, time), in [0, G)
    episodes: int  # E

    @property
    def steps(self) -> int:
        return len(self.reward)

    @property
    def last_row(self) -> Rows:
        """[M] row of a life's last step."""
        return self.life_start + self.life_length - 1

    @property
    def age(self) -> Rows:
        """[S] steps since the life began."""
        return np.arange(self.steps) - np.repeat(self.life_start, self.life_length)

    @property
    def life(self) -> Rows:
        """[S] index of the life that a row belongs to."""
        return np.repeat(np.arange(len(self.life_start)), self.life_length)


def make_batch(episodes: Sequence[Episode], device: torch.device | str = "cpu") -> Batch:
    where = [np.argwhere(e.active.T)[:, ::-1] for e in episodes]  # rows (t, a), ordered by (a, t)
    counts = [len(rows) for rows in where]
    if sum(counts) == 0:
        raise ValueError("no active step in any episode: nothing to learn from")

    def flat(name: str) -> NDArray:
        return np.concatenate([getattr(e, name)[w[:, 0], w[:, 1]] for e, w in zip(episodes, where, strict=True)])

    def tensor(array: NDArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array, dtype=np.float32), device=device)

    goals = episodes[0].world.indices("goal")
    starts = np.flatnonzero(flat("first"))
    lengths = np.diff(np.append(starts, sum(counts)))
    episode = np.repeat(np.arange(len(episodes)), counts)
    time = np.concatenate([w[:, 0] for w in where])
    longest = max(e.length for e in episodes)
    _, moment = np.unique(episode * longest + time, return_inverse=True)
    return Batch(
        observation=tensor(flat("observation")),
        memory=tensor(flat("memory")),
        action=tensor(flat("action")),
        log_prob=tensor(flat("log_prob")),
        final_observation=tensor(np.concatenate([e.final_observation for e in episodes])),
        final_memory=tensor(np.concatenate([e.final_memory for e in episodes])),
        reward=flat("reward").astype(np.float64),
        cost=flat("cost").astype(np.float64),
        final_row=_final_rows(episodes, where),
        life_start=starts,
        life_length=lengths,
        life_cut=flat("truncated")[starts + lengths - 1],
        life_goal=np.isin(flat("outcome")[starts + lengths - 1], goals) if goals else None,
        life_episode=episode[starts],
        moment=moment.reshape(-1),
        episodes=len(episodes),
    )


def _final_rows(episodes: Sequence[Episode], where: Sequence[NDArray]) -> Rows:
    rows, offset = [], 0
    for episode, w in zip(episodes, where, strict=True):
        row_of = np.full(episode.active.shape, -1, np.int64)
        row_of[w[:, 0], w[:, 1]] = np.arange(offset, offset + len(w))
        rows.append(row_of[episode.final_index[:, 0], episode.final_index[:, 1]])
        offset += len(w)
    return np.concatenate(rows)


def by_life(batch: Batch, rows: NDArray[Any]) -> NDArray[Any]:
    """[S, ...] -> [longest life, M, ...], zeros after the end of a life."""
    padded = np.zeros((int(batch.life_length.max()), len(batch.life_start), *rows.shape[1:]), rows.dtype)
    padded[batch.age, batch.life] = rows
    return padded
