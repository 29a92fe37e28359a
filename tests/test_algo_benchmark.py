"""The benchmark of the update times sampling and update of the same episodes."""

from __future__ import annotations

import torch

from maip3o.benchmarks.update import run, table


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
