"""Checkpoints of untrained policies for the evaluation's tests."""

from __future__ import annotations

from pathlib import Path

from maip3o.algo.learner import Learner
from maip3o.config.schema import AlgoConfig, Config, ConstraintConfig, ScenarioConfig
from maip3o.envs import load_scenario
from maip3o.envs.driving.outcomes import driving_spec
from maip3o.runners.checkpoint import Checkpoint, save


def make_config(scenario: ScenarioConfig, seed: int = 0) -> Config:
    config = Config(scenario=scenario, algo=AlgoConfig(name="maip3o"), seed=seed)
    config.constraints = {"termination": ConstraintConfig(limit=0.1)}
    return config


def make_run(folder: Path, seed: int = 0, observation_size: int = 91, **scenario: object) -> Path:
    """A run directory with one checkpoint. The throttle is open a little, so that cars drive and crash."""
    name = str(scenario.pop("name", "intersection"))
    config = make_config(load_scenario(name, **scenario), seed)
    learner = Learner(config, driving_spec(observation_size, 2, ()), "cpu")
    counters = {"iteration": 0, "episodes": 0, "env_steps": 0, "agent_steps": 0, "seconds": 0.0}
    save(folder / "checkpoints" / "last.pt", Checkpoint(config, learner.state_dict(), counters))
    return folder
