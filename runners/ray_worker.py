"""A worker process kept by Ray: on this machine, or anywhere on the cluster at runner.address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from maip3o.errors import RunError
from maip3o.runners.worker import SINGLE_THREAD, WorkerLost


class _Process:
    def call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        return function(argument)


def connect(address: str | None, num_workers: int) -> Callable[[], RayWorker]:
    """Join the cluster at `address` (None: start a Ray of our own) and return what makes workers there."""
    if not ray.is_initialized():
        own: dict[str, Any] = {"num_cpus": num_workers, "include_dashboard": False} if address is None else {}
        try:
            ray.init(address=address, log_to_driver=False, **own)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise RunError(f"runner.address={address}: cannot join Ray: {' '.join(str(error).split())}") from error
    return RayWorker


class RayWorker:
    """A Ray actor."""

    def __init__(self) -> None:
        # Not restarted by Ray, but replaced by the pool, which knows which episode it was at.
        remote: Any = ray.remote(num_cpus=1, max_restarts=0, runtime_env={"env_vars": SINGLE_THREAD})(_Process)
        self._process: Any = remote.remote()

    def call(self, function: Callable[..., Any], argument: Any, timeout: float) -> Any:
        try:
            return ray.get(self._process.call.remote(function, argument), timeout=timeout)
        except GetTimeoutError:
            raise WorkerLost(f"no answer within {timeout:g} s") from None
        except RayActorError as error:
            raise WorkerLost(f"process ended: {' '.join(str(error).split())}") from None
        except RayTaskError as error:
            raise error.as_instanceof_cause() from None

    def kill(self) -> None:
        ray.kill(self._process)
