"""What an evaluation leaves on disk: evaluation.json and its figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maip3o.config.versions import versions
from maip3o.data.statistics import EpisodeTable
from maip3o.evaluation.figures import draw_reliability, draw_transfer
from maip3o.files import write_json
from maip3o.policy import Policy

if TYPE_CHECKING:
    from maip3o.evaluation.procedure import Evaluation


def write_evaluation(
    folder: Path,
    policy: Policy,
    deterministic: bool,
    evaluations: Sequence[Evaluation],
    clips: Sequence[dict[str, Any]],
) -> Path:
    """evaluation.json (the first setting on top, further ones under `transfer`), reliability.png and transfer.png."""
    folder.mkdir(parents=True, exist_ok=True)
    main = evaluations[0]
    content: dict[str, Any] = {
        "policy": policy.name,
        "checkpoint": str(policy.path),
        "trained": {name: policy.counters.get(name) for name in ("episodes", "env_steps", "seconds")},
        "algo": policy.config.algo.name,
        "actions": "mean" if deterministic else "sampled",
        "seeds": [int(seed) for seed in next(iter(main.tables.values())).seed[[0, -1]]],
        **_setting(main),
        "calibration": {name: asdict(calibration) for name, calibration in main.calibrations.items()},
        "episodes": {protocol: _rows(table) for protocol, table in main.tables.items()},
        "videos": [{**clip, "file": _relative(clip["file"], folder)} for clip in clips],
        "versions": versions(),
    }
    for name, calibration in main.calibrations.items():
        suffix = "" if len(main.calibrations) == 1 else f"_{name}"
        draw_reliability(folder / f"reliability{suffix}.png", policy.name, name, calibration)
    if len(evaluations) > 1:
        content["transfer"] = [_setting(evaluation) for evaluation in evaluations]
        counts = [evaluation.config.scenario.num_agents for evaluation in evaluations]
        cards = [evaluation.cards[list(evaluation.cards)[-1]] for evaluation in evaluations]
        draw_transfer(folder / "transfer.png", policy.name, counts, policy.config.scenario.num_agents, cards)
    return write_json(folder / "evaluation.json", content)


def _setting(evaluation: Evaluation) -> dict[str, Any]:
    scenario = evaluation.config.scenario
    return {
        "scenario": scenario.name,
        "num_agents": scenario.num_agents,
        "horizon": scenario.horizon,
        "backend": scenario.backend,
        "protocols": evaluation.cards,
    }


def _rows(table: EpisodeTable) -> list[dict[str, float]]:
    """One small object per episode."""
    return [
        {
            "seed": int(table.seed[row]),
            "return": round(float(table.reward[row]), 3),
            "length": int(table.length[row]),
            "lives": int(table.lives[row]),
            **{name: int(counts[row]) for name, counts in table.outcomes.items()},
        }
        for row in range(len(table.seed))
    ]


def _relative(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder)
