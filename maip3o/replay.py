"""Make an HTML page that plays episodes of a policy in any browser, without a network.

python -m maip3o.replay checkpoint=<run directory | file | shipped name> [key=value ...]

  seeds=0              held-out episodes to show, e.g. 0,3,17
  protocol=full        full: everybody drives to their own end; first: until the first crash or road exit
  deterministic=false  sample actions, as the policy was trained; true: act with its mean
  num_agents=<n>       another number of cars than in training
  scenario=<name>      another scenario than in training
  horizon=1000         steps until a car is timed out (default: as in training)
  backend=fast         simulator: fast | stock (default: as in training)
  out=<file.html>      default: replay.html in the run's directory, or <policy>.html here
"""

from __future__ import annotations

import sys
from pathlib import Path

from maip3o.config import options
from maip3o.errors import UserError, exit_on_user_error
from maip3o.evaluation.request import Request

READERS: dict[str, options.Reader] = {
    "checkpoint": options.text,
    "seeds": options.integers(0, 999_999),
    "protocol": options.choice("full", "first"),
    "deterministic": options.boolean,
    "num_agents": options.integer(1, 1000),
    "scenario": options.text,
    "horizon": options.integer(1, 1_000_000),
    "backend": options.choice("fast", "stock"),
    "out": options.text,
}


def main() -> None:
    exit_on_user_error(lambda: run(sys.argv[1:]))


def run(arguments: list[str]) -> Path:
    """Make the page; returns its path."""
    values = options.read_options(arguments, READERS, __doc__ or "")
    if "checkpoint" not in values:
        raise UserError("checkpoint=<run directory | file | shipped name> is missing (--help explains the options)")
    from maip3o.evaluation.replaying import (
        make_page,  # torch takes seconds to load: a typing mistake is answered sooner
    )

    world = {key: values[key] for key in ("checkpoint", "scenario", "horizon", "backend") if key in values}
    shown = {key: values[key] for key in ("seeds", "protocol", "deterministic", "num_agents", "out") if key in values}
    path = make_page(Request(**world), **shown)
    print(f"written: {path}")
    return path


if __name__ == "__main__":
    main()
