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
  versus=<checkpoint>  a second policy: video of both on the same seed, side by side
  replay=false         true: an interactive HTML page of each filmed episode
  out=<folder>         where everything goes (default: evaluation.json and figures into the run's directory,
                       videos into eval_videos/<policy>_<its settings>/)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from maip3o.config import options
from maip3o.config.identity import fingerprint
from maip3o.config.schema import Config, RunnerConfig, ScenarioConfig
from maip3o.config.validation import validate_keys
from maip3o.envs.registry import find_world
from maip3o.errors import UserError, exit_on_user_error
from maip3o.evaluation.card import card_table
from maip3o.evaluation.files import write_evaluation
from maip3o.evaluation.procedure import Evaluation, evaluate, film, require_fitting_observation
from maip3o.policy import Policy, load_policy, run_directory
from maip3o.runners.directory import require_writable
from maip3o.runners.pool import make_pool
from maip3o.runners.prerequisites import require_sound_world
from maip3o.runners.seeds import FIRST_TRAINING_SEED, evaluation_seeds

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
    versus: str | None = None
    replay: bool = False
    out: str | None = None

    def protocols(self, scenario: ScenarioConfig) -> tuple[str, ...]:
        known = find_world(scenario).protocols
        if self.protocol not in ("both", *known):
            raise UserError(f"protocol={self.protocol}: scenario {scenario.name} has {', '.join(known)}")
        return known if self.protocol == "both" else (self.protocol,)


def main() -> None:
    exit_on_user_error(lambda: run(sys.argv[1:]))


def run(arguments: list[str]) -> Path:
    """Evaluate as the command line says; returns the path of evaluation.json."""
    request = read_request(arguments)
    policy = load_policy(request.checkpoint)
    rival = load_policy(request.versus) if request.versus else None
    counts: list[int | None] = [*request.num_agents] if request.num_agents else [None]
    configs = [evaluated_config(policy, request, count) for count in counts]
    seeds = evaluation_seeds(request.episodes, request.first_seed)
    if seeds[-1] >= FIRST_TRAINING_SEED:
        raise UserError(
            f"first_seed={request.first_seed}: {request.episodes} episodes from there reach the seeds of training, "
            f"which begin at {FIRST_TRAINING_SEED}"
        )
    protocols = request.protocols(configs[0].scenario)
    if request.video or request.replay:
        require_films(configs[0].scenario)
    folder, videos = output_folders(request, policy)
    console = Console() if sys.stdout.isatty() else Console(width=120)  # in a log or a pipe
    with make_pool(RunnerConfig(), request.num_workers) as pool:
        for config in configs:
            require_fitting_observation(pool, policy, config)
        if rival is not None:
            require_fitting_observation(pool, rival, replace(rival.config, scenario=rival.seeing(configs[0].scenario)))
        evaluations: list[Evaluation] = []
        for config in configs:
            evaluations.append(evaluate(pool, policy, config, seeds, protocols, request.deterministic))
        wishes = {"video": request.video, "gif": request.gif, "replay": request.replay}
        clips = film(pool, policy, rival, evaluations[0], videos, **wishes) if videos else []
    console.print(result_table(policy, evaluations, request))
    path = write_evaluation(folder, policy, request.deterministic, evaluations, clips)
    console.print(f"written: {path}")
    for clip in clips:
        console.print(
            f"         {clip['file']}  ({clip['what']}, seeds {clip['seeds']})", highlight=False, soft_wrap=True
        )
    return path


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


def evaluated_config(policy: Policy, request: Request, num_agents: int | None) -> Config:
    """The policy's own config with what the command line changes, able to run here."""
    from maip3o.envs import load_scenario

    scenario = policy.config.scenario
    if request.scenario is not None:
        scenario = policy.seeing(load_scenario(request.scenario))
    if num_agents is not None:
        scenario = replace(scenario, num_agents=num_agents)
    if request.horizon is not None:
        scenario = replace(scenario, horizon=request.horizon)
    if request.backend is not None:
        scenario = replace(scenario, backend=request.backend)
    here = replace(policy.config, scenario=scenario, runner=RunnerConfig(), device="cpu", resume=None)
    return require_sound_world(validate_keys(here))


def require_films(scenario: ScenarioConfig) -> None:
    if not find_world(scenario).films:
        raise UserError(f"scenario.world={scenario.world}: its episodes cannot be filmed or replayed yet")


def output_folders(request: Request, policy: Policy) -> tuple[Path, Path | None]:
    """Folder of evaluation.json and folder of videos (None: no videos), both found writable."""
    wants_video = request.video or request.replay
    if request.out is not None:
        folder = videos = Path(request.out)
    else:
        folder = run_directory(policy.path) or Path("runs") / "evaluations" / policy.name
        videos = Path("eval_videos") / f"{policy.name}_{fingerprint(policy.config)}"
    require_writable(folder, "out")
    if wants_video:
        require_writable(videos, "out")
    return folder, videos if wants_video else None


def result_table(policy: Policy, evaluations: list[Evaluation], request: Request) -> Table:
    """One setting: a column per protocol. Several numbers of agents: a column each, of the protocol that tells more."""
    scenario = evaluations[0].config.scenario
    tables = [list(evaluation.tables.values())[-1] for evaluation in evaluations]
    agents = [f"{e.config.scenario.num_agents} {t.world.agent}s" for e, t in zip(evaluations, tables, strict=True)]
    actions = "mean actions" if request.deterministic else "sampled actions"
    where = scenario.name if request.horizon is None else f"{scenario.name} with {scenario.horizon} steps"
    title = f"{policy.name} on {where}: {request.episodes} held-out episodes, {actions}"
    if len(evaluations) == 1:
        headings = {"first": "until the first failure", "full": "whole episodes"}
        cards = {headings[protocol]: card for protocol, card in evaluations[0].cards.items()}
        return card_table(title if scenario.num_agents == 1 else f"{title}, {agents[0]}", cards)
    last = list(evaluations[0].cards)[-1]
    columns = {name: e.cards[last] for name, e in zip(agents, evaluations, strict=True)}
    return card_table(f"{title}, protocol {last}", columns)


if __name__ == "__main__":
    main()
