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
from maip3o.config.schema import RunnerConfig
from maip3o.errors import UserError, exit_on_user_error
from maip3o.evaluate import Request, evaluated_config, require_films
from maip3o.evaluation.procedure import Cameraman, Evaluation, require_fitting_observation
from maip3o.policy import Policy, load_policy, run_directory
from maip3o.runners.directory import require_writable
from maip3o.runners.pool import make_pool
from maip3o.video.replay import replay_page

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
    policy = load_policy(values["checkpoint"])
    world = {key: values[key] for key in ("checkpoint", "scenario", "horizon", "backend") if key in values}
    request = Request(**world)
    config = evaluated_config(policy, request, values.get("num_agents"))
    require_films(config.scenario)
    path = _page_path(values.get("out"), policy)
    require_writable(path.parent, "out")
    with make_pool(RunnerConfig(), 1) as pool:
        require_fitting_observation(pool, policy, config)
        camera = Cameraman(pool, Evaluation(config, values.get("deterministic", False)), values.get("protocol", "full"))
        shown = [("", camera.footage(policy, seed)) for seed in values.get("seeds", [0])]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(replay_page(shown, f"{policy.name} on {config.scenario.name}"), encoding="utf-8")
    print(f"written: {path}")
    return path


def _page_path(out: str | None, policy: Policy) -> Path:
    if out is None:
        folder = run_directory(policy.path)
        return folder / "replay.html" if folder else Path(f"{policy.name}.html")
    if not out.endswith((".html", ".htm")) or Path(out).is_dir():
        raise UserError(f"out={out}: must be the name of an .html file")
    return Path(out)


if __name__ == "__main__":
    main()
