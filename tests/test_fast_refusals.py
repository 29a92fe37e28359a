"""What the fast backend cannot do exactly, it refuses by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from maip3o import jit as compiled
from maip3o.envs import load_scenario
from maip3o.envs.driving.fast import geometry, settings
from maip3o.errors import UserError


def test_another_metadrive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "VERSION", "0.4.4")
    with pytest.raises(UserError, match=r"0\.4\.4 is installed: use backend=stock"):
        settings.check_scenario(load_scenario("intersection"))


def test_another_map_is_refused() -> None:
    with pytest.raises(UserError, match="not roundabout: use backend=stock"):
        settings.check_scenario(load_scenario("intersection", map="roundabout"))


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ({"random_agent_model": True}, "random_agent_model"),
        ({"vehicle_config": {"lidar": {"num_others": 4}}}, "vehicle_config.lidar.num_others"),
    ],
)
def test_an_unknown_metadrive_key_is_refused(overrides: dict[str, Any], key: str) -> None:
    with pytest.raises(UserError, match=f"does not know scenario.metadrive.{key}: use backend=stock"):
        settings.check_scenario(load_scenario("intersection", metadrive=overrides))


def test_an_unknown_block_is_refused() -> None:
    class Spiral:
        pass

    with pytest.raises(UserError, match="block of type Spiral"):
        geometry.take_geometry(SimpleNamespace(blocks=[Spiral()]), None)


def test_an_unknown_lane_is_refused() -> None:
    class Clothoid:
        index = ("a", "b", 0)

    with pytest.raises(UserError, match="lane of type Clothoid"):
        geometry._lane_records([Clothoid()], {"a": 0, "b": 1}, {("a", "b"): 0})


def test_kernels_work_without_a_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    real = compiled.numba.njit

    def no_folder(*arguments: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*arguments, **options)

    monkeypatch.setattr(compiled.numba, "njit", no_folder)
    double = compiled.kernel(lambda x: 2 * x)
    assert double(np.float64(1.5)) == 3.0
    assert not compiled.are_cached(double)
