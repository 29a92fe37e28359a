"""Measure this program: python -m maip3o.benchmark <name> key=value ... [out=result.json]

Without a name: the list of benchmarks. With --help after the name: its options and their defaults.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maip3o.benchmarks
from maip3o.config.options import Reader, boolean, read_options, text
from maip3o.errors import UserError, exit_on_user_error
from maip3o.runners.directory import require_writable

LOWEST = {"first_seed": 0}
"""Lowest value of a whole number; 1 where none is named."""


def names() -> list[str]:
    """Modules of maip3o/benchmarks that can be run."""
    folder = Path(maip3o.benchmarks.__file__).parent
    found = [module.name for module in pkgutil.iter_modules([str(folder)])]
    return sorted(name for name in found if "\ndef run(" in (folder / f"{name}.py").read_text(encoding="utf-8"))


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"{(__doc__ or '').strip()}\n\nbenchmarks: {', '.join(names())}")
        return
    name = arguments[0]
    if name not in names():
        raise UserError(f"unknown benchmark {name!r}: known are {', '.join(names())}")
    module = importlib.import_module(f"maip3o.benchmarks.{name}")
    run = module.run
    options = read_options(arguments[1:], {**_readers(run), "out": text}, _usage(name, module))
    out = options.pop("out", None)
    if out is not None:
        if not Path(out).parent.is_dir():
            raise UserError(f"out={out}: there is no folder {Path(out).parent}")
        require_writable(Path(out).parent, "out")
    result = run(**options)
    print(module.table(result) if hasattr(module, "table") else json.dumps(result, indent=2))
    if out is not None:
        Path(out).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _readers(run: Callable[..., Any]) -> dict[str, Reader]:
    hints = typing.get_type_hints(run)
    return {name: _reader(hints[name]) for name in inspect.signature(run).parameters}


def _reader(kind: type) -> Reader:
    if kind is bool:
        return boolean
    if kind is str:
        return text

    def number(key: str, value: str) -> Any:
        try:
            found = kind(value)
        except ValueError:
            raise UserError(f"{key}={value}: must be a number of type {kind.__name__}") from None
        if kind is int and found < LOWEST.get(key, 1):
            raise UserError(f"{key}={value}: must be {LOWEST.get(key, 1)} or above")
        return found

    return number


def _usage(name: str, module: Any) -> str:
    parameters = inspect.signature(module.run).parameters.values()
    options = "\n".join(f"  {parameter.name}={parameter.default}" for parameter in parameters)
    return f"{(module.__doc__ or '').strip()}\n\noptions of {name} and their defaults:\n{options}\n  out=<file>.json"


if __name__ == "__main__":
    exit_on_user_error(lambda: main(sys.argv[1:]))
