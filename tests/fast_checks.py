"""Checks of the fast backend that need an engine. A process each: python tests/fast_checks.py <name>"""

from __future__ import annotations

import sys
from pathlib import Path

from maip3o.envs.lean_import import import_metadrive

import_metadrive()

from maip3o.benchmarks.traces import Run, first_difference, trace  # noqa: E402
from maip3o.envs import load_scenario  # noqa: E402
from maip3o.envs.fast import FastBackend, native  # noqa: E402


def rays_through_panda3d() -> None:
    """Without Bullet's symbols the results are the same."""
    runs = [Run("forward", 1), Run("aggressive", 2)]
    backend = FastBackend(load_scenario("parking_lot", horizon=60))
    direct = [trace(backend, run) for run in runs]
    backend.close()
    native.SYMBOLS["ray_test"] = "_ZN16btCollisionWorld11noSuchThingEv"
    assert native.find_bullet() is None
    backend = FastBackend(load_scenario("parking_lot", horizon=60))
    for expected, run in zip(direct, runs, strict=True):
        assert first_difference(expected, trace(backend, run)) is None
    backend.close()


def memory_is_flat() -> None:
    """500 resets, and below 450 MB."""
    backend = FastBackend(load_scenario("intersection", horizon=10))
    sizes = []
    for seed in range(500):
        backend.reset(seed)
        if seed % 100 == 0:
            trace(backend, Run("forward", seed))
        if seed in (100, 499):
            sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6)
    backend.close()
    assert sizes[1] < 450, sizes
    assert sizes[1] - sizes[0] < 5, sizes


if __name__ == "__main__":
    {check.__name__: check for check in (rays_through_panda3d, memory_is_flat)}[sys.argv[1]]()
