"""Worlds: n agents with K costs over fixed slots, whose episodes are pure functions of their seed."""

from __future__ import annotations

from maip3o.envs.driving.observation import ObservationPart, observation_layout
from maip3o.envs.registry import make_array_env
from maip3o.envs.scenarios import load_scenario, scenario_names

__all__ = ["ObservationPart", "load_scenario", "make_array_env", "observation_layout", "scenario_names"]
