"""Makes the page of a replay: drives the episodes again and hands them to the player."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from maip3o.config.schema import RunnerConfig
from maip3o.errors import UserError
from maip3o.evaluation.filming import Cameraman, require_view
from maip3o.evaluation.procedure import Evaluation, require_fitting_observation
from maip3o.evaluation.request import Request
from maip3o.evaluation.run import evaluated_config
from maip3o.policy import Policy, load_policy, run_directory
from maip3o.runners.directory import require_writable
from maip3o.runners.pool import make_pool
from maip3o.video.replay import replay_page


def make_page(
    request: Request,
    seeds: Sequence[int] = (0,),
    protocol: str = "full",
    deterministic: bool = False,
    num_agents: int | None = None,
    out: str | None = None,
) -> Path:
    """The page of these held-out episodes; returns its path."""
    policy = load_policy(request.checkpoint)
    config = evaluated_config(policy, request, num_agents)
    require_view(config.scenario, page=True)
    path = _page_path(out, policy)
    require_writable(path.parent, "out")
    with make_pool(RunnerConfig(), 1) as pool:
        require_fitting_observation(pool, policy, config)
        camera = Cameraman(pool, Evaluation(config, deterministic), protocol)
        shown = [("", camera.footage(policy, seed)) for seed in seeds]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(replay_page(shown, f"{policy.name} on {config.scenario.name}"), encoding="utf-8")
    return path


def _page_path(out: str | None, policy: Policy) -> Path:
    if out is None:
        folder = run_directory(policy.path)
        return folder / "replay.html" if folder else Path(f"{policy.name}.html")
    if not out.endswith((".html", ".htm")) or Path(out).is_dir():
        raise UserError(f"out={out}: must be the name of an .html file")
    return Path(out)
