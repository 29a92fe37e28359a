"""A pool is a map over episode seeds: whole episodes come back in the order of the seeds.

Which worker ran an episode, in what order they ended and how often a worker died cannot be seen in the result.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol

from maip3o.config.schema import RunnerConfig
from maip3o.data.episode import Episode
from maip3o.envs.registry import find_world
from maip3o.errors import RunError, UserError
from maip3o.runners.worker import Job, NoJob, WorkerLost, run_episodes, set_job

log = logging.getLogger(__name__)


class Worker(Protocol):
    """A process somewhere that calls functions one at a time."""

    def call(self, function: Callable[..., Any], argument: Any, timeout: float) -> Any:
        """Raises what the function raised, or WorkerLost."""

    def kill(self) -> None: ...


class Pool:
    """`num_workers` seats; a worker that is lost leaves its seat to a new one."""

    def __init__(self, make_worker: Callable[[], Worker], num_workers: int, runner: RunnerConfig) -> None:
        self._make_worker, self._runner = make_worker, runner
        self._workers: list[Worker | None] = [None] * num_workers
        self._threads = ThreadPoolExecutor(num_workers, thread_name_prefix="seat")

    def map(self, job: Job, seeds: Sequence[int]) -> list[Episode]:
        """The episodes of `seeds`, in that order."""
        batch = _Batch(job, seeds, _groups(seeds, len(self._workers), find_world(job.scenario).side_by_side))
        seats = [self._threads.submit(self._serve, seat, batch) for seat in range(len(self._workers))]
        try:
            for served in seats:
                served.result()
        finally:
            batch.stop()  # one seat has failed, or Ctrl-C: the others take no further episode
        return batch.in_order()

    def ask(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """One call on the first worker."""
        try:
            return self._call(0, function, argument)
        except UserError:
            raise
        except Exception as error:  # the simulator's own, or a lost worker; train.log has the traceback
            kind = "" if isinstance(error, WorkerLost) else f"{type(error).__name__}: "
            raise RunError(f"the first worker could not start: {kind}{' '.join(str(error).split())}") from error

    def _serve(self, seat: int, batch: _Batch) -> None:
        """Work of one seat's thread: take the next episodes until none is left."""
        ready = False
        while group := batch.take():
            try:
                if not ready or self._workers[seat] is None:
                    self._call(seat, set_job, batch.job)
                    ready = True
                batch.put(self._call(seat, run_episodes, group, len(group)))
            except NoJob:  # the executor has recycled its process
                ready = False
                batch.again([group])
            except UserError:
                batch.stop()
                raise
            except Exception as error:
                self._failed(seat, group, error, batch)

    def _call(self, seat: int, function: Callable[..., Any], argument: Any, episodes: int = 1) -> Any:
        worker = self._workers[seat]
        if worker is None:
            worker = self._workers[seat] = self._make_worker()
        return worker.call(function, argument, episodes * self._runner.episode_timeout)

    def _failed(self, seat: int, group: list[int], error: Exception, batch: _Batch) -> None:
        """Replace the worker (an engine is not to be trusted after an error) and have its episodes repeated.

        One by one: if it is an episode that fails, it will be found.
        """
        if batch.stopped:
            return
        worker, self._workers[seat] = self._workers[seat], None
        if worker is not None:
            worker.kill()
        attempts, limit = max(batch.failed(seed) for seed in group), self._runner.max_attempts
        which = ", ".join(map(str, group))
        reason = f"{error}" if isinstance(error, WorkerLost) else "".join(traceback.format_exception(error))
        if attempts >= limit:
            batch.stop()
            raise RunError(f"the episode of seed {which} failed {attempts} times; the last time: {reason}") from error
        log.warning(
            "worker %d replaced, episode of seed %s repeated (%d of %d): %s", seat, which, attempts + 1, limit, reason
        )
        batch.again([[seed] for seed in group])

    def close(self) -> None:
        for seat, worker in enumerate(self._workers):
            if worker is not None:
                worker.kill()
                self._workers[seat] = None
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _groups(seeds: Sequence[int], workers: int, side_by_side: int) -> list[list[int]]:
    """What workers run at a time: equally many groups for each, as equal as can be."""
    count = min(len(seeds), workers * -(-len(seeds) // (workers * side_by_side)))
    return [list(seeds[len(seeds) * i // count : len(seeds) * (i + 1) // count]) for i in range(count)]


class _Batch:
    """The episodes of one map: which are to do, in groups that run side by side, and which are done."""

    def __init__(self, job: Job, seeds: Sequence[int], groups: Sequence[list[int]]) -> None:
        self.job, self._seeds, self._todo = job, list(seeds), list(reversed(groups))
        self._done: dict[int, Episode] = {}
        self._attempts: dict[int, int] = {}
        self._lock = threading.Lock()
        self.stopped = False

    def take(self) -> list[int]:
        """The next group; empty: none is left."""
        with self._lock:
            return self._todo.pop() if self._todo and not self.stopped else []

    def put(self, episodes: Sequence[Episode]) -> None:
        self._done.update({episode.seed: episode for episode in episodes})

    def again(self, groups: Sequence[list[int]]) -> None:
        with self._lock:
            self._todo.extend(groups)

    def failed(self, seed: int) -> int:
        with self._lock:
            self._attempts[seed] = self._attempts.get(seed, 0) + 1
            return self._attempts[seed]

    def stop(self) -> None:
        self.stopped = True

    def in_order(self) -> list[Episode]:
        return [self._done[seed] for seed in self._seeds]


def make_pool(runner: RunnerConfig, num_workers: int) -> Pool:
    """The pool that `runner` names. Processes start with the first map."""
    if runner.name == "ray":
        from maip3o.runners.ray_worker import connect

        return Pool(connect(runner.address, num_workers), num_workers, runner)
    from maip3o.runners.local_worker import LocalWorker

    return Pool(LocalWorker, num_workers, runner)
