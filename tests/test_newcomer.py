"""docs/add-a-world.md, done: files outside the package, the commands of the page, a few episodes of training."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parents[1] / "docs" / "add-a-world.md").read_text(encoding="utf-8")
SHORT = "episodes_per_iteration=2 total_episodes=4 evaluation.every_episodes=0 logger.tensorboard=false num_workers=1"
STEPS = "total_steps=800 steps_per_iteration=400 evaluation.every_episodes=0 logger.tensorboard=false num_workers=1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page tells to write, where it tells to write it."""
    mine = tmp_path_factory.mktemp("newcomer") / "mine"
    (mine / "scenario").mkdir(parents=True)
    for text in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        (mine.parent / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    for text in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL):
        name = re.search(r"name: (\w+)", text)
        assert name is not None
        (mine / "scenario" / f"{name[1]}.yaml").write_text(text, encoding="utf-8")
    return mine


COMMANDS = re.findall(r"^    python -m maip3o\.train (.*)$", GUIDE, re.MULTILINE)


@pytest.mark.simulator
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: re.sub(r"\W+", "_", command)[:40])
def test_a_newcomers_files_train(folder: Path, command: str, tmp_path: Path) -> None:
    words = [word.replace("mine", ".") if word == "mine" else word for word in shlex.split(command)]
    short = STEPS if "gymnasium" in command else SHORT
    line = [sys.executable, "-m", "maip3o.train", *words, *short.split(), f"hydra.run.dir={tmp_path / 'run'}"]
    root = str(Path(__file__).parents[1])
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root})
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    constraint = next(re.finditer(r"constraints\.(\w+)", command), None)
    if constraint is not None:
        assert json.loads(lines[-1])[f"constraint/{constraint[1]}/mean"] > 0


def test_the_page_has_a_command_for_each_of_them() -> None:
    assert len(COMMANDS) == 4
