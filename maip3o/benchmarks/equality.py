"""Is `backend=fast` MetaDrive, bit for bit? Scripted drivers, every number compared.

The reference of each episode is stock MetaDrive in a fresh process; the fast backend drives all of a group's episodes
one after the other in one process, so the comparison also shows that they do not depend on what ran before.

python -m maip3o.benchmark equality episodes=20
"""

from __future__ import annotations

from functools import partial
from typing import Any

from maip3o.benchmarks.drivers import DRIVERS
from maip3o.benchmarks.traces import Run, Trace, first_difference, in_child, make_backend, trace
from maip3o.config import ScenarioConfig
from maip3o.envs.scenarios import load_scenario

# scenario, number of agents, horizon
GROUPS = (
    ("intersection", 10, 250),
    ("parking_lot", 10, 150),
    ("intersection_respawn", 30, 120),
    ("parking_lot_respawn", 10, 120),
    ("intersection", 2, 250),
    ("parking_lot", 2, 250),
    ("intersection", 30, 100),
    ("intersection", 5, 200),
    ("intersection", 1, 250),
    ("parking_lot", 5, 120),
    ("parking_lot", 1, 250),
)
EVENTS = ("arrived", "crash_vehicle", "crash_sidewalk", "out_of_road", "max_step")
BEAMS_FROM = 19  # column of the observation


def run(episodes: int = 10, groups: int = len(GROUPS), first_seed: int = 0) -> dict[str, Any]:
    """`episodes` episodes of each of the first `groups` groups."""
    results = [compare(*group, episodes, first_seed) for group in GROUPS[:groups]]
    return {
        "equal": all(not result["differences"] for result in results),
        "episodes": sum(result["episodes"] for result in results),
        "steps": sum(result["steps"] for result in results),
        **{event: sum(result[event] for result in results) for event in EVENTS},
        "groups": results,
    }


def compare(name: str, num_agents: int, horizon: int, episodes: int, first_seed: int) -> dict[str, Any]:
    runs = [Run(list(DRIVERS)[k % len(DRIVERS)], first_seed + k) for k in range(episodes)]

    def scenario(backend: str) -> ScenarioConfig:
        return load_scenario(name, num_agents=num_agents, horizon=horizon, backend=backend)

    fast = in_child(partial(_traces, scenario("fast"), runs))
    result: dict[str, Any] = {"scenario": name, "num_agents": num_agents, "horizon": horizon, "episodes": episodes}
    result |= {"steps": 0, "differences": [], **dict.fromkeys(EVENTS, 0)}
    for one, found in zip(runs, fast, strict=True):
        [expected] = in_child(partial(_traces, scenario("stock"), [one]))
        difference = first_difference(expected, found)
        if difference is not None:
            result["differences"].append({"driver": one.driver, "seed": one.seed, **difference})
        result["steps"] += len(expected) - 1
        for event in EVENTS:
            result[event] += int(sum(step[event].sum() for step in expected))
    return result


def _traces(scenario: ScenarioConfig, runs: list[Run]) -> list[Trace]:
    backend = make_backend(scenario)
    return [trace(backend, one) for one in runs]


def table(result: dict[str, Any]) -> str:
    lines = [f"{'scenario':<14}{'cars':>5}{'episodes':>9}{'steps':>8}" + "".join(f"{event:>15}" for event in EVENTS)]
    for group in result["groups"]:
        lines.append(
            f"{group['scenario']:<14}{group['num_agents']:>5}{group['episodes']:>9}{group['steps']:>8}"
            + "".join(f"{group[event]:>15}" for event in EVENTS)
            + ("" if not group["differences"] else f"  DIFFERS {group['differences'][0]}")
        )
    equal = "equal bit for bit" if result["equal"] else "NOT EQUAL"
    return "\n".join([*lines, f"{result['episodes']} episodes, {result['steps']} steps: {equal}"])
