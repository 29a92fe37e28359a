"""Judge a policy by what it does on held-out episodes.

python -m maip3o.evaluate checkpoint=<run directory | file | shipped name> [key=value ...]

  episodes=100         held-out episodes, the same for every policy ...
  first_seed=0         ... with seeds first_seed .. first_seed + episodes - 1; training never uses seeds below 1,000,000
  protocol=both        cars only: first: an episode ends at the first crash or road exit (the paper's); full: everybody
                       drives to their own end; both
  deterministic=false  sample actions, as the policy was trained; true: act with its mean
  num_agents=5,10,20   other numbers of agents than in training; several give a table and a figure
  scenario=<name>      another scenario than in training
  horizon=1000         steps until a life is timed out (default: as in training)
  backend=fast         simulator of cars: fast | stock (default: as in training)
  num_workers=auto     processes that simulate; auto = the cores this process may use
  video=false          true: an mp4 per outcome and a reel of failures
  gif=false            true: a small gif of each video besides
  theme=dark           colours of videos: dark | light (for papers)
  versus=<checkpoint>  a second policy: video of both on the same seed, side by side
  replay=false         true: an interactive HTML page of each filmed episode
  out=<folder>         where everything goes (default: evaluation.json and figures into the run's directory,
                       videos into eval_videos/<policy>_<its settings>/)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maip3o.config import options
from maip3o.config.schema import ScenarioConfig
from maip3o.envs.registry import find_world
from maip3o.errors import UserError

READERS: dict[str, options.Reader] = {
    "checkpoint": options.text,
    "episodes": options.integer(1, 1_000_000),
    "first_seed": options.integer(0, 999_999),
    "protocol": options.choice("both", "first", "full"),
    "deterministic": options.boolean,
    "num_agents": options.integers(1, 1000),
    "scenario": options.text,
    "horizon": options.integer(1, 1_000_000),
    "backend": options.choice("fast", "stock"),
    "num_workers": options.workers,
    "video": options.boolean,
    "gif": options.boolean,
    "theme": options.choice("dark", "light"),
    "versus": options.text,
    "replay": options.boolean,
    "out": options.text,
}


@dataclass(slots=True)
class Request:
    """The command line, read."""

    checkpoint: str
    episodes: int = 100
    first_seed: int = 0
    protocol: str = "both"
    deterministic: bool = False
    num_agents: list[int] | None = None
    scenario: str | None = None
    horizon: int | None = None
    backend: str | None = None
    num_workers: int = 0
    video: bool = False
    gif: bool = False
    theme: str = "dark"
    versus: str | None = None
    replay: bool = False
    out: str | None = None

    def protocols(self, scenario: ScenarioConfig) -> tuple[str, ...]:
        known = find_world(scenario).protocols
        if self.protocol not in ("both", *known):
            raise UserError(f"protocol={self.protocol}: scenario {scenario.name} has {', '.join(known)}")
        return known if self.protocol == "both" else (self.protocol,)


def read_request(arguments: list[str]) -> Request:
    values: dict[str, Any] = options.read_options(arguments, READERS, __doc__ or "")
    if "checkpoint" not in values:
        raise UserError("checkpoint=<run directory | file | shipped name> is missing (--help explains the options)")
    values.setdefault("num_workers", options.workers("num_workers", "auto"))
    if (values.get("gif") or "versus" in values) and values.get("video") is False:
        raise UserError("video=false: gif= and versus= make videos; leave video= out")
    if values.get("gif") or "versus" in values:
        values["video"] = True
    return Request(**values)
