"""How fast does one core simulate? MetaDrive as it is shipped, our stock backend and the fast one, by turns.

"analytic" is the fast backend with lidar=analytic. Each simulator lives in a process of its own; they drive the same
episodes one after the other. Only reset() and step() are timed, in CPU seconds of that process, so that other work on
the machine disturbs little. Ratios are against MetaDrive as shipped, per episode; with respawn against our stock
backend, for MetaDrive as shipped draws its places at random there.

python -m maip3o.benchmark simulation scenario=parking_lot episodes=20
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from maip3o.benchmarks.drivers import DRIVERS
from maip3o.benchmarks.traces import make_backend
from maip3o.config.schema import ScenarioConfig
from maip3o.envs.driving.backend import Backend
from maip3o.envs.driving.fast.settings import check_scenario
from maip3o.envs.scenarios import load_scenario
from maip3o.errors import UserError

Timings = tuple[float, float, int]  # CPU seconds of the reset and of all steps, number of steps


def run(
    scenario: str = "intersection",
    num_agents: int = 10,
    episodes: int = 10,
    max_steps: int = 200,
    driver: str = "route",
) -> dict[str, Any]:
    """Drives `episodes` episodes of at most `max_steps` steps on each simulator, after one to warm up."""
    if driver not in DRIVERS:
        raise UserError(f"driver={driver}: must be one of {', '.join(DRIVERS)}")
    simulators: dict[str, tuple[Callable[[ScenarioConfig], Any], dict[str, str]]] = {
        "metadrive": (_Shipped, {}),
        "stock": (make_backend, {"backend": "stock"}),
        "fast": (make_backend, {"backend": "fast"}),
        "analytic": (make_backend, {"backend": "fast", "lidar": "analytic"}),
    }
    check_scenario(load_scenario(scenario))
    if load_scenario(scenario).respawn:
        del simulators["metadrive"]
    baseline = next(iter(simulators))
    workers = {
        name: _Worker(make, load_scenario(scenario, num_agents=num_agents, **settings), driver, max_steps)
        for name, (make, settings) in simulators.items()
    }
    timings: dict[str, list[Timings]] = {name: [] for name in workers}
    for seed in range(episodes + 1):
        for name, worker in workers.items():
            timing = worker.drive(seed)
            if seed > 0:
                timings[name].append(timing)
    for worker in workers.values():
        worker.stop()
    quantities = {name: _quantities(rows) for name, rows in timings.items()}
    return {
        "scenario": scenario,
        "num_agents": num_agents,
        "episodes": episodes,
        "driver": driver,
        "baseline": baseline,
        "simulators": {
            name: {key: _summary(value) for key, value in values.items()} for name, values in quantities.items()
        },
        "speedup": {
            name: {key: _summary(quantities[baseline][key] / value) for key, value in values.items()}
            for name, values in quantities.items()
            if name != baseline
        },
    }


def _quantities(rows: list[Timings]) -> dict[str, Any]:
    reset, steps, count = np.array(rows).T
    return {
        "reset_ms": 1e3 * reset,
        "step_ms": 1e3 * steps / count,
        "step_with_resets_ms": 1e3 * (reset + steps) / count,
    }


def _summary(values: Any) -> dict[str, float]:
    return {"median": float(np.median(values)), "min": float(np.min(values)), "max": float(np.max(values))}


class _Worker:
    """A simulator in a process of its own."""

    def __init__(self, make: Callable[[ScenarioConfig], Any], config: ScenarioConfig, driver: str, steps: int) -> None:
        context = multiprocessing.get_context("fork")
        self._connection, child = context.Pipe()
        self._process = context.Process(target=_work, args=(make, config, driver, steps, child), daemon=True)
        self._process.start()

    def drive(self, seed: int) -> Timings:
        self._connection.send(seed)
        result: Timings = self._connection.recv()
        return result

    def stop(self) -> None:
        self._connection.send(None)
        self._process.join()


def _work(make: Callable[[ScenarioConfig], Any], config: ScenarioConfig, driver: str, steps: int, parent: Any) -> None:
    simulator = make(config)
    while (seed := parent.recv()) is not None:
        parent.send(_drive(simulator, seed, driver, steps))


def _drive(simulator: Backend, seed: int, driver: str, max_steps: int) -> Timings:
    rng = np.random.default_rng(seed)
    started = time.process_time()
    raw = simulator.reset(seed)
    reset_seconds = time.process_time() - started
    observation, alive = raw.fresh_observation.copy(), raw.fresh.copy()
    seconds, count = 0.0, 0
    while alive.any() and count < max_steps:
        action = DRIVERS[driver](observation, rng)
        started = time.process_time()
        raw = simulator.step(action)
        seconds += time.process_time() - started
        count += 1
        alive = (raw.acted & ~raw.ended) | raw.fresh
        observation = np.where(raw.fresh[:, None], raw.fresh_observation, raw.observation)
    return reset_seconds, seconds, count


class _Raw:
    """The few arrays of RawStep that a scripted driver needs."""

    def __init__(self, num_agents: int, size: int) -> None:
        self.observation, self.fresh_observation = np.zeros((2, num_agents, size), dtype=np.float32)
        self.acted, self.ended, self.fresh = np.zeros((3, num_agents), dtype=np.bool_)


class _Shipped:
    """MetaDrive's own environment class with its dictionaries, its rebuilt map and its recycled cars."""

    def __init__(self, scenario: ScenarioConfig) -> None:
        from maip3o.envs.driving.corrected import ENVIRONMENTS, OfflineEngine

        shipped = next(base for base in ENVIRONMENTS[scenario.map].__mro__ if base.__module__.startswith("metadrive."))

        def lazy_init(env: Any) -> None:
            if env.engine is None:
                OfflineEngine(env.config)  # the one change: no download of assets
                env.setup_engine()

        config = {"num_agents": scenario.num_agents, "horizon": scenario.horizon, "allow_respawn": scenario.respawn}
        config |= {"force_seed_spawn_manager": True, "num_scenarios": 10_000, "log_level": logging.ERROR}
        self._env = type("Shipped", (shipped,), {"lazy_init": lazy_init})(config)
        self._num_agents = scenario.num_agents
        self._size = next(iter(self._env.observation_space.spaces.values())).shape[0]

    def reset(self, seed: int) -> _Raw:
        observations, _ = self._env.reset(seed=seed)
        raw = _Raw(self._num_agents, self._size)
        raw.fresh[:] = True
        for agent, observation in observations.items():
            raw.fresh_observation[int(agent[5:])] = observation
        return raw

    def step(self, action: Any) -> _Raw:
        actions = {agent: action[int(agent[5:])] for agent in self._env.agents}
        observations, _, terminated, truncated, _ = self._env.step(actions)
        raw = _Raw(self._num_agents, self._size)
        for agent in actions:
            slot = int(agent[5:])
            raw.acted[slot] = True
            raw.observation[slot] = observations[agent]
            raw.ended[slot] = terminated[agent] or truncated[agent]
        return raw


def table(result: dict[str, Any]) -> str:
    keys = ("reset_ms", "step_ms", "step_with_resets_ms")
    lines = [
        f"{result['scenario']}, {result['num_agents']} cars, {result['episodes']} episodes, driver {result['driver']}: "
        "CPU milliseconds, median (min..max)",
        f"{'':<12}" + "".join(f"{key:>26}" for key in keys),
    ]
    for name, values in result["simulators"].items():
        lines.append(f"{name:<12}" + "".join(f"{_show(values[key], '.3f'):>26}" for key in keys))
    lines.append(f"times faster than {result['baseline']}")
    for name, values in result["speedup"].items():
        lines.append(f"{name:<12}" + "".join(f"{_show(values[key], '.1f'):>26}" for key in keys))
    return "\n".join(lines)


def _show(summary: dict[str, float], form: str) -> str:
    return f"{summary['median']:{form}} ({summary['min']:{form}}..{summary['max']:{form}})"
