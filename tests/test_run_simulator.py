"""The runner on the real simulator, as a user starts it: kill -9 in mid-run, go on, same bytes as without the kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.toy_run import final_state

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

COMMAND = [sys.executable, "-m", "maip3o.train"]
RUN = ["+scenario=intersection", "scenario.horizon=40", "episodes_per_iteration=2"]
RUN += ["total_episodes=6", "evaluation.episodes=1", "evaluation.every_episodes=4", "torch_threads=1"]
RUN += ["logger.tensorboard=false"]


def test_killed_and_resumed_on_two_workers_equals_undisturbed_on_one(tmp_path: Path) -> None:
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    done = subprocess.run(
        [*COMMAND, *RUN, "num_workers=1", f"hydra.run.dir={calm}"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    trainer = subprocess.Popen([*COMMAND, *RUN, "num_workers=2", f"hydra.run.dir={rough}"], stdout=subprocess.DEVNULL)
    metrics = rough / "metrics.jsonl"
    while trainer.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= 2):
        time.sleep(0.02)
    workers = psutil.Process(trainer.pid).children(recursive=True)
    os.kill(trainer.pid, signal.SIGKILL)
    trainer.wait()
    _, left = psutil.wait_procs(workers, timeout=30)
    assert not left, "workers must not outlive their trainer"
    done = subprocess.run([*COMMAND, f"resume={rough}", "num_workers=1"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "going on at episode" in done.stdout
    assert final_state(rough) == final_state(calm)
