"""`key=value` command lines of the tools that are no training run: typed, and wrong ones end with one line."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from maip3o.errors import UserError

Reader = Callable[[str, str], Any]


def read_options(arguments: Sequence[str], readers: dict[str, Reader], usage: str) -> dict[str, Any]:
    """Values by key, each through its reader. `usage` is printed for --help."""
    if any(argument in ("-h", "--help") for argument in arguments):
        print(usage.strip())
        sys.exit(0)
    values: dict[str, Any] = {}
    for argument in arguments:
        key, separator, text = argument.partition("=")
        if key not in readers:
            close = difflib.get_close_matches(key, readers, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UserError(f"unknown option {argument!r}{hint} (options: {', '.join(f'{name}=' for name in readers)})")
        if not separator or not text:
            raise UserError(f"{key}: a value is missing, write {key}=<value>")
        if key in values:
            raise UserError(f"{key} is given twice")
        values[key] = readers[key](key, text)
    return values


def text(key: str, value: str) -> str:
    return value


def boolean(key: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise UserError(f"{key}={value}: must be true or false")
    return value.lower() == "true"


def integer(minimum: int, maximum: int) -> Reader:
    def read(key: str, value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            number = minimum - 1
        if not minimum <= number <= maximum:
            raise UserError(f"{key}={value}: must be a whole number from {minimum} to {maximum}")
        return number

    return read


def integers(minimum: int, maximum: int) -> Reader:
    one = integer(minimum, maximum)

    def read(key: str, value: str) -> list[int]:
        numbers = [one(key, part) for part in value.strip("[]").split(",")]
        if len(set(numbers)) < len(numbers):
            raise UserError(f"{key}={value}: names a number twice")
        return numbers

    return read


def choice(*names: str) -> Reader:
    def read(key: str, value: str) -> str:
        if value not in names:
            raise UserError(f"{key}={value}: must be one of {', '.join(names)}")
        return value

    return read


def workers(key: str, value: str) -> int:
    """A number of processes, or auto: the cores that this process may use."""
    if value == "auto":
        import loky

        return int(loky.cpu_count())
    return int(integer(1, 1024)(key, value))
