"""Ray gives the same bytes as local processes, and survives a killed actor. A real Ray is started on this machine."""

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from maip3o.config.schema import RunnerConfig
from maip3o.runners.pool import make_pool
from maip3o.runners.run import run
from tests.toy_run import assert_same_episode, final_state, processes_of, toy_config, toy_job, train_inline

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module", autouse=True)
def _no_ray_left_behind() -> Iterator[None]:
    yield
    ray.shutdown()


def test_same_bytes_as_local_processes(tmp_path: Path) -> None:
    from maip3o.runners.ray_worker import RayWorker

    with processes_of(RayWorker) as processes:
        run(toy_config(runner=RunnerConfig(name="ray"), num_workers=2), tmp_path / "ray")
    assert len(processes - {os.getpid()}) == 2
    train_inline(toy_config(), tmp_path / "local")
    assert final_state(tmp_path / "ray") == final_state(tmp_path / "local")


def test_killed_actor_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    with make_pool(RunnerConfig(name="ray"), num_workers=1) as pool:
        job = toy_job(horizon=8000, hazard=0.0)
        expected = pool.map(job, [3])
        me = psutil.Process()
        actors = [p for p in me.children(recursive=True) if "_Process" in " ".join(p.cmdline())]
        assert actors
        threading.Timer(0.3, lambda: [actor.kill() for actor in actors]).start()
        with caplog.at_level(logging.WARNING, logger="maip3o"):
            episodes = pool.map(job, [3])
        assert "replaced, episode of seed 3 repeated" in caplog.text
        assert_same_episode(episodes[0], expected[0])
