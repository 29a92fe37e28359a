"""Errors that end a command with a message instead of a traceback, and the exit codes they stand for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class UserError(ValueError):
    """Bad input: exit code 2, nothing written. The message names what was wrong, where, and what would be right."""


class RunError(RuntimeError):
    """A run that cannot go on, for a reason that the message explains (disk full, hopeless episode): exit code 1."""


def exit_on_user_error(function: Callable[[], T]) -> T:
    """Call `function`; turn a UserError into one line on stderr and exit code 2, a RunError into its message and 1."""
    try:
        return function()
    except UserError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
