"""The benchmarks of the update: against the sampling of its episodes, and algorithm by algorithm."""

from __future__ import annotations

import pytest
import torch

from maip3o.benchmarks import algorithms
from maip3o.benchmarks.update import run, table
from maip3o.errors import UserError


def test_update_benchmark_compares_an_update_with_the_sampling_of_its_data() -> None:
    threads = torch.get_num_threads()
    result = run(steps=300, epochs=1, workers=1, repeats=2)
    torch.set_num_threads(threads)
    assert result["agent_steps"] >= 300
    for name in ("sampling_seconds", "update_seconds", "update_side_by_side_seconds"):
        assert len(result[name]) == 2
    ratios = [u / s for u, s in zip(result["update_seconds"], result["sampling_seconds"], strict=True)]
    assert min(ratios) <= result["update_over_sampling"] <= max(ratios)
    assert "update over sampling" in table(result)


def test_algorithms_benchmark_times_an_update_of_each() -> None:
    threads = torch.get_num_threads()
    result = algorithms.run("pcpo", steps=1000, epochs=1, repeats=2)
    torch.set_num_threads(threads)
    assert list(result["updates"]) == ["pcpo"]
    assert len(result["updates"]["pcpo"]["ours_seconds"]) == 2
    assert result["updates"]["pcpo"]["omnisafe_seconds"] == []
    assert "pcpo" in algorithms.table(result)
    with pytest.raises(UserError, match="oracle=/nowhere"):
        algorithms.run("ppo", oracle="/nowhere")
