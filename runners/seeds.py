"""Episode seeds. Evaluation owns 0 .. 999_999 (episode i has seed i); training draws from everything above."""

from __future__ import annotations

import numpy as np

FIRST_TRAINING_SEED = 1_000_000
LAST_SEED = 2**31 - 1


def training_seed(run_seed: int, episode_index: int) -> int:
    """Seed of the episode_index-th training episode of a run: a pure function, so that resuming needs no generator."""
    word = int(np.random.SeedSequence([run_seed, episode_index]).generate_state(1, np.uint64)[0])
    return FIRST_TRAINING_SEED + word % (LAST_SEED - FIRST_TRAINING_SEED + 1)


def training_seeds(run_seed: int, first_index: int, count: int) -> list[int]:
    return [training_seed(run_seed, index) for index in range(first_index, first_index + count)]


def evaluation_seeds(count: int, first: int = 0) -> list[int]:
    """The held-out seeds, the same for every run and algorithm."""
    return list(range(first, first + count))
