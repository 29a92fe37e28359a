"""The robots beside the packages' own environments: the same actions, in turns, in the processor's time.

python -m maip3o.benchmark robots steps=500 rounds=3
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from maip3o.benchmarks.traces import in_child
from maip3o.config.schema import ScenarioConfig
from maip3o.envs import make_array_env
from maip3o.envs.contract import FloatArray
from maip3o.envs.registry import find_world
from maip3o.envs.robots import bullet, navigation, velocity
from maip3o.envs.robots.safety_gymnasium import import_builder

Play = Callable[[int, FloatArray], tuple[float, float]]
"""(seed, actions [T, U]) -> seconds of the reset, and of all the steps; a robot that falls is put back."""


def run(steps: int = 500, rounds: int = 3) -> dict[str, Any]:
    """Medians over the rounds, which are episodes of so many steps."""
    worlds = {"velocity": velocity.ROBOTS, "navigation": navigation.IDS, "bullet": bullet.IDS}
    tasks = [(world, name) for world, names in worlds.items() for name in names]
    return {name: in_child(partial(_compare, world, name, steps, rounds)) for world, name in tasks}


def _compare(world: str, name: str, steps: int, rounds: int) -> dict[str, float]:
    packages = {"velocity": _velocity_package, "navigation": _navigation_package, "bullet": _bullet_package}
    ours, size = _ours(world, name, steps)
    players: dict[str, Play] = {"package": packages[world](name), "ours": ours}
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (steps, size))
    for play in players.values():
        play(0, actions[:3])  # compile, and fill caches
    times: dict[str, list[tuple[float, float]]] = {who: [] for who in players}
    for seed in range(1, rounds + 1):
        for who, play in players.items():
            times[who].append(play(seed, actions))
    result = {}
    for who, measured in times.items():
        result[f"{who}_reset_ms"] = 1000 * median(reset for reset, _ in measured)
        result[f"{who}_steps_per_second"] = steps / median(stepping for _, stepping in measured)
    return result


def _timed(reset: Callable[[int], Any], step: Callable[[FloatArray], bool]) -> Play:
    """step: whether the episode has ended."""

    def play(seed: int, actions: FloatArray) -> tuple[float, float]:
        begun = process_time()
        reset(seed)
        started = process_time()
        for action in actions:
            if step(action):
                reset(seed)
        return started - begun, process_time() - started

    return play


def _ours(world: str, name: str, steps: int) -> tuple[Play, int]:
    """And the size of an action."""
    scenario = ScenarioConfig(name=name, world=world, id=name, num_agents=1, horizon=steps + 1, end_rule="all")
    env = make_array_env(scenario, list(find_world(scenario).costs(scenario))[:1])
    return _timed(env.reset, lambda action: env.step(action[None]).over), env.spec.action_size


def _velocity_package(name: str) -> Play:
    """Gymnasium's robot in its usual wrappers. Safety Gymnasium's needs MuJoCo 2."""
    import gymnasium

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = gymnasium.make(f"{name}-v4")
    return _timed(lambda seed: env.reset(seed=seed), lambda action: bool(env.step(action)[2]))


def _navigation_package(name: str) -> Play:
    robot = "Car" if name.startswith("Car") else "Point"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = import_builder()(task_id=f"Safety{name}-v0", config={"agent_name": robot})
    return _timed(lambda seed: env.reset(seed=seed), lambda action: _no_end(env.step(action)))


def _bullet_package(name: str) -> Play:
    """As it is used: made once, and put back at each reset."""
    import gymnasium

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bullet_safety_gym  # noqa: F401

        env = gymnasium.make(f"Safety{name}-v0").unwrapped
    return _timed(lambda seed: env.reset(seed=seed), lambda action: _no_end(env.step(action)))


def _no_end(seen: Any) -> bool:
    """These go on until the time is out, and are measured without their time limits."""
    return False


def table(result: dict[str, dict[str, float]]) -> str:
    lines = [f"{'':<14}{'steps/s: package':>18}{'ours':>9}{'ratio':>8}{'reset ms: package':>20}{'ours':>8}"]
    for name, row in result.items():
        package, ours = row["package_steps_per_second"], row["ours_steps_per_second"]
        resets = f"{row['package_reset_ms']:>20.1f}{row['ours_reset_ms']:>8.1f}"
        lines.append(f"{name:<14}{package:>18,.0f}{ours:>9,.0f}{ours / package:>7.1f}x{resets}")
    return "\n".join(lines)
