"""How long a run is: in episodes, or in steps of the world if config.total_steps is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maip3o.config.schema import Config


@dataclass(frozen=True, slots=True)
class Budget:
    unit: str  # for people
    counter: str  # of a run's counters
    key: str  # of the config
    total: int
    each: int  # of an iteration: exactly so many episodes, or whole episodes until so many steps are reached

    def done(self, counters: Mapping[str, Any]) -> int:
        return int(counters[self.counter])

    def progress(self, counters: Mapping[str, Any]) -> float:
        """In [0, 1]: it drives the schedules."""
        return min(self.done(counters) / self.total, 1.0)

    def finished(self, counters: Mapping[str, Any]) -> bool:
        return self.done(counters) >= self.total


def budget_of(config: Config) -> Budget:
    if config.total_steps is not None and config.steps_per_iteration is not None:
        return Budget("step", "env_steps", "total_steps", config.total_steps, config.steps_per_iteration)
    return Budget("episode", "episodes", "total_episodes", config.total_episodes, config.episodes_per_iteration)


def fewest_episodes(config: Config) -> int:
    """Of an iteration: no episode is longer than the horizon."""
    budget = budget_of(config)
    return budget.each if budget.unit == "episode" else -(-budget.each // config.scenario.horizon)
