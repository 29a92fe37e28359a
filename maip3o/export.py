"""Write a policy as ONNX, so that it drives without torch and without this package.

python -m maip3o.export checkpoint=<run directory | file | shipped name> [out=<file.onnx>]

The graph takes raw observations [agents, O] and each agent's memory [agents, H] (zeros for a new life) and gives the
mean action [agents, U] (of cars: steering, throttle; clip to [-1, 1]) and the next memory. It is checked against torch
before it is written. examples/drive_onnx.py drives with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from maip3o.config import options
from maip3o.errors import UserError, exit_on_user_error


def main() -> None:
    exit_on_user_error(lambda: run(sys.argv[1:]))


def run(arguments: list[str]) -> Path:
    """Export; returns the file's path."""
    values = options.read_options(arguments, {"checkpoint": options.text, "out": options.text}, __doc__ or "")
    if "checkpoint" not in values:
        raise UserError("checkpoint=<run directory | file | shipped name> is missing (--help explains the options)")
    from maip3o.evaluation.onnx_export import (
        write_onnx,  # torch takes seconds to load: a typing mistake is answered sooner
    )

    return write_onnx(values["checkpoint"], values.get("out"))


if __name__ == "__main__":
    main()
