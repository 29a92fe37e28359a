"""What an update costs, algorithm by algorithm, on a robot's data: and OmniSafe's on as many steps, if it is there.

HalfCheetah is sampled once, 5,000 steps with a new policy. Each algorithm then updates on these episodes with 10 passes
of minibatches of 64, held to one core, and nothing stops the passes early. With an interpreter that has OmniSafe 0.5
(oracle=/path/to/python) its update runs in turns with ours, on the same core; it samples its own 5,000 steps.

python -m maip3o.benchmark algorithms oracle=/path/to/python
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from maip3o.algo.learner import Learner
from maip3o.benchmarks import omnisafe_update
from maip3o.benchmarks.update import one_core
from maip3o.config.algorithms import METHODS
from maip3o.data.episode import Episode
from maip3o.envs.registry import find_world
from maip3o.errors import UserError
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.compose import compose
from maip3o.runners.rollout import rollout
from maip3o.runners.seeds import training_seeds

OMNISAFE = {
    "ppo": "PPO",
    "ppo_lagrangian": "PPOLag",
    "cppo_pid": "CPPOPID",
    "cpo": "CPO",
    "pcpo": "PCPO",
    "cup": "CUP",
    "focops": "FOCOPS",
    "ipo": "IPO",
    "p3o": "P3O",
}  # it has no IP3O: P3O's update is the same work


def run(algo: str = "all", steps: int = 5000, epochs: int = 10, repeats: int = 3, oracle: str = "") -> dict[str, Any]:
    """algo: one of the ten, or all; oracle: an interpreter that has OmniSafe."""
    if algo != "all" and algo not in METHODS:
        raise UserError(f"algo={algo}: must be all or one of {', '.join(METHODS)}")
    if oracle and not Path(oracle).is_file():
        raise UserError(f"oracle={oracle}: no such interpreter")
    torch.set_num_threads(1)  # as torch_threads=auto
    methods = list(METHODS) if algo == "all" else [algo]
    with one_core():
        return {"steps": steps, "epochs": epochs, "updates": _measure(methods, steps, epochs, repeats, oracle)}


def _measure(methods: list[str], steps: int, epochs: int, repeats: int, oracle: str) -> dict[str, Any]:
    results = {}
    for method in methods:
        learner, episodes = _learner(method, steps, epochs)
        start = deepcopy(learner.state_dict())
        ours: list[float] = []
        theirs: list[float] = []
        with _omnisafe(oracle, OMNISAFE.get(method, "P3O"), steps, epochs) as other:
            for _ in range(repeats):
                learner.load_state_dict(start)
                used = time.process_time()
                learner.update(episodes)
                ours.append(time.process_time() - used)
                theirs += other()
        results[method] = {"ours_seconds": ours, "omnisafe_seconds": theirs}
    return results


def _learner(method: str, steps: int, epochs: int) -> tuple[Learner, list[Episode]]:
    config, _ = compose(["+scenario=half_cheetah_velocity", f"algo={method}", f"algo.epochs={epochs}"])
    config = replace(config, algo=replace(config.algo, minibatch_steps=64, kl_max=float("inf")))
    environment = find_world(config.scenario).make(config.scenario, tuple(config.constraints))
    learner = Learner(config, environment.spec)
    actor = NumpyActor(learner.actor_weights(), config.model)
    seeds = training_seeds(config.seed, 0, -(-steps // config.scenario.horizon))
    return learner, [rollout(environment, actor, seed, deterministic=False) for seed in seeds]


@contextmanager
def _omnisafe(python: str, name: str, steps: int, epochs: int) -> Iterator[Any]:
    """A function that makes OmniSafe update once and returns the seconds; none without an interpreter for it."""
    if not python:
        yield list
        return
    command = [python, omnisafe_update.__file__, name, str(steps), str(epochs), "64"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, told = process.stdin, process.stdout

        def update() -> list[float]:
            print(file=asked, flush=True)
            line = told.readline()
            if not line:
                raise UserError(f"oracle={python}: OmniSafe could not run {name}; try the command {' '.join(command)}")
            return [float(line)]

        yield update
        asked.close()


def table(result: dict[str, Any]) -> str:
    lines = [f"{result['steps']} steps, {result['epochs']} passes, minibatches of 64; seconds of one core, medians"]
    for method, update in result["updates"].items():
        ours = median(update["ours_seconds"])
        line = f"{method:16}{ours:7.2f}"
        if update["omnisafe_seconds"]:
            theirs = median(update["omnisafe_seconds"])
            line += f"   OmniSafe {OMNISAFE.get(method, 'P3O'):8}{theirs:7.2f}{theirs / ours:7.1f}x"
        lines.append(line)
    return "\n".join(lines)
