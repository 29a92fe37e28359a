"""Which episodes are worth a video: one per outcome, and a reel of what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from maip3o.data.statistics import EpisodeTable
from maip3o.envs.contract import FloatArray
from maip3o.video.footage import Footage
from maip3o.video.frames import Scene, moments
from maip3o.video.text import Image

REEL_EPISODES = 4
REEL_WINDOWS = 2  # per episode
BEFORE_STEPS, AFTER_STEPS, LONGEST_WINDOW = 35, 8, 90


def outcome_seeds(table: EpisodeTable) -> dict[str, int]:
    """Outcome -> seed of the episode with the largest share of it; outcomes that never happened are not in it."""
    names = [outcome.name for outcome in table.world.outcomes[1:] if outcome.kind != "cut"]
    return _a_film_each(table, {name: table.outcomes[name] / table.lives for name in names})


def telling_seeds(table: EpisodeTable) -> dict[str, int]:
    """What to show of a robot -> seed: the episode nearest the median return, the costliest, one of each failure."""
    scores: dict[str, FloatArray] = {"typical": 1.0 / (1.0 + np.abs(table.reward - np.median(table.reward)))}
    if table.cost.shape[1]:
        scores["costliest"] = table.cost[:, 0]
    failures = [outcome.name for outcome in table.world.outcomes if outcome.kind == "failure"]
    return _a_film_each(table, scores | {name: table.outcomes[name] for name in failures})


def _a_film_each(table: EpisodeTable, scores: Mapping[str, FloatArray]) -> dict[str, int]:
    """Name -> seed of the episode with the highest score [E] above 0; ties go to the lower seed.

    An episode has one film: what was seen only where another was filmed gets none.
    """
    seeds: dict[str, int] = {}
    for name, score in scores.items():
        fresh = np.where(np.isin(table.seed, list(seeds.values())), 0.0, score)
        if fresh.max() > 0:
            seeds[name] = int(table.seed[int(fresh.argmax())])
    return seeds


def worst_seeds(table: EpisodeTable, count: int = REEL_EPISODES) -> list[int]:
    """The episodes with the largest share of failures, worst first; among equals the one with the lowest return."""
    if "eliminated" not in table.outcomes:
        return []
    share = table.outcomes["eliminated"] / table.lives
    order = np.lexsort((table.reward, -share))
    return [int(table.seed[row]) for row in order[:count] if share[row] > 0]


def reel_frames(reel: Sequence[Footage], width: int, height: int) -> Iterator[Image]:
    """The last seconds before the first crashes of each episode, one after the other, frozen at the crash."""
    for footage in reel:
        scene = Scene(footage, width, height)
        for start, end in crash_windows(footage):
            for time, pulse in moments(footage):
                if start <= time <= end:
                    yield scene.frame(time, pulse)


def crash_windows(footage: Footage) -> list[tuple[int, int]]:
    """(first, last) step of what the reel shows of an episode: windows around its crashes that do not overlap."""
    windows: list[tuple[int, int]] = []
    for step in footage.crashes():
        start, end = max(0, step + 1 - BEFORE_STEPS), min(footage.steps, step + 1 + AFTER_STEPS)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], min(end, windows[-1][0] + LONGEST_WINDOW))
        else:
            windows.append((start, end))
    return windows[:REEL_WINDOWS]
