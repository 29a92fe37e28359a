"""Errors that are the user's to mend: printed as one line, exit code 2, nothing written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class UserError(ValueError):
    """Bad input. The message names what was wrong, where, and what would be right, on one line."""


def exit_on_user_error(function: Callable[[], T]) -> T:
    """Call `function`; turn a UserError into one line on stderr and exit code 2."""
    try:
        return function()
    except UserError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
