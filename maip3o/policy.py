"""A trained policy, read back from a run directory, a checkpoint file or a shipped name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maip3o.algo.learner import Learner
from maip3o.config.schema import Config, ScenarioConfig
from maip3o.data.episode import Episode
from maip3o.envs.contract import FloatArray, WorldSpec
from maip3o.errors import UserError
from maip3o.models.acting import Acting, stacked
from maip3o.runners.checkpoint import find_checkpoint, load


@dataclass(slots=True)
class Policy:
    """What evaluation, video, replay and export need of a checkpoint."""

    name: str  # safe as a file name
    path: Path
    config: Config
    learner: Learner
    counters: dict[str, Any]
    observation_size: int
    action_size: int
    _driver: Acting | None = None  # made when it first acts

    def act(
        self, observations: Mapping[str, FloatArray] | FloatArray, deterministic: bool = False
    ) -> dict[str, FloatArray] | FloatArray:
        """Actions for agents by name, for the rows of [A, O], or for a single agent's observation [O].

        The memory of each agent is kept until `reset`. Actions are not clipped to the range of the environment.
        """
        if self._driver is None:
            self._driver = Acting(self.weights, self.config.model, self.observation_size)
        if isinstance(observations, Mapping):
            if not observations:
                return {}
            actions = self._driver.act(stacked(observations), list(observations), deterministic)
            return dict(zip(observations, actions, strict=True))
        rows = np.asarray(observations, np.float32)
        actions = self._driver.act(np.atleast_2d(rows), list(range(len(np.atleast_2d(rows)))), deterministic)
        return actions if rows.ndim == 2 else actions[0]

    def reset(self, seed: int = 0) -> None:
        """Forget everybody; `seed` is that of the sampled actions, as in an evaluation of the episode `seed`."""
        self._driver = Acting(self.weights, self.config.model, self.observation_size)
        self._driver.reset(seed)

    @property
    def weights(self) -> dict[str, FloatArray]:
        return self.learner.actor_weights()

    def seeing(self, scenario: ScenarioConfig) -> ScenarioConfig:
        """Another scenario, observed as this policy was trained to."""
        return replace(scenario, observation=self.config.scenario.observation)

    def predicted_costs(self, episode: Episode, constraint: str) -> FloatArray:
        """The cost critic's prediction [T, A], NaN where nobody acts."""
        return self._predicted(episode, self.learner.predict_costs(*self._acting(episode))[constraint])

    def predicted_values(self, episode: Episode) -> FloatArray:
        """The value critic's prediction [T, A], NaN where nobody acts."""
        return self._predicted(episode, self.learner.predict_value(*self._acting(episode)))

    @staticmethod
    def _acting(episode: Episode) -> tuple[FloatArray, FloatArray]:
        return episode.observation[episode.active], episode.memory[episode.active]

    @staticmethod
    def _predicted(episode: Episode, values: FloatArray) -> FloatArray:
        table = np.full(episode.active.shape, np.nan, dtype=np.float32)
        table[episode.active] = values
        return table


def load_policy(name: str | Path) -> Policy:
    """Read a policy; every way in which a file can be wrong is one line."""
    path = find_checkpoint(name)
    checkpoint = load(path)
    try:
        observation_size, action_size = _sizes(checkpoint.learner)
        learner = Learner(checkpoint.config, WorldSpec(observation_size, action_size), "cpu")
        learner.load_networks(checkpoint.learner)
    except (KeyError, RuntimeError, AttributeError, IndexError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"checkpoint {path}: its weights do not fit its configuration ({reason})") from None
    return Policy(
        _name(path, checkpoint.config),
        path,
        checkpoint.config,
        learner,
        checkpoint.counters,
        observation_size,
        action_size,
    )


def _sizes(learner: dict[str, Any]) -> tuple[int, int]:
    """Of observation and action."""
    if "sizes" in learner:
        return learner["sizes"]["observation"], learner["sizes"]["action"]
    actor = learner["actor"]  # an older checkpoint does not say
    return int(actor["encoder.0.weight"].shape[1]), int(actor["log_std"].shape[0])


def _name(path: Path, config: Config) -> str:
    """`maip3o_intersection_seed0` for the last checkpoint of a run, with its stem for another, else the file's stem."""
    if path.parent.name != "checkpoints":
        return path.stem
    name = f"{config.algo.name}_{config.scenario.name}_seed{config.seed}"
    return name if path.stem == "last" else f"{name}_{path.stem}"


def run_directory(path: Path) -> Path | None:
    """The run that a checkpoint file belongs to, if any."""
    return path.parent.parent if path.parent.name == "checkpoints" else None
