"""Command lines of the reporting tools: paths and `key=value` options in any order."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from maip3o.errors import UserError


def paths_and_options(
    arguments: Sequence[str], defaults: Mapping[str, str], usage: str
) -> tuple[list[Path], dict[str, str]]:
    """Split a command line. `defaults` names the options; a job directory may itself contain `=`.

    `usage` is printed for --help.
    """
    if any(argument in ("-h", "--help") for argument in arguments):
        print(usage.strip())
        sys.exit(0)
    paths: list[Path] = []
    options = dict(defaults)
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if separator and key in defaults:
            if not value:
                raise UserError(f"{key}: a value is missing, write {key}=<value>")
            options[key] = value
        elif separator and not Path(argument).exists():
            raise UserError(f"unknown option {key!r}: choose from {', '.join(defaults)}")
        else:
            paths.append(Path(argument))
    return paths, options
