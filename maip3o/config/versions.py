"""What a result was made with: code, packages, machine and command."""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import maip3o

PACKAGES = (
    "maip3o",
    "torch",
    "numpy",
    "numba",
    "metadrive-simulator",
    "panda3d",
    "hydra-core",
    "loky",
    "ray",
    "pettingzoo",
)


def versions(before: Path | None = None) -> dict[str, Any]:
    """What the run is made with; `earlier` lists what its earlier sessions, told by the file `before`, had instead."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    commit, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    content: dict[str, Any] = {
        "commit": commit,
        "uncommitted_changes": None if changed is None else bool(changed),
        "packages": packages,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "command": shlex.join(["python", *sys.orig_argv[1:]]),  # as it was typed, before Hydra changed sys.argv
    }
    with suppress(OSError, ValueError):
        old = json.loads(before.read_text(encoding="utf-8")) if before is not None else content
        earlier = old.pop("earlier", [])
        content["earlier"] = earlier if old == content else [*earlier, old]
    return content


def _git(*arguments: str) -> str | None:
    """Output of git in this package's own checkout; None if it is not one."""
    root = Path(maip3o.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
