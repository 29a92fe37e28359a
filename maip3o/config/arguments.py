"""Command lines of the reporting tools: paths and `key=value` options in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from maip3o.errors import UserError


def paths_and_options(arguments: Sequence[str], defaults: Mapping[str, str]) -> tuple[list[Path], dict[str, str]]:
    """Split a command line. `defaults` names the options; a job directory may itself contain `=`."""
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
