"""The benchmark of the update measures a whole update."""

from __future__ import annotations

import torch

from maip3o.benchmarks.update import run


def test_update_benchmark_reports_seconds_per_agent_step() -> None:
    threads = torch.get_num_threads()
    result = run(steps=300, agents=3, horizon=25, observation_size=7, memory_size=4, epochs=2, repeats=1)
    torch.set_num_threads(threads)
    assert result["agent_steps"] >= 300
    assert result["seconds"] > 0
    per_step = 1e6 * result["seconds"] / result["agent_steps"] / 2
    assert abs(result["microseconds_per_agent_step_and_epoch"] - per_step) < 1e-6
