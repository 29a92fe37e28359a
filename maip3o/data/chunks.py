"""Lives -> recurrent chunks -> packed rows for the GRU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maip3o.config.schema import AlgoConfig
from maip3o.data.batch import Batch, Rows


@dataclass(slots=True)
class Chunks:
    """N slices of lives, each at most chunk_length long and inside one life."""

    start: Rows  # [N] row of the batch
    length: Rows  # [N]


@dataclass(slots=True)
class Packed:
    """Rows of chunks sorted by length, time-major: step j of every chunk that reaches it stands together."""

    rows: Rows  # [s] rows of the batch
    batch_sizes: Rows  # [L] chunks that reach step j, never increasing
    first_rows: Rows  # [n] each chunk's first row: its stored memory starts the chunk


def cut_into_chunks(batch: Batch, chunk_length: int) -> Chunks:
    """Each life is cut from its own start; its last chunk may be shorter. Every active step is in exactly one chunk."""
    per_life = -(-batch.life_length // chunk_length)
    life = np.repeat(np.arange(len(per_life)), per_life)
    number = np.arange(len(life)) - np.repeat(np.cumsum(per_life) - per_life, per_life)
    offset = number * chunk_length
    return Chunks(batch.life_start[life] + offset, np.minimum(chunk_length, batch.life_length[life] - offset))


def pack(chunks: Chunks, chosen: Rows) -> Packed:
    """Pack the chunks with the indices `chosen` [n]."""
    start, length = chunks.start[chosen], chunks.length[chosen]
    order = np.argsort(-length, kind="stable")
    start, length = start[order], length[order]
    batch_sizes = len(length) - np.searchsorted(length[::-1], np.arange(length[0]), side="right")
    step = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    chunk = np.arange(len(step)) - np.repeat(np.cumsum(batch_sizes) - batch_sizes, batch_sizes)
    return Packed(start[chunk] + step, batch_sizes, start)


def shuffled_minibatches(items: int, steps: int, algo: AlgoConfig, rng: np.random.Generator) -> list[Rows]:
    """One epoch: a permutation of `items` (chunks or moments, `steps` agent-steps in all) in nearly equal parts."""
    count = algo.minibatches if algo.minibatch_steps is None else -(-steps // algo.minibatch_steps)
    return np.array_split(rng.permutation(items), min(count, items))
