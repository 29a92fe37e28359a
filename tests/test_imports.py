"""Which room may import which: read from the sources, lazy imports included."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = [
    "errors",
    "files",
    "jit",
    "config",
    "envs",
    "data",
    "models",
    "algo",
    "runners",
    "policy",
    "video",
    "evaluation",
    "report",
    "benchmarks",
]
"""Each may import what stands before it, and itself; the commands come last."""


@cache
def modules() -> dict[str, Path]:
    """maip3o.algo.ppo -> its file."""
    files = {f"maip3o.{path.relative_to(ROOT / 'maip3o')}": path for path in (ROOT / "maip3o").rglob("*.py")}
    files |= {f"maip3o.{path.relative_to(ROOT)}": path for path in (ROOT / "runners").glob("*.py")}
    named = {str(name)[:-3].replace("/", ".").removesuffix(".__init__"): path for name, path in files.items()}
    return {name: path for name, path in named.items() if name.split(".")[1:2] != ["conf"]}


def imports(path: Path) -> set[str]:
    """The package's modules that a file imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inside & modules().keys()) or {node.module}
    return {name for name in found if name in modules() and name != "maip3o"}


def room(module: str) -> int:
    name = module.split(".")[1]
    return ROOMS.index(name) if name in ROOMS else len(ROOMS)


def test_every_import_goes_one_way() -> None:
    backwards = [
        f"{module} imports {other}"
        for module, path in modules().items()
        for other in imports(path)
        if module != "maip3o" and room(other) > room(module)
    ]
    assert not backwards


def test_there_is_no_cycle_of_imports() -> None:
    graph = {module: imports(path) for module, path in modules().items() if module != "maip3o"}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above, module])
        if module not in done:
            for other in graph.get(module, ()):
                visit(other, (*above, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_the_rooms_are_those_of_the_tree() -> None:
    assert {"maip3o.algo.ppo", "maip3o.runners.loop", "maip3o.envs.driving.fast.world"} <= modules().keys()
    assert "maip3o.algo.view" in imports(modules()["maip3o.algo.ppo"])
    assert {name.split(".")[1] for name in modules() if "." in name} >= set(ROOMS)
