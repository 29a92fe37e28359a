"""Centralised training: sample episodes, update, log, evaluate, save; again until total_episodes."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import torch

from maip3o.algo.learner import Learner, NonFiniteError
from maip3o.config.schema import Config
from maip3o.data.episode import Episode
from maip3o.errors import RunError, UserError
from maip3o.evaluation.statistics import summarise
from maip3o.runners import checkpoint
from maip3o.runners.checkpoint import Checkpoint
from maip3o.runners.evaluation import evaluate_policy
from maip3o.runners.log import RunLog
from maip3o.runners.pool import Pool, make_pool
from maip3o.runners.seeds import evaluation_seeds, training_seeds
from maip3o.runners.worker import Job, space_sizes

log = logging.getLogger(__name__)

NOTHING: dict[str, Any] = {
    "iteration": 0,
    "episodes": 0,
    "env_steps": 0,  # steps of the world
    "agent_steps": 0,  # actions of living cars
    "seconds": 0.0,  # of sampling, updating and evaluating, over all interruptions
    "result": float("nan"),  # the figure for sweepers
    "metrics_bytes": 0,  # length of metrics.jsonl: a resumed run drops what follows
}
"""The counters of a run that has not begun."""


def train(config: Config, directory: Path, start: Checkpoint | None) -> float:
    """Train in `directory` from `start` (None: from nothing) to config.total_episodes; the figure to optimise.

    The state on disk is that of the last whole iteration, so an end at any moment costs at most one iteration.
    """
    torch.set_num_threads(int(config.torch_threads))
    if config.device != "cpu":  # the operators that the update uses are deterministic on a CPU anyway
        torch.use_deterministic_algorithms(True, warn_only=True)
    last = directory / "checkpoints" / "last.pt"
    counters = dict(start.counters) if start is not None else NOTHING
    with RunLog(directory, config, counters) as run_log, make_pool(config.runner, int(config.num_workers)) as pool:
        learner = _learner(config, pool, start)
        if start is None:
            checkpoint.save(last, Checkpoint(config, learner.state_dict(), counters))
        try:
            while counters["episodes"] < config.total_episodes:
                counters = _iterate(config, pool, learner, counters, run_log)
                keep = last.with_name(f"episode_{counters['episodes']}.pt")
                due = _due(counters["episodes"], config.checkpoint_every_episodes, config)
                checkpoint.save(last, Checkpoint(config, learner.state_dict(), counters), keep if due else None)
                run_log.saved(counters)
        except KeyboardInterrupt:  # it may have fallen between the saving of a state and the note of it
            run_log.saved(checkpoint.load(last).counters)
            raise
    return float(counters["result"])


def _learner(config: Config, pool: Pool, start: Checkpoint | None) -> Learner:
    observation_size, action_size = pool.ask(space_sizes, (config.scenario, tuple(config.constraints)))
    learner = Learner(config, observation_size, action_size, torch.device(config.device))
    if start is not None:
        if "actor_optimiser" not in start.learner:
            raise UserError(
                "checkpoints/last.pt holds networks but no optimisers (a shipped policy?): begin with init="
            )
        learner.load_state_dict(start.learner)
    elif config.init is not None:
        try:
            learner.load_networks(checkpoint.load(checkpoint.find_checkpoint(config.init)).learner)
        except RuntimeError:
            raise UserError(
                f"init={config.init}: its networks do not read the {observation_size} numbers of "
                f"scenario {config.scenario.name}"
            ) from None
    return learner


def _iterate(config: Config, pool: Pool, learner: Learner, before: dict[str, Any], run_log: RunLog) -> dict[str, Any]:
    """One iteration; returns the counters after it."""
    started = time.perf_counter()
    seeds = training_seeds(config.seed, before["episodes"], config.episodes_per_iteration)
    progress = before["episodes"] / config.total_episodes
    job = _job(config, learner, progress)
    episodes = pool.map(job, seeds)
    sampled = time.perf_counter()
    try:
        learnt = learner.update(episodes, progress)
    except NonFiniteError as error:
        error.iteration = before["iteration"] + 1  # as metrics.jsonl counts them
        where = run_log.directory / "not_finite.pt"
        kept = f", and {where} holds what went in" if checkpoint.save_dump(where, error.dump) else ""
        raise RunError(f"{error}; last.pt is from before it{kept}") from error
    except RuntimeError as error:  # of torch, or episodes that are not those of this policy
        reason = " ".join(str(error).split())
        raise RunError(f"iteration {before['iteration'] + 1}: {reason}; last.pt is from before it") from error
    updated = time.perf_counter()

    counters = {
        **before,
        "iteration": before["iteration"] + 1,
        "episodes": before["episodes"] + len(episodes),
        "env_steps": before["env_steps"] + sum(episode.length for episode in episodes),
        "agent_steps": before["agent_steps"] + sum(int(episode.active.sum()) for episode in episodes),
        "seconds": before["seconds"] + updated - started,
    }
    rollouts = {f"rollout/{name}": value for name, value in summarise(episodes).items()}
    if config.start_spread is not None:
        rollouts["rollout/start_spread"] = job.start_spread
    numbers = {**rollouts, **learnt, **_speeds(episodes, sampled - started, updated - sampled)}
    seconds_left = counters["seconds"] / counters["episodes"] * (config.total_episodes - counters["episodes"])
    run_log.iteration(counters, numbers, seconds_left)
    counters["result"] = rollouts["rollout/return"]
    if _due(counters["episodes"], config.evaluation.every_episodes, config):
        numbers = _evaluate(config, pool, learner)
        counters["result"] = numbers["evaluation/full/return"]
        _warn_of_standing_still(numbers)
        counters["seconds"] += time.perf_counter() - updated
        run_log.evaluation(counters, numbers)
    counters["metrics_bytes"] = run_log.metrics_bytes
    return counters


def _warn_of_standing_still(numbers: dict[str, float]) -> None:
    success, time_out = (numbers[f"evaluation/full/{name}"] for name in ("success", "time_out"))
    if success < 0.05 and time_out > 0.4:
        log.warning(
            f"the policy stands still ({100 * time_out:.0f} % out of time, {100 * success:.0f} % arrived): "
            "the penalty may be too strong; use algo.penalty.growth=odds, or a smaller algo.penalty.eta"
        )


def _due(episodes: int, every: int, config: Config) -> bool:
    """Whether this iteration passed a multiple of `every` episodes (0: never), or is the last one."""
    before = episodes - config.episodes_per_iteration
    return every > 0 and (episodes // every > before // every or episodes >= config.total_episodes)


def _job(config: Config, learner: Learner, progress: float) -> Job:
    spread = round((config.start_spread or 0) * max(0.0, 1.0 - 2.0 * progress))  # gone at half of the training
    weights = learner.actor_weights()
    return Job(config.scenario, tuple(config.constraints), config.model, weights, start_spread=spread)


def _evaluate(config: Config, pool: Pool, learner: Learner) -> dict[str, float]:
    """Held-out episodes under both end rules."""
    seeds = evaluation_seeds(config.evaluation.episodes)
    numbers = {}
    for protocol in ("first", "full"):
        weights, deterministic = learner.actor_weights(), config.evaluation.deterministic
        summary = summarise(evaluate_policy(pool, config, weights, seeds, protocol, deterministic))
        numbers.update({f"evaluation/{protocol}/{name}": value for name, value in summary.items()})
    return numbers


def _speeds(episodes: list[Episode], sample_seconds: float, update_seconds: float) -> dict[str, float]:
    """Simulation and inference in seconds of all workers together, sampling and update in seconds of the clock."""
    seconds = sample_seconds + update_seconds
    return {
        "speed/env_steps_per_second": sum(episode.length for episode in episodes) / seconds,
        "speed/agent_steps_per_second": sum(int(episode.active.sum()) for episode in episodes) / seconds,
        "speed/sample_seconds": sample_seconds,
        "speed/simulate_seconds": sum(episode.seconds_simulate for episode in episodes),
        "speed/infer_seconds": sum(episode.seconds_infer for episode in episodes),
        "speed/update_seconds": update_seconds,
    }
