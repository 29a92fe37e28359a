"""Simulators that are no part of the usual installation: asked for before anything starts."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from maip3o.config.schema import ScenarioConfig
from maip3o.errors import UserError


def require_mujoco(scenario: ScenarioConfig) -> None:
    """MuJoCo 3: version 4 computes other physics, and version 2 has another interface."""
    found = _version("mujoco")
    if found is None or find_spec("imageio") is None:  # Gymnasium's robots import it
        raise UserError(f"scenario.world={scenario.world}: MuJoCo is not installed; pip install 'maip3o[mujoco]'")
    if not found.startswith("3."):
        raise UserError(
            f"scenario.world={scenario.world}: MuJoCo {found} is not the physics of these robots; "
            "pip install 'maip3o[mujoco]' for version 3"
        )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
