"""The pool is a map: same episodes, in order, whatever becomes of the workers, which are really killed and stopped."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from maip3o.config.schema import RunnerConfig
from maip3o.data.episode import Episode
from maip3o.envs.toy import ToyEnv
from maip3o.errors import RunError, UserError
from maip3o.runners.pool import Pool, _groups, make_pool
from maip3o.runners.rollout import rollout
from maip3o.runners.seeds import FIRST_TRAINING_SEED, LAST_SEED, evaluation_seeds, training_seed, training_seeds
from maip3o.runners.worker import NoJob, run_episodes, set_job
from tests.toy_run import InlineWorker, assert_same_episode, toy_actor, toy_job

SEEDS = [7, 3, 5, 11, 2]
LONG = 8_000  # steps: a second or two


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with make_pool(RunnerConfig(episode_timeout=60), num_workers=2) as pool:
        yield pool


def here(job_horizon: int, seeds: list[int]) -> list[Episode]:
    """The same episodes in this process."""
    job = toy_job(job_horizon, hazard=0.0 if job_horizon == LONG else 0.3)
    env = ToyEnv(3, job_horizon, hazard=job.scenario.settings["hazard"], end_rule="half")
    return [rollout(env, toy_actor(job), seed, deterministic=False) for seed in seeds]


def workers_of(pool: Pool) -> list[psutil.Process]:
    """Worker processes of this test process: loky's other children do no work."""
    return [child for child in psutil.Process().children() if "LokyProcess" in " ".join(child.cmdline())]


def test_episodes_come_back_in_the_order_of_the_seeds(pool: Pool) -> None:
    episodes = pool.map(toy_job(hazard=0.3), SEEDS)
    assert [episode.seed for episode in episodes] == SEEDS
    for one, other in zip(episodes, here(20, SEEDS), strict=True):
        assert_same_episode(one, other)


def test_weights_and_end_rule_are_those_of_the_present_map(pool: Pool) -> None:
    job = toy_job(hazard=0.9)
    half = pool.map(job, SEEDS)
    job.scenario.end_rule = "all"
    everybody = pool.map(job, SEEDS)
    assert sum(e.length for e in everybody) > sum(e.length for e in half)
    for name in job.weights:
        job.weights[name][...] = 0
    assert not pool.map(job, SEEDS[:1])[0].memory.any()


