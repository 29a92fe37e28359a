"""The Python API: what `maip3o.train`, `maip3o.evaluate`, `maip3o.load_policy` and `maip3o.film` do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from maip3o.config.options import workers
from maip3o.config.overrides import add_plus
from maip3o.config.schema import RunnerConfig
from maip3o.envs.contract import FloatArray
from maip3o.errors import UserError
from maip3o.evaluation.filming import Cameraman, require_view
from maip3o.evaluation.procedure import Evaluation
from maip3o.evaluation.request import Request
from maip3o.evaluation.run import drive, evaluated_config
from maip3o.policy import Policy
from maip3o.policy import load_policy as _load_policy
from maip3o.runners.command import check
from maip3o.runners.compose import compose
from maip3o.runners.pool import make_pool
from maip3o.runners.run import run as _run
from maip3o.video import palette
from maip3o.video.encode import write_mp4

__all__ = ["Run", "evaluate", "film", "load_policy", "train"]


@dataclass
class Run:
    """A run on disk."""

    directory: Path

    @cached_property
    def policy(self) -> Policy:
        """As the run's last checkpoint holds it."""
        return _load_policy(self.directory)

    @property
    def metrics(self) -> dict[str, FloatArray]:
        """metrics.jsonl by column, a row per iteration, NaN where a row has no such figure.

        An evaluation stands in the row of the iteration before it. `pandas.DataFrame(run.metrics)` is a data frame.
        """
        rows: list[dict[str, Any]] = []
        for line in (self.directory / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.pop("kind") == "evaluation":
                rows[-1].update(record)
            else:
                rows.append(record)
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name) for row in rows], dtype=np.float64) for name in names}


def train(*overrides: str, config_dir: str | None = None) -> Run:
    """Train as `python -m maip3o.train` does with the same words: train("+scenario=intersection", "seed=1").

    The same call again goes on where it stopped, or finds the run finished.
    """
    if any(text.lstrip("+").startswith("resume=") for text in overrides):
        raise UserError("resume=: from Python, the same call goes on with its run")
    words = add_plus(overrides)
    check(words, config_dir, multirun=False)
    config, directory = compose(words, config_dir)
    _run(config, directory)
    return Run(directory)


def load_policy(name: str | Path) -> Policy:
    """A policy by run directory, checkpoint file or shipped name."""
    return _load_policy(name)


def evaluate(policy: Run | Policy | str, **options: Any) -> dict[str, dict[str, Any]]:
    """The safety card in numbers, by protocol: evaluate(run, episodes=50)["full"]["figures"]["eliminated"]["high"].

    `options` are those of `python -m maip3o.evaluate` (its --help), except those that make files: nothing is written.
    """
    policy = _policy(policy)
    request = _request(policy, options)
    with make_pool(RunnerConfig(), request.num_workers) as pool:
        (evaluation, *more) = drive(pool, policy, request)
    if more:
        raise UserError("num_agents: one number of agents at a time; call evaluate for each")
    return evaluation.cards


def film(policy: Run | Policy | str, path: str | Path, seed: int = 0, **options: Any) -> Path:
    """An mp4 of the held-out episode `seed`; `options` as in `evaluate`."""
    policy = _policy(policy)
    request = _request(policy, options)
    config = evaluated_config(policy, request, request.num_agents[0] if request.num_agents else None)
    require_view(config.scenario)
    palette.use(request.theme)
    with make_pool(RunnerConfig(), 1) as pool:
        camera = Cameraman(pool, Evaluation(config, request.deterministic), request.protocols(config.scenario)[-1])
        write_mp4(Path(path), *camera.clip(policy, seed))
    return Path(path)


def _policy(policy: Run | Policy | str) -> Policy:
    if isinstance(policy, Run):
        return policy.policy
    return policy if isinstance(policy, Policy) else _load_policy(policy)


WRITES = ("video", "gif", "replay", "versus", "out")


def _request(policy: Policy, options: dict[str, Any]) -> Request:
    for name in options:
        if name in WRITES or name not in Request.__dataclass_fields__:
            known = ", ".join(sorted(Request.__dataclass_fields__.keys() - {*WRITES, "checkpoint"}))
            raise UserError(f"unknown option {name!r}: known are {known}")
    numbers = options.get("num_agents")
    given = {**options, "num_agents": [numbers] if isinstance(numbers, int) else numbers}
    return Request(**{"checkpoint": str(policy.path), "num_workers": workers("num_workers", "auto"), **given})
