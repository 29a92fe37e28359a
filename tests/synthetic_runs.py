"""Run directories as training writes them, made of formulas: for tests of plots, tables and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

LEVEL = {"maip3o": 1.0, "map3o": 0.85, "mappo": 0.65}


def run_config(scenario: str, algo: str, seed: int, alpha: float = 0.1, limit: float = 0.1) -> dict[str, Any]:
    return {
        "scenario": {"name": scenario, "map": scenario, "num_agents": 10, "horizon": 500, "metadrive": {}},
        "constraints": {"termination": {"limit": limit}},
        "algo": {"name": algo, "penalty": {"name": "celu", "alpha": alpha, "eta": 1.0}, "lr": 5e-4},
        "runner": {"name": "local"},
        "logger": {"quiet": False},
        "evaluation": {"every_episodes": 100, "episodes": 10},
        "seed": seed,
        "total_episodes": 1000,
        "num_workers": "auto",
    }


def run_records(config: dict[str, Any], episodes: int) -> list[dict[str, Any]]:
    """Curves that rise and level off; a better algorithm higher, every seed a little different."""
    seed, algo, scenario = config["seed"], config["algo"]["name"], config["scenario"]["name"]
    noise = np.random.default_rng([seed, len(algo), len(scenario)])
    level = LEVEL.get(algo, 0.7) * (1.0 if scenario == "intersection" else 0.6) + noise.normal(0, 0.05)
    limit = config["constraints"]["termination"]["limit"]
    records: list[dict[str, Any]] = []
    env_steps = 0
    for count in range(20, episodes + 1, 20):
        rise = 1.0 - np.exp(-count / 300.0)
        env_steps += int(200 + 3000 * rise)
        success = float(np.clip(0.7 * level * rise + noise.normal(0, 0.03), 0, 1))
        crash = float(np.clip(0.6 - 0.5 * level * rise + noise.normal(0, 0.03), 0, 1 - success))
        rest = 1.0 - success - crash
        shares = {"arrived": success, "crash_vehicle": crash, "crash_object": 0.0, "crash_sidewalk": 0.1 * rest}
        shares |= {"off_road": 0.5 * rest, "time_out": 0.4 * rest, "eliminated": crash + 0.6 * rest}
        counters = {"episodes": count, "env_steps": env_steps, "seconds": count * (2.0 + 0.1 * seed)}
        iteration = {"kind": "iteration", "iteration": count // 20, "agent_steps": env_steps * 7, **counters}
        iteration |= {f"rollout/{key}": value for key, value in shares.items()}
        iteration |= {"rollout/return": 600 * level * rise, "rollout/length": 150 + 100 * rise, "rollout/cut": 0.0}
        iteration |= {
            "constraint/termination/mean": crash + 0.6 * rest,
            "constraint/termination/uncensored": crash + 0.7 * rest,
            "constraint/termination/limit": limit,
            "constraint/termination/gradient_cosine": None,
            "speed/env_steps_per_second": 900.0 + 20 * seed,
            "speed/simulate_seconds": 12.0,
            "speed/infer_seconds": 4.0,
            "speed/update_seconds": 3.0,
        }
        records.append(iteration)
        if count % 100 == 0:
            evaluation: dict[str, Any] = {"kind": "evaluation", **counters}
            for protocol, factor in (("first", 0.5), ("full", 1.1)):
                evaluation |= {f"evaluation/{protocol}/{key}": value for key, value in shares.items()}
                evaluation[f"evaluation/{protocol}/return"] = 600 * level * rise * factor + noise.normal(0, 20)
                evaluation[f"evaluation/{protocol}/length"] = 180.0
                evaluation[f"evaluation/{protocol}/route_completion"] = 0.4 + 0.4 * rise
                evaluation[f"evaluation/{protocol}/speed"] = 6.0
            records.append(evaluation)
    return records


def write_run(
    directory: Path,
    scenario: str = "intersection",
    algo: str = "maip3o",
    seed: int = 0,
    episodes: int = 1000,
    **settings: float,
) -> Path:
    config = run_config(scenario, algo, seed, **settings)
    (directory / ".hydra").mkdir(parents=True)
    (directory / ".hydra" / "config.yaml").write_text(yaml.safe_dump(config))
    choices = {"hydra": {"runtime": {"choices": {"scenario": scenario, "algo": algo}}}}
    (directory / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump(choices))
    lines = [json.dumps(record) for record in run_records(config, episodes)]
    (directory / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    (directory / "status.json").write_text(json.dumps({"state": "finished", "episodes": episodes, "message": ""}))
    (directory / "versions.json").write_text(json.dumps({"commit": "0123456789abcdef", "maip3o": "0.1.0"}))
    return directory


def write_evaluation(
    directory: Path, success: float = 0.6, episodes: int = 1000, horizon: int = 500, actions: str = "sampled"
) -> None:
    """evaluation.json as `python -m maip3o.evaluate` leaves it."""
    config = yaml.safe_load((directory / ".hydra" / "config.yaml").read_text())
    figures = {"return": 512.0, "worst_return": 3.0, "arrived": success, "eliminated": 0.9 - success, "time_out": 0.1}
    figures |= {"crash_vehicle": 0.5 * (0.9 - success), "crash_object": 0.0, "crash_sidewalk": 0.0, "cut": 0.0}
    figures |= {"off_road": 0.5 * (0.9 - success), "route_completion": 0.8, "speed": 7.0, "length": 240.0}
    figures |= {"efficiency": 1.2}
    spread = {name: {"mean": mean, "low": 0.9 * mean, "high": 1.1 * mean} for name, mean in figures.items()}
    constraint = {"limit": 0.1, "unit": "per_agent", "cost": spread["eliminated"], "cvar": 0.7, "verdict": "violated"}
    constraint["episodes_within_limit"] = {"mean": 0.2, "low": 0.1, "high": 0.3}
    card = {"episodes": 200, "figures": spread, "constraints": {"termination": constraint}}
    card["worst_agent"] = {"slot": 4, "eliminated": spread["eliminated"]}
    content = {
        "policy": config["algo"]["name"],
        "trained": {"episodes": episodes, "env_steps": 1, "seconds": 1.0},
        "scenario": config["scenario"]["name"],
        "num_agents": config["scenario"]["num_agents"],
        "horizon": horizon,
        "actions": actions,
        "seeds": [0, 199],
        "protocols": {"first": card, "full": card},
        "videos": [],
    }
    (directory / "evaluation.json").write_text(json.dumps(content))


def write_sweep(
    root: Path, scenarios: tuple[str, ...] = ("intersection", "parking_lot"), seeds: int = 3, episodes: int = 1000
) -> Path:
    for scenario in scenarios:
        for algo in LEVEL:
            for seed in range(seeds):
                write_run(root / scenario / algo / f"seed{seed}", scenario, algo, seed, episodes)
    return root
