"""Statistics of evaluated episodes: intervals over episodes, tails, and shares of lives.

Agents of one episode share its world, so they are not independent. Means have a bootstrap over whole episodes. Shares
of lives have Clopper-Pearson with the number of lives divided by their design effect (Korn and Graubard, 1998).
Axis letters: T time, E episode, A agent slot, K constraint, P measurement, M lives of an episode, B bootstrap resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from maip3o.data.episode import Episode
from maip3o.envs.contract import BoolArray, FloatArray, IntArray, WorldSpec

LEVEL = 0.95
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval."""

    mean: float
    low: float
    high: float
    interval: str = "bootstrap"  # or Clopper-Pearson: one kind for one kind of number


@dataclass(slots=True)
class EpisodeTable:
    """What the figures are made of: one row per episode, sums over its lives. All arrays float64."""

    world: WorldSpec
    seed: IntArray  # [E]
    length: FloatArray  # [E] steps
    lives: FloatArray  # [E] number of lives, M
    reward: FloatArray  # [E] collective return: sum over agents
    worst_return: FloatArray  # [E] return of the life that earned least
    measurements: FloatArray  # [E, P] sum over lives
    outcomes: dict[str, FloatArray]  # name -> [E] lives that ended so; and "eliminated", if the world knows failures
    cost: FloatArray  # [E, K] sum over lives of the undiscounted cost
    slot_lives: FloatArray  # [E, A]
    slot_eliminated: FloatArray  # [E, A]

    @staticmethod
    def joined(parts: Sequence[EpisodeTable]) -> EpisodeTable:
        """The rows of several tables, in order."""
        columns = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(EpisodeTable)
            if field.name not in ("world", "outcomes")
        }
        outcomes = {name: np.concatenate([part.outcomes[name] for part in parts]) for name in parts[0].outcomes}
        return EpisodeTable(world=parts[0].world, outcomes=outcomes, **columns)


def life_sums(episode: Episode, values: FloatArray) -> FloatArray:
    """Sum `values` [T, A, ...] over each life of the episode: [M, ...], in the order of `life_end`."""
    total = np.cumsum(np.where(_expand(episode.active, values.ndim), values, 0.0), axis=0, dtype=np.float64)
    end, slot = episode.life_end[:, 0], episode.life_end[:, 1]
    start = life_starts(episode)
    before = np.where(_expand(start > 0, values.ndim - 1), total[np.maximum(start - 1, 0), slot], 0.0)
    return total[end, slot] - before


def life_starts(episode: Episode) -> IntArray:
    """First step of each life, [M]."""
    steps = np.arange(episode.length)[:, None]
    latest = np.maximum.accumulate(np.where(episode.first, steps, -1), axis=0)
    return latest[episode.life_end[:, 0], episode.life_end[:, 1]]


def _expand(mask: BoolArray, ndim: int) -> BoolArray:
    return mask.reshape(mask.shape + (1,) * (ndim - mask.ndim))


def tabulate(episodes: Sequence[Episode]) -> EpisodeTable:
    """One row per episode."""
    world = episodes[0].world
    failures = world.indices("failure")
    ends = [episode.outcome[episode.life_end[:, 0], episode.life_end[:, 1]] for episode in episodes]
    counts = {
        outcome.name: _floats([int(np.sum(end == index)) for end in ends])
        for index, outcome in enumerate(world.outcomes)
        if index > 0
    }
    if failures:
        counts["eliminated"] = _floats([int(np.isin(end, failures).sum()) for end in ends])
    returns = [life_sums(episode, episode.reward) for episode in episodes]
    return EpisodeTable(
        world=world,
        seed=np.array([episode.seed for episode in episodes]),
        length=_floats([episode.length for episode in episodes]),
        lives=_floats([len(end) for end in ends]),
        reward=_floats([r.sum() for r in returns]),
        worst_return=_floats([r.min() for r in returns]),
        measurements=_floats([episode.life_measurements.sum(axis=0) for episode in episodes]),
        outcomes=counts,
        cost=np.stack([life_sums(episode, episode.cost).sum(axis=0) for episode in episodes]),
        slot_lives=_floats([np.sum(episode.outcome != 0, axis=0) for episode in episodes]),
        slot_eliminated=_floats([np.isin(episode.outcome, failures).sum(axis=0) for episode in episodes]),
    )