def test_killed_worker_is_replaced_and_its_episode_repeated(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    pool.map(toy_job(hazard=0.0), SEEDS[:2])
    victim = workers_of(pool)[0]
    threading.Timer(0.4, lambda: victim.kill()).start()
    with caplog.at_level(logging.WARNING, logger="maip3o"):
        episodes = pool.map(toy_job(LONG, hazard=0.0), SEEDS[:2])
    assert not victim.is_running()
    assert "replaced, episode of seed" in caplog.text
    for one, other in zip(episodes, here(LONG, SEEDS[:2]), strict=True):
        assert_same_episode(one, other)


def test_hung_worker_is_killed_after_the_timeout(caplog: pytest.LogCaptureFixture) -> None:
    with make_pool(RunnerConfig(episode_timeout=60), num_workers=1) as pool:
        expected = pool.map(toy_job(hazard=0.3), SEEDS)
        victim = max(workers_of(pool), key=lambda process: process.create_time())
        os.kill(victim.pid, signal.SIGSTOP)
        started = time.monotonic()
        with caplog.at_level(logging.WARNING, logger="maip3o"):
            pool._runner.episode_timeout = 3.0
            episodes = _with_longer_second_timeout(pool)
        assert time.monotonic() - started >= 3.0
        assert "no answer within 3 s" in caplog.text
        assert not victim.is_running()
        for one, other in zip(episodes, expected, strict=True):
            assert_same_episode(one, other)


def _with_longer_second_timeout(pool: Pool) -> list[Episode]:
    """The new worker has to import numba, which can take longer than the stopped one is granted."""
    threading.Timer(3.5, lambda: setattr(pool._runner, "episode_timeout", 60.0)).start()
    return pool.map(toy_job(hazard=0.3), SEEDS)


def test_worker_that_forgot_its_job_is_told_again() -> None:
    """loky recycles a process that has grown too large: the new one is young, but no episode has failed."""

    class Forgetful(InlineWorker):
        told = 0

        def call(self, function: Callable[..., Any], argument: Any, timeout: float) -> Any:
            self.told += function is set_job
            if function is run_episodes and argument == SEEDS[2:] and self.told == 1:
                raise NoJob
            return super().call(function, argument, timeout)

    worker = Forgetful()
    pool = Pool(lambda: worker, 1, RunnerConfig(max_attempts=1))
    assert [episode.seed for episode in pool.map(toy_job(), SEEDS)] == SEEDS
    assert worker.told == 2


def test_episode_that_always_fails_stops_the_run_with_seed_and_traceback() -> None:
    with make_pool(RunnerConfig(max_attempts=2), num_workers=1) as pool:
        with pytest.raises(RunError) as failed:
            pool.map(toy_job(hazards=0.3), [42])  # ToyEnv knows no `hazards`
        assert "seed 42 failed 2 times" in str(failed.value)
        assert "Traceback" in str(failed.value)
        assert "hazards" in str(failed.value)


def test_one_bad_episode_costs_the_others_of_its_group_nothing(caplog: pytest.LogCaptureFixture) -> None:
    groups = []

    class Poisoned(InlineWorker):
        def call(self, function: Callable[..., Any], argument: Any, timeout: float) -> Any:
            if function is run_episodes:
                groups.append((argument, timeout))
                if 5 in argument:
                    raise ValueError("this one")
            return super().call(function, argument, timeout)

    pool = Pool(Poisoned, 1, RunnerConfig(max_attempts=3, episode_timeout=10.0))
    with pytest.raises(RunError, match="the episode of seed 5 failed 3 times"):
        pool.map(toy_job(), SEEDS)
    assert groups[:2] == [([7, 3], 20.0), ([5, 11, 2], 30.0)], "each episode has its own time"
    assert [group for group, _ in groups if 5 in group] == [[5, 11, 2], [5], [5]]
    groups.clear()
    assert len(pool.map(toy_job(), [1, 2, 3])) == 3
    assert [group for group, _ in groups] == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("episodes", "workers", "side_by_side", "sizes"),
    [
        (5, 2, 16, [2, 3]),
        (5, 2, 1, [1] * 5),
        (4, 3, 4, [1, 1, 2]),
        (40, 2, 16, [10] * 4),
        (1, 4, 16, [1]),
        (0, 2, 16, []),
        (32, 2, 16, [16, 16]),
    ],
)
def test_workers_share_the_episodes_evenly(episodes: int, workers: int, side_by_side: int, sizes: list[int]) -> None:
    groups = _groups(range(episodes), workers, side_by_side)
    assert [len(group) for group in groups] == sizes
    assert [seed for group in groups for seed in group] == list(range(episodes))


def test_error_in_the_first_question_is_one_line() -> None:
    pool = Pool(InlineWorker, 1, RunnerConfig())
    with pytest.raises(RunError, match=r"^the first worker could not start: ZeroDivisionError: division by zero$"):
        pool.ask(eval, "1 / 0")
    with pytest.raises(UserError, match="mistake"):
        pool.ask(_mistake, None)


def _mistake(argument: object) -> None:
    raise UserError("a mistake of the user's")


def test_seeds_of_training_and_evaluation_never_meet() -> None:
    training = training_seeds(run_seed=0, first_index=0, count=2000)
    assert len(set(training)) == 2000
    assert all(FIRST_TRAINING_SEED <= seed <= LAST_SEED for seed in training)
    assert evaluation_seeds(3) == [0, 1, 2]
    assert max(evaluation_seeds(1000)) < FIRST_TRAINING_SEED
    assert training[5] == training_seed(0, 5) != training_seed(1, 5)
