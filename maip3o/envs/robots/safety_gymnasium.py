"""Safety Gymnasium 1.0.0 on today's Python, NumPy, Gymnasium and MuJoCo. The installed files stay as they are.

The package names versions of 2023 as its dependencies, so pip installs it with --no-deps, and its sources are corrected
here while they are imported. Its own `__init__` is left out: it needs packages that no task uses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from maip3o.errors import UserError

PACKAGE = "safety_gymnasium"
VERSION = "1.0.0"
INSTALL = "pip install 'maip3o[safety]' && pip install --no-deps safety-gymnasium==1.0.0"

# The sky is six pictures of 24 MB, read at every reset and seen by no observation.
SKY = str(
    {"@type": "skybox", "@builtin": "gradient", "@rgb1": ".6 .7 .8", "@rgb2": ".9 .9 1", "@width": 64, "@height": 384}
)
AS_ARRAY = (r"np\.array\(action, copy=False\)", "np.asarray(action)")  # NumPy 2
CORRECTIONS: dict[str, list[tuple[str, str]]] = {
    "builder": [AS_ARRAY],
    "bases.base_agent": [AS_ARRAY, (r"model\.jnt\(joint_id\)", "model.jnt(int(joint_id[0]))")],  # MuJoCo 3
    "world": [(r"assets_config\['textures'\]\['skybox'\]", SKY)],
}
# Python 3.11: an array is no default of a dataclass.
DEFAULT_COLOUR = (
    r"(color: np\.array) = (COLOR\['\w+'\])",
    r"\1 = __import__('dataclasses').field(default_factory=lambda: \2)",
)


class _Loader(SourceFileLoader):
    """Compiles the corrected source, and writes no bytecode of it."""

    def get_code(self, fullname: str) -> Any:
        source = self.get_source(fullname) or ""
        for pattern, replacement in _corrections(fullname):
            source, count = re.subn(pattern, replacement, source)
            if not count:
                raise ImportError(f"{fullname} is not that of {PACKAGE} {VERSION}")
        return compile(source, self.path, "exec", dont_inherit=True)


def _corrections(module: str) -> list[tuple[str, str]]:
    name = module.removeprefix(f"{PACKAGE}.")
    is_object = re.fullmatch(r"assets\.(geoms|free_geoms|mocaps)\.\w+", name)
    return [DEFAULT_COLOUR] if is_object else CORRECTIONS.get(name, [])


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{PACKAGE}.") or not _corrections(fullname):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Yaml:
    """Stands in for the module `yaml` where a world is built: the one file is read once, not at every reset."""

    FullLoader = None

    @staticmethod
    @cache
    def _content(path: str) -> Any:
        import yaml

        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))

    @classmethod
    def load(cls, file: TextIO, Loader: None) -> Any:
        return deepcopy(cls._content(file.name))


def require_safety_gymnasium() -> None:
    """Refuse in one line what cannot be imported."""
    try:
        found = version("safety-gymnasium")
    except PackageNotFoundError:
        raise UserError(f"scenario.world=navigation: Safety Gymnasium is not installed; {INSTALL}") from None
    if found != VERSION:
        raise UserError(f"scenario.world=navigation: safety-gymnasium {found} is installed, not {VERSION}; {INSTALL}")
    for module in ("mujoco", "xmltodict", "yaml", "glfw"):
        if find_spec(module) is None:
            raise UserError(f"scenario.world=navigation: {module} is not installed; {INSTALL}")


@cache
def import_builder() -> Any:
    """The package's class of environments."""
    require_safety_gymnasium()
    spec = find_spec(PACKAGE)
    assert spec is not None
    sys.meta_path.insert(0, _Finder())
    spec.loader = None  # a package without the contents of its __init__
    sys.modules[PACKAGE] = module_from_spec(spec)
    from safety_gymnasium import world
    from safety_gymnasium.builder import Builder

    world.yaml = _Yaml
    return Builder
