"""The fast backend against stock MetaDrive, bit for bit. The longer version: python -m maip3o.benchmark equality."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.simulator
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fast_episodes_equal_stock_episodes_of_fresh_processes(tmp_path: Path) -> None:
    # A process of its own: MetaDrive's engine starts once per process, and forks must not inherit one.
    out = tmp_path / "equality.json"
    command = [sys.executable, "-m", "maip3o.benchmark", "equality", "episodes=5", "groups=6", f"out={out}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result = json.loads(out.read_text())
    assert [group["differences"] for group in result["groups"]] == [[]] * 6
    assert result["equal"]
    # The comparison means something only if things happened.
    assert result["steps"] > 4000
    least = {"crash_vehicle": 150, "out_of_road": 50, "crash_sidewalk": 5, "arrived": 5, "max_step": 100}
    assert {event: result[event] for event in least if result[event] < least[event]} == {}
