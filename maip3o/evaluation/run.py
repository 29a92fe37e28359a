"""One evaluation: the policies, the worlds they drive in, and where the figures and films go."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from maip3o.config.identity import fingerprint
from maip3o.config.schema import Config, RunnerConfig
from maip3o.config.validation import validate_keys
from maip3o.errors import UserError
from maip3o.evaluation.card import PROTOCOLS, card_table
from maip3o.evaluation.files import write_evaluation
from maip3o.evaluation.filming import film, require_camera, require_view
from maip3o.evaluation.procedure import Evaluation, evaluate, require_fitting_observation
from maip3o.evaluation.request import Request
from maip3o.policy import Policy, load_policy, run_directory
from maip3o.runners.directory import require_writable
from maip3o.runners.pool import Pool, make_pool
from maip3o.runners.prerequisites import require_sound_world
from maip3o.runners.seeds import FIRST_TRAINING_SEED, evaluation_seeds
from maip3o.video import palette


def carry_out(request: Request) -> Path:
    """Evaluate as the request says; returns the path of evaluation.json."""
    policy = load_policy(request.checkpoint)
    rival = load_policy(request.versus) if request.versus else None
    here = evaluated_config(policy, request, None)
    if request.video or request.replay:
        require_view(here.scenario, page=request.replay or request.versus is not None)
    folder, videos = output_folders(request, policy)
    console = Console() if sys.stdout.isatty() else Console(width=120)  # in a log or a pipe
    palette.use(request.theme)
    with make_pool(RunnerConfig(), request.num_workers) as pool:
        if request.video:
            require_camera(pool, here)
        evaluations = drive(pool, policy, request, rival)
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


def drive(pool: Pool, policy: Policy, request: Request, rival: Policy | None = None) -> list[Evaluation]:
    """Every setting of the request, once all are known to be possible, also for the rival that is filmed after it."""
    counts: list[int | None] = [*request.num_agents] if request.num_agents else [None]
    configs = [evaluated_config(policy, request, count) for count in counts]
    seeds = evaluation_seeds(request.episodes, request.first_seed)
    if seeds[-1] >= FIRST_TRAINING_SEED:
        raise UserError(
            f"first_seed={request.first_seed}: {request.episodes} episodes from there reach the seeds of training, "
            f"which begin at {FIRST_TRAINING_SEED}"
        )
    protocols = request.protocols(configs[0].scenario)
    for config in configs:
        require_fitting_observation(pool, policy, config)
    if rival is not None:
        require_fitting_observation(pool, rival, replace(rival.config, scenario=rival.seeing(configs[0].scenario)))
    return [evaluate(pool, policy, config, seeds, protocols, request.deterministic) for config in configs]


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
        cards = {PROTOCOLS[protocol]: card for protocol, card in evaluations[0].cards.items()}
        return card_table(title if scenario.num_agents == 1 else f"{title}, {agents[0]}", cards)
    last = list(evaluations[0].cards)[-1]
    columns = {name: e.cards[last] for name, e in zip(agents, evaluations, strict=True)}
    return card_table(f"{title}, {PROTOCOLS[last]}", columns)
