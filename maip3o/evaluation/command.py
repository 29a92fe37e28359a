"""The command python -m maip3o.evaluate."""

from __future__ import annotations

import sys
from pathlib import Path

from maip3o.errors import exit_on_user_error
from maip3o.evaluation.request import read_request


def main() -> None:
    exit_on_user_error(lambda: run(sys.argv[1:]))


def run(arguments: list[str]) -> Path:
    """Evaluate as the command line says; returns the path of evaluation.json."""
    request = read_request(arguments)
    from maip3o.evaluation.run import carry_out  # torch takes seconds to load: a typing mistake is answered sooner

    return carry_out(request)