def _floats(values: Sequence[float | IntArray]) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def ratios(table: EpisodeTable) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Every figure as (numerator [E], denominator [E]): its value is the ratio of their sums over episodes.

    Shares, measurements and costs are per life, the rest per episode.
    """
    episodes = np.ones_like(table.lives)
    figures = {
        "return": (table.reward, episodes),
        **{name: (count, table.lives) for name, count in table.outcomes.items()},
        "length": (table.length, episodes),
        **{m.name: (table.measurements[:, p], table.lives) for p, m in enumerate(table.world.measurements)},
        **{f"cost/{name}": (table.cost[:, k], table.lives) for k, name in enumerate(table.world.cost_names)},
        "worst_return": (table.worst_return, episodes),
    }
    if "arrived" in table.outcomes and "eliminated" in table.outcomes:
        # CoPO's efficiency: successes minus failures per unit of time; the unit here is 100 steps.
        net = 100.0 * (table.outcomes["arrived"] - table.outcomes["eliminated"])
        figures["efficiency"] = (net, table.length)
    return figures


def means(table: EpisodeTable) -> dict[str, float]:
    """The figures alone, by the names that metrics.jsonl uses: what an evaluation during training logs."""
    return {name: float(top.sum() / bottom.sum()) for name, (top, bottom) in ratios(table).items()}


def estimates(table: EpisodeTable) -> dict[str, Estimate]:
    """Every figure with its interval."""
    return {
        name: share_of_lives(top, bottom, design_effect(top, table))
        if name in table.outcomes
        else bootstrap_ratio(top, bottom)
        for name, (top, bottom) in ratios(table).items()
    }


def bootstrap_ratio(numerator: FloatArray, denominator: FloatArray | None = None) -> Estimate:
    """sum(numerator) / sum(denominator) over episodes [E] (None: the mean), percentile bootstrap over episodes.

    The resamples are the same for every call of equal length, so two policies are compared on equal draws.
    """
    numerator = np.asarray(numerator, dtype=np.float64)
    denominator = np.ones_like(numerator) if denominator is None else np.asarray(denominator, dtype=np.float64)
    rows = np.random.default_rng(0).integers(len(numerator), size=(RESAMPLES, len(numerator)))  # [B, E]
    ratios = numerator[rows].sum(axis=1) / denominator[rows].sum(axis=1)
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(numerator.sum() / denominator.sum()), float(low), float(high))


def design_effect(count: FloatArray, table: EpisodeTable) -> float:
    """How many lives of one episode tell as much as a single independent one, of what happened to `count` [E] of them.

    1 if lives are independent, the lives of an episode if they all share one fate, or if there is one episode only.
    What never happened, or always, borrows from the eliminated lives, and without any from the widest outcome.
    """
    most = float(table.lives.sum() / len(table.lives))
    if len(table.lives) == 1:
        return most
    effect = _spread_between_episodes(count, table.lives)
    if effect is None and "eliminated" in table.outcomes:
        effect = _spread_between_episodes(table.outcomes["eliminated"], table.lives)
    if effect is None:
        effect = max(_spread_between_episodes(other, table.lives) or 1.0 for other in table.outcomes.values())
    return min(max(1.0, effect), most)


def _spread_between_episodes(count: FloatArray, lives: FloatArray) -> float | None:
    """Variance of the share count / lives [E] over that of independent lives; None where nothing varies."""
    share = count.sum() / lives.sum()
    if share in (0.0, 1.0):
        return None
    between = np.sum((count - share * lives) ** 2) * len(lives) / (len(lives) - 1)
    return float(between / (share * (1.0 - share) * lives.sum()))


def share_of_lives(count: FloatArray, lives: FloatArray, effect: float = 1.0) -> Estimate:
    """Share sum(count) / sum(lives) over episodes [E], as of lives / effect independent ones."""
    independent = float(lives.sum()) / effect
    return clopper_pearson(float(count.sum() / lives.sum()) * independent, independent)


def clopper_pearson(successes: float, trials: float) -> Estimate:
    """Exact binomial 95 % interval of a share of independent trials, which may be a fraction of a number."""
    from scipy.stats import beta  # late: it takes half a second to load

    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} of {trials} is no share")
    tail = (1.0 - LEVEL) / 2.0
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1.0 - tail, successes + 1, trials - successes))
    return Estimate(successes / trials, low, high, "Clopper-Pearson")


def cvar(values: FloatArray, tail: float = 0.1) -> float:
    """Mean of the worst (largest) `tail` share of values; a value that straddles the edge counts in part."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    weight = np.clip(tail * len(ordered) - np.arange(len(ordered)), 0.0, 1.0)
    return float((weight * ordered).sum() / weight.sum())
