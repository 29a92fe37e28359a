"""Checks of the fast backend that need an engine. A process each: python tests/fast_checks.py <name>"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

from maip3o.envs.driving.lean_import import import_metadrive

import_metadrive()

from maip3o.benchmarks.traces import Run, first_difference, trace  # noqa: E402
from maip3o.envs import load_scenario  # noqa: E402
from maip3o.envs.driving.fast import FastBackend, native  # noqa: E402
from maip3o.envs.driving.fast.lidar import observe_beams  # noqa: E402
from maip3o.envs.driving.fast.native import cast  # noqa: E402
from maip3o.envs.driving.fast.passes import conclude, look  # noqa: E402
from maip3o.jit import are_cached  # noqa: E402


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


def ground_is_cut_as_bullet_cuts_it() -> None:
    """The closed form of the wheels' rays against Bullet's ray test of the ground: fraction, point and normal."""
    backend = FastBackend(load_scenario("intersection"))
    world = backend._traffic._world
    assert world._bullet is not None
    assert world._ground_raycaster is not None
    ground, ray = world._bullet.body_of(world._ground[0]), world.ray_call.ray
    cut = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(world._ground_raycaster._function.address)
    rng = np.random.default_rng(0)
    for _ in range(5000):
        start = np.append(rng.uniform(-150, 150, 2), rng.uniform(-0.3, 1.5)).astype(np.float32)
        end = (start + np.append(rng.normal(0, 0.1, 2), rng.uniform(-1.5, 0.3))).astype(np.float32)
        found = np.zeros(9, dtype=np.float32)
        hit = cut(world._ground_raycaster.address, start.ctypes.data, end.ctypes.data, found.ctypes.data)
        expected = cast(world.ray_call, *start.tolist(), *end.tolist(), ground)
        assert (hit != 0) == (expected < 1)
        if hit:
            assert found[8] == expected
            assert np.array_equal(found[:3], ray["point"][0, :3])
            assert np.abs(found[4:7] - ray["normal"][0, :3]).max() < 1e-6  # Bullet's vehicle normalises it once more
    backend.close()


def memory_is_flat() -> None:
    """500 resets, and below 450 MB, to which compiling would add."""
    cached = are_cached(look, conclude, observe_beams)
    backend = FastBackend(load_scenario("intersection", horizon=10))
    sizes = []
    for seed in range(500):
        backend.reset(seed)
        if seed % 100 == 0:
            trace(backend, Run("forward", seed))
        if seed in (100, 499):
            sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6)
    backend.close()
    assert sizes[1] < (450 if cached else 550), sizes
    assert sizes[1] - sizes[0] < 5, sizes


CHECKS = (rays_through_panda3d, ground_is_cut_as_bullet_cuts_it, memory_is_flat)

if __name__ == "__main__":
    {check.__name__: check for check in CHECKS}[sys.argv[1]]()
