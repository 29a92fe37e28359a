"""A tiny run on the toy environment, shared by the runner's tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from maip3o.config.schema import Config, ConstraintConfig, ScenarioConfig
from maip3o.envs.toy import ToyEnv
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners import checkpoint, loop
from maip3o.runners.pool import Pool
from maip3o.runners.run import run
from maip3o.runners.worker import Job


def toy_config(**changes: Any) -> Config:
    """Three cars, twenty steps, no simulator."""
    config = Config(
        scenario=ScenarioConfig(name="toy", world="toy", num_agents=3, horizon=20, backend="stock"),
        constraints={"termination": ConstraintConfig(0.1)},
        total_episodes=12,
        episodes_per_iteration=4,
        num_workers=1,
        torch_threads=1,
        device="cpu",
    )
    config.algo.name = "maip3o"
    config.algo.epochs, config.algo.minibatches = 1, 2
    config.algo.lr_schedule = "constant"  # so that a run can be prolonged and still be the same
    config.evaluation.every_episodes = 8
    config.evaluation.episodes = 2
    config.logger.tensorboard = False
    config.logger.quiet = True
    config.model.hidden_sizes = [8]
    config.model.memory_size = 4
    for name, value in changes.items():
        setattr(config, name, value)
    return config


def toy_job(horizon: int = 20, **settings: Any) -> Job:
    """Episodes of an untrained policy. `settings` go to ToyEnv."""
    from maip3o.algo.learner import Learner

    config = toy_config()
    scenario = ScenarioConfig(name="toy", world="toy", num_agents=3, horizon=horizon, settings=settings)
    weights: Any = Learner(config, ToyEnv().spec, "cpu").actor_weights()
    return Job(scenario, ("termination",), config.model, weights)


class InlineWorker:
    """Calls in this process: for tests of the trainer alone."""

    def call(self, function: Callable[..., Any], argument: Any, timeout: float) -> Any:
        return function(argument)

    def kill(self) -> None:
        pass


def train_inline(config: Config, directory: Path, prolong: bool = False) -> float:
    """A run without worker processes."""
    with patch.object(loop, "make_pool", lambda runner, num_workers: Pool(InlineWorker, 1, runner)):
        return run(config, directory, prolong)


@contextmanager
def processes_of(kind: type[Any]) -> Iterator[set[int]]:
    """The ids of the processes that workers of this kind call functions in, meanwhile."""
    seen: set[int] = set()
    real = kind.call

    def call(self: Any, function: Callable[..., Any], argument: Any, timeout: float) -> Any:
        seen.add(real(self, eval, "__import__('os').getpid()", timeout))
        return real(self, function, argument, timeout)

    with patch.object(kind, "call", call):
        yield seen


def toy_actor(job: Job) -> NumpyActor:
    return NumpyActor(job.weights, job.model)


def final_state(directory: Path) -> dict[str, Any]:
    """Everything that training has made, flat: weights, optimisers, normalisers, counters but for the clock."""
    loaded = checkpoint.load(directory / "checkpoints" / "last.pt")
    counters = {k: v for k, v in loaded.counters.items() if k not in ("seconds", "metrics_bytes")}
    return {**_flat(loaded.learner, "learner"), **_flat(counters, "counters")}


def _flat(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return {key: leaf for k, v in value.items() for key, leaf in _flat(v, f"{name}.{k}").items()}
    if isinstance(value, (list, tuple)):
        return {key: leaf for k, v in enumerate(value) for key, leaf in _flat(v, f"{name}.{k}").items()}
    return {name: value.numpy().tobytes() if isinstance(value, torch.Tensor) else value}


def assert_same_episode(one: Any, other: Any) -> None:
    for name in one.__dataclass_fields__:
        if not name.startswith("seconds"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
