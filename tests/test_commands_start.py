"""Every command answers --help and a mistyped option before it loads what takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "metadrive", "matplotlib", "scipy", "numba", "optuna", "cv2", "ray", "panda3d")
COMMANDS = ("train", "evaluate", "replay", "plot", "report", "record", "tune", "export", "benchmark")
WATCH = f"""
import json, runpy, sys
code = 0
try:
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
except SystemExit as ended:
    code = ended.code
print(json.dumps([code, sorted(sys.modules.keys() & set({HEAVY!r}))]))
"""


def watched(command: str, folder: Path, *arguments: str) -> tuple[int | None, list[str], str]:
    """Exit code, what was loaded that is heavy, and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, f"maip3o.{command}", *arguments], cwd=folder, capture_output=True, text=True
    )
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    return code, loaded, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_loads_nothing_heavy(command: str, tmp_path: Path) -> None:
    code, loaded, errors = watched(command, tmp_path, "--help")
    assert (code or 0, loaded, errors) == (0, [], "")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        *((command, ["nosuch=1"]) for command in COMMANDS),
        ("train", ["+scenario=intersection", "algo.lrr=1"]),
        ("train", ["+scenario=intersection", "scenario.num_agents=200"]),
        ("evaluate", ["checkpoint=maip3o-intersection", "episodes=ten"]),
        ("replay", ["checkpoint=maip3o-intersection", "sedes=0"]),
        ("report", ["out=page.txt"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_bad_option_is_refused_before_anything_heavy_is_loaded(
    command: str, arguments: list[str], tmp_path: Path
) -> None:
    code, loaded, errors = watched(command, tmp_path, *arguments)
    assert (code, loaded) == (2, [])
    assert len(errors.splitlines()) == 1
    assert errors.startswith("error: ")
    assert list(tmp_path.iterdir()) == []
