"""How fast does training go, end to end and by phase? Several numbers of workers in turns, of cars both backends.

All settings run the same iterations (same weights, same episode seeds), one iteration each in turn, so that what else
the machine does falls on all of them alike. Episodes are those of an untrained policy unless a checkpoint is named.

python -m maip3o.benchmark training rounds=5
python -m maip3o.benchmark training scenario=half_cheetah_velocity episodes=5
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import psutil
import torch

from maip3o.algo.learner import Learner
from maip3o.config.schema import Config, ScenarioConfig
from maip3o.data.episode import Episode
from maip3o.errors import UserError
from maip3o.runners import checkpoint
from maip3o.runners.compose import compose
from maip3o.runners.pool import Pool, make_pool
from maip3o.runners.seeds import training_seeds
from maip3o.runners.worker import Job, world_spec

PHASES = ("simulate", "infer", "send", "update")


@dataclass
class Setting:
    """One way to run the same training, and what it took so far."""

    backend: str
    workers: int
    config: Config
    pool: Pool
    learner: Learner
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("sample", *PHASES), 0.0))
    env_steps: int = 0
    agent_steps: int = 0

    def iterate(self, seeds: list[int], measured: bool) -> None:
        """One iteration. Seconds of simulate, infer and send are those of one worker, the others wall time."""
        started = time.perf_counter()
        weights: Any = self.learner.actor_weights()
        job = Job(self.config.scenario, tuple(self.config.constraints), self.config.model, weights)
        episodes = self.pool.map(job, seeds)
        sampled = time.perf_counter()
        self.learner.update(episodes, 0.0)
        updated = time.perf_counter()
        if measured:
            self._add(episodes, sampled - started, updated - sampled)

    def _add(self, episodes: list[Episode], sample: float, update: float) -> None:
        simulate = sum(episode.seconds_simulate for episode in episodes) / self.workers
        infer = sum(episode.seconds_infer for episode in episodes) / self.workers
        for name, value in (("sample", sample), ("simulate", simulate), ("infer", infer), ("update", update)):
            self.seconds[name] += value
        self.seconds["send"] += sample - simulate - infer  # and the wait for the last episode of an iteration
        self.env_steps += sum(episode.length for episode in episodes)
        self.agent_steps += sum(int(episode.active.sum()) for episode in episodes)

    def result(self) -> dict[str, Any]:
        total = self.seconds["sample"] + self.seconds["update"]
        return {
            "backend": self.backend,
            "workers": self.workers,
            "env_steps": self.env_steps,
            "env_steps_per_second": self.env_steps / total,
            "agent_steps_per_second": self.agent_steps / total,
            "sample_env_steps_per_second": self.env_steps / self.seconds["sample"],
            "infer_share_of_worker": self.seconds["infer"] / (self.seconds["infer"] + self.seconds["simulate"]),
            "seconds": dict(self.seconds),
        }


def run(
    rounds: int = 3,
    episodes: int = 20,
    scenario: str = "intersection",
    workers: str = "1,2",
    backends: str = "auto",
    checkpoint_name: str = "",
) -> dict[str, Any]:
    """rounds: measured iterations per setting, after one that is not; episodes: of an iteration.

    backends: of cars fast, stock or both; auto: both.
    """
    config, _ = compose([f"+scenario={scenario}", f"episodes_per_iteration={episodes}", f"total_episodes={episodes}"])
    torch.set_num_threads(1)  # as torch_threads=auto
    with ExitStack() as pools:
        settings = [
            _setting(config, backend, int(count), checkpoint_name, pools)
            for backend in _backends(config.scenario, backends)
            for count in workers.split(",")
        ]
        most = max(setting.workers for setting in settings)
        spinners = pools.enter_context(ProcessPoolExecutor(most, multiprocessing.get_context("spawn")))
        alone, together = 0.0, 0.0
        for turn in range(rounds + 1):
            for setting in settings:
                setting.iterate(training_seeds(0, turn * episodes, episodes), measured=turn > 0)
            if turn > 0:
                alone += spinners.submit(_spin, 0).result()
                together += max(spinners.map(_spin, range(most)))
            else:
                list(spinners.map(_spin, range(most)))  # the processes start
        memory = psutil.Process().memory_info().rss / 1e9
    results = [setting.result() for setting in settings]
    return {
        "rounds": rounds,
        "episodes": episodes,
        "scenario": scenario,
        "settings": results,
        "machine": most * alone / together,
        "trainer_gb": memory,
    }


def _spin(_: int) -> float:
    """Seconds of a loop that needs nothing but a core: what the machine gives to processes side by side."""
    started = time.perf_counter()
    for _ in range(20_000_000):
        pass
    return time.perf_counter() - started


def _backends(scenario: ScenarioConfig, wanted: str) -> list[str]:
    if scenario.world != "driving":
        if wanted != "auto":
            raise UserError(f"backends={wanted}: only cars have several; leave it out")
        return [scenario.backend]
    found = ["fast", "stock"] if wanted == "auto" else wanted.split(",")
    if not set(found) <= {"fast", "stock"}:
        raise UserError(f"backends={wanted}: must be fast, stock or both")
    return found


def _setting(config: Config, backend: str, workers: int, checkpoint_name: str, pools: ExitStack) -> Setting:
    loaded = checkpoint.load(checkpoint.find_checkpoint(checkpoint_name)) if checkpoint_name else None
    observation = loaded.config.scenario.observation if loaded else config.scenario.observation
    config = replace(config, scenario=replace(config.scenario, backend=backend, observation=observation))
    pool = pools.enter_context(make_pool(config.runner, workers))
    learner = Learner(config, pool.ask(world_spec, (config.scenario, tuple(config.constraints))), "cpu")
    if loaded:
        learner.load_networks(loaded.learner)
    return Setting(backend, workers, config, pool, learner)


def table(result: dict[str, Any]) -> str:
    """Settings as rows, and the ratios that matter."""
    head = f"{'backend':8}{'workers':>8}{'env steps/s':>13}{'agent steps/s':>15}{'sampling/s':>12}"
    lines = [head + "".join(f"{phase:>10}" for phase in PHASES) + f"{'infer share':>13}"]
    for row in result["settings"]:
        total = row["seconds"]["sample"] + row["seconds"]["update"]
        shares = "".join(f"{100 * row['seconds'][phase] / total:>8.0f} %" for phase in PHASES)
        lines.append(
            f"{row['backend']:8}{row['workers']:>8}{row['env_steps_per_second']:>13.0f}"
            f"{row['agent_steps_per_second']:>15.0f}{row['sample_env_steps_per_second']:>12.0f}{shares}"
            f"{100 * row['infer_share_of_worker']:>11.1f} %"
        )
    lines += [f"{name}: {value:.2f}x" for name, value in ratios(result).items()]
    return "\n".join([*lines, f"trainer: {result['trainer_gb']:.2f} GB"])


def ratios(result: dict[str, Any]) -> dict[str, float]:
    """fast over stock end to end; sampling with the most over the fewest workers, and what the machine allows."""
    rows = {(row["backend"], row["workers"]): row for row in result["settings"]}
    counts = sorted({workers for _, workers in rows})
    found = {}
    for workers in counts:
        if ("fast", workers) in rows and ("stock", workers) in rows:
            pair = [rows[backend, workers]["env_steps_per_second"] for backend in ("fast", "stock")]
            found[f"fast over stock, {workers} workers"] = pair[0] / pair[1]
    for backend in ("fast", "stock"):
        few, many = rows.get((backend, counts[0])), rows.get((backend, counts[-1]))
        if few and many and few is not many:
            key = f"sampling on {backend}, {counts[-1]} workers over {counts[0]}"
            found[key] = many["sample_env_steps_per_second"] / few["sample_env_steps_per_second"]
    found[f"plain loops on this machine, {counts[-1]} at once over one"] = result["machine"]
    return found
