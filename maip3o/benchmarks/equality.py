"""Is `backend=fast` MetaDrive, bit for bit? Scripted drivers, every number compared.

The reference of each episode is stock MetaDrive in a fresh process; the fast backend drives all of a group's episodes
one after the other in one process, so the comparison also shows that they do not depend on what ran before.

python -m maip3o.benchmark equality episodes=20
python -m maip3o.benchmark equality lidar=analytic
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from maip3o.benchmarks.drivers import DRIVERS
from maip3o.benchmarks.traces import Run, Trace, first_difference, in_child, make_backend, trace
from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import FloatArray
from maip3o.envs.scenarios import load_scenario
from maip3o.errors import UserError

ALL, CALM = tuple(DRIVERS), ("route", "braking", "route")
# scenario, number of agents, horizon, drivers
GROUPS = (
    ("intersection", 10, 250, ALL),
    ("parking_lot", 10, 150, ALL),
    ("intersection_respawn", 30, 100, ALL),
    ("parking_lot_respawn", 10, 100, ALL),
    ("intersection", 2, 300, CALM),
    ("parking_lot", 2, 250, CALM),
    ("intersection", 30, 100, ALL),
    ("intersection", 5, 200, ALL),
    ("intersection", 1, 250, CALM),
    ("parking_lot", 5, 120, ALL),
    ("parking_lot", 1, 250, CALM),
)
EVENTS = ("arrived", "crash_vehicle", "crash_sidewalk", "out_of_road", "max_step")
FIRST_BEAM = 19  # column of the observation


def run(episodes: int = 10, groups: int = len(GROUPS), first_seed: int = 0, lidar: str = "exact") -> dict[str, Any]:
    """`episodes` episodes of each of the first `groups` groups. lidar=analytic: beams are compared as numbers."""
    if lidar not in ("exact", "analytic"):
        raise UserError(f"lidar={lidar}: must be exact or analytic")
    results = [compare(*group, episodes, first_seed, lidar) for group in GROUPS[:groups]]
    return {
        "equal": all(not result["differences"] for result in results),
        "lidar": lidar,
        "episodes": sum(result["episodes"] for result in results),
        "steps": sum(result["steps"] for result in results),
        **{event: sum(result[event] for result in results) for event in EVENTS},
        "groups": results,
    }


def compare(
    name: str,
    num_agents: int,
    horizon: int,
    drivers: Sequence[str],
    episodes: int,
    first_seed: int,
    lidar: str = "exact",
) -> dict[str, Any]:
    runs = [Run(drivers[k % len(drivers)], first_seed + k) for k in range(episodes)]
    settings: dict[str, Any] = {"num_agents": num_agents, "horizon": horizon}
    fast = in_child(partial(_traces, load_scenario(name, backend="fast", lidar=lidar, **settings), runs))
    result: dict[str, Any] = {"scenario": name, **settings, "episodes": episodes}
    result |= {"steps": 0, "differences": [], **dict.fromkeys(EVENTS, 0)}
    beams: list[tuple[FloatArray, FloatArray]] = []
    for one, found in zip(runs, fast, strict=True):
        [expected] = in_child(partial(_traces, load_scenario(name, backend="stock", **settings), [one]))
        if lidar == "analytic":
            beams += [(_take_beams(a), _take_beams(b)) for a, b in zip(expected, found, strict=False)]
        difference = first_difference(expected, found)
        if difference is not None:
            result["differences"].append({"driver": one.driver, "seed": one.seed, **difference})
        result["steps"] += len(expected) - 1
        for event in EVENTS:
            result[event] += int(sum(step[event].sum() for step in expected))
    if beams:
        result["beams"] = _beam_differences(*(np.concatenate(side) for side in zip(*beams, strict=True)))
    return result


def _traces(scenario: ScenarioConfig, runs: list[Run]) -> list[Trace]:
    backend = make_backend(scenario)
    return [trace(backend, one) for one in runs]


def _take_beams(step: dict[str, FloatArray]) -> FloatArray:
    """The beams of a step's observations, which are blanked in it: the rest must be equal bit for bit."""
    taken = []
    for name in ("observation", "fresh_observation"):
        taken.append(step[name][:, FIRST_BEAM:].copy())
        step[name][:, FIRST_BEAM:] = 0
    return np.concatenate(taken).ravel()


def _beam_differences(expected: FloatArray, found: FloatArray) -> dict[str, float]:
    """Of the beams that hit a car; differences are fractions of the lidar's reach."""
    hit = (expected > 0) & (expected < 1)  # a row of zeros is a slot without an observation
    hit_both = hit & (found < 1)
    difference = np.abs(expected[hit_both] - found[hit_both])
    flips = (hit & (found == 1)) | ((expected == 1) & (found < 1))
    return {
        "hits": int(hit.sum()),
        "median": float(np.median(difference)),
        "p99": float(np.percentile(difference, 99)),
        "max": float(difference.max()),
        "flipped_share": float(flips.sum() / hit.sum()),
    }


def table(result: dict[str, Any]) -> str:
    lines = [f"{'scenario':<22}{'cars':>5}{'episodes':>9}{'steps':>8}" + "".join(f"{event:>15}" for event in EVENTS)]
    for group in result["groups"]:
        lines.append(
            f"{group['scenario']:<22}{group['num_agents']:>5}{group['episodes']:>9}{group['steps']:>8}"
            + "".join(f"{group[event]:>15}" for event in EVENTS)
            + ("" if not group["differences"] else f"  DIFFERS {group['differences'][0]}")
        )
        if "beams" in group:
            lines.append("    beams: " + ", ".join(f"{key} {value:.3g}" for key, value in group["beams"].items()))
    what = "all" if result["lidar"] == "exact" else "all but lidar"
    equal = f"{what} equal bit for bit" if result["equal"] else "NOT EQUAL"
    return "\n".join([*lines, f"{result['episodes']} episodes, {result['steps']} steps: {equal}"])
