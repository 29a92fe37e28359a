"""Everything that a backend says during episodes of scripted drivers, for comparison bit by bit."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from maip3o.benchmarks.drivers import DRIVERS
from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.backend import Backend, RawStep
from maip3o.envs.driving.fast import FastBackend
from maip3o.envs.driving.stock import StockBackend
from maip3o.envs.driving.views import CarStates

T = TypeVar("T")
Trace = list[dict[str, FloatArray]]  # one dictionary of arrays per step, the reset first


@dataclass(frozen=True)
class Run:
    """One episode to drive."""

    driver: str
    seed: int


def make_backend(scenario: ScenarioConfig) -> Backend:
    return (StockBackend if scenario.backend == "stock" else FastBackend)(scenario)


def trace(backend: Backend, run: Run) -> Trace:
    rng = np.random.default_rng(run.seed)
    raw = backend.reset(run.seed)
    steps = [_copy(raw, backend.car_states())]
    observation, alive = raw.fresh_observation.copy(), raw.fresh.copy()
    while alive.any():
        raw = backend.step(DRIVERS[run.driver](observation, rng))
        steps.append(_copy(raw, backend.car_states()))
        alive = (raw.acted & ~raw.ended) | raw.fresh
        observation = np.where(raw.fresh[:, None], raw.fresh_observation, raw.observation)
    return steps


def _copy(raw: RawStep, cars: CarStates) -> dict[str, FloatArray]:
    arrays = {field.name: getattr(raw, field.name).copy() for field in fields(raw)}
    arrays |= {f"car_{field.name}": getattr(cars, field.name).copy() for field in fields(cars)}
    return arrays


def in_child(function: Callable[[], T]) -> T:
    """The result of `function` from a forked process: MetaDrive's engine can be started in a process only once."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        try:
            sender.send((True, function()))
        except Exception as error:
            sender.send((False, repr(error)))

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        worked, result = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the child process died with code {process.exitcode}") from None
    process.join()
    if not worked:
        raise RuntimeError(result)
    return result


def first_difference(expected: Trace, found: Trace) -> dict[str, Any] | None:
    """Where two traces part, bit for bit; None if they do not."""
    for step, (a, b) in enumerate(zip(expected, found, strict=False)):
        for name, x in a.items():
            y = b[name]
            if x.dtype != y.dtype or x.shape != y.shape or x.tobytes() != y.tobytes():
                place = tuple(int(i) for i in np.argwhere(x != y)[0]) if (x != y).any() else ()
                return {"step": step, "array": name, "index": place, "expected": str(x[place]), "found": str(y[place])}
    if len(expected) != len(found):
        return {"step": min(len(expected), len(found)), "array": "length", "index": (), "expected": "", "found": ""}
    return None
