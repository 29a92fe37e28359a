"""A long run needs no more memory than a short one."""

from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest

from maip3o.runners.log import RunLog
from maip3o.runners.run import run
from tests.toy_run import toy_config

ITERATIONS = 400


@pytest.mark.slow
def test_memory_of_trainer_and_worker_stays_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, worker = [], []
    real = RunLog.saved

    def saved(self: RunLog, counters: dict[str, Any]) -> None:
        real(self, counters)
        trainer.append(psutil.Process().memory_info().rss)
        workers = [child for child in psutil.Process().children() if "LokyProcess" in " ".join(child.cmdline())]
        worker.append(sum(child.memory_info().rss for child in workers))

    monkeypatch.setattr(RunLog, "saved", saved)
    config = toy_config(total_episodes=4 * ITERATIONS, checkpoint_every_episodes=0)
    config.evaluation.every_episodes = 40
    run(config, tmp_path)
    assert len(trainer) == ITERATIONS + 1
    quarter = ITERATIONS // 4
    for sizes in (trainer, worker):
        assert min(sizes[quarter:]) > 20e6
        # In bytes per iteration; one iteration's episodes, kept for good, would be more.
        growth = (median(sizes[-quarter:]) - median(sizes[quarter : 2 * quarter])) / (ITERATIONS / 2)
        assert growth < 8192, f"{growth:.0f} bytes per iteration"
