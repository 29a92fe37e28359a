"""The fast backend on its own; against stock: test_fast_equality.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("fast_checks.py")


@pytest.mark.simulator
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("check", ["rays_through_panda3d", "ground_is_cut_as_bullet_cuts_it", "memory_is_flat"])
def test_in_a_process_of_its_own(check: str) -> None:
    assert subprocess.run([sys.executable, str(CHECKS), check], check=False).returncode == 0
