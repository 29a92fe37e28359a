"""A worker process on this machine, kept by loky (fork + exec, notices a killed process, can kill a hung one)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor, ShutdownExecutorError

from maip3o.runners import worker


class LocalWorker:
    """An executor with a single process, so that a death is the death of a known episode and of nothing else."""

    def __init__(self) -> None:
        self._executor = ProcessPoolExecutor(max_workers=1, initializer=worker.start, env=worker.SINGLE_THREAD)

    def call(self, function: Callable[..., Any], argument: Any, timeout: float) -> Any:
        try:
            return self._executor.submit(function, argument).result(timeout)
        except FutureTimeout:
            raise worker.WorkerLost(f"no answer within {timeout:g} s") from None
        except (BrokenProcessPool, ShutdownExecutorError) as error:
            raise worker.WorkerLost(f"process ended: {' '.join(str(error).split())}") from None

    def kill(self) -> None:
        self._executor.shutdown(wait=True, kill_workers=True)
