"""Bullet Safety Gym 1.4.0 on today's Python and Gymnasium. The installed files stay as they are.

The package asks for a Gymnasium of 2023, so pip installs it with --no-deps.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from maip3o.errors import UserError

VERSIONS = {"bullet-safety-gym": "1.4.0", "pybullet": "3.2.7"}
INSTALL = "pip install 'maip3o[bullet]' && pip install --no-deps bullet-safety-gym==1.4.0"


class _Time:
    """Stands in for the module `time` where the package moves its boxes: they follow the simulation's clock here."""

    now = 0.0  # seconds

    def time(self) -> float:
        return self.now


TIME = _Time()


def require_bullet() -> None:
    """Refuse in one line what cannot be imported."""
    for package, wanted in VERSIONS.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            raise UserError(f"scenario.world=bullet: {package} is not installed; {INSTALL}") from None
        if found != wanted:
            raise UserError(f"scenario.world=bullet: {package} {found} is installed, not {wanted}; {INSTALL}")


@cache
def import_task() -> Callable[[str], Any]:
    """A function that makes the environment of a task, by its name."""
    import gymnasium

    # The package takes stderr for a file, which in a notebook it is not.
    with warnings.catch_warnings(), _quiet(), redirect_stderr(sys.__stderr__):
        warnings.simplefilter("ignore")
        import bullet_safety_gym  # noqa: F401
        from bullet_safety_gym.envs import bases, builder

    bases.time = TIME
    builder.RedirectStream = _quiet  # likewise of stdout

    class Task(builder.EnvironmentBuilder):
        def _setup_client_and_physics(self, graphics: bool = False) -> Any:
            client = super()._setup_client_and_physics(graphics)
            for name in ("stepSimulation", "resetBasePositionAndOrientation", "resetBaseVelocity", "resetJointState"):
                setattr(client, name, _forgetting(client, getattr(client, name)))
            client.loadURDF = _without_pictures(client.loadURDF)
            return client

        def _setup_simulation(self) -> None:
            super()._setup_simulation()
            for part in (self.agent, *self.agent.link_list, *self.obstacles, *vars(self.task).values()):
                if isinstance(part, (bases.Body, bases.Link)):
                    _remember_state(part)

    def make(name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its observation space, whose bounds do not fit into float32
            return Task(**gymnasium.spec(f"Safety{name}-v0").kwargs)

    return make


def _remember_state(part: Any) -> None:
    """The package asks for the same state up to forty times a step: once is enough until something moves."""
    get_state, client = part.get_state, part.bc
    moves, known = -1, np.zeros(0)

    def state() -> Any:
        nonlocal moves, known
        if moves != client.moves:
            moves, known = client.moves, get_state()
        return known.copy()

    part.get_state = state


def _forgetting(client: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the client that moves something."""
    client.moves = 0

    def call(*arguments: Any, **named: Any) -> Any:
        client.moves += 1
        return function(*arguments, **named)

    return call


def _without_pictures(load: Callable[..., Any]) -> Callable[..., Any]:
    """Loads a body's masses and shapes alone: a car's pictures take five sixths of building its world."""
    import pybullet

    def call(*arguments: Any, **named: Any) -> Any:
        named["flags"] = named.get("flags", 0) | pybullet.URDF_IGNORE_VISUAL_SHAPES
        return load(*arguments, **named)

    return call


@contextmanager
def _quiet(*_: Any) -> Iterator[None]:
    """pybullet talks on stdout and stderr from C++, past Python's streams."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {stream: os.dup(stream) for stream in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in kept:
            os.dup2(nowhere, stream)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C++ keeps buffers of its own
        for stream, copy in kept.items():
            os.dup2(copy, stream)
            os.close(copy)
        os.close(nowhere)
