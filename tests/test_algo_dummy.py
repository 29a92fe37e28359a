"""docs/add-an-algorithm.md, done: a class and a configuration, both outside the package, make a new algorithm."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from toy_episodes import toy_learner, toy_rollouts

from maip3o.config.algorithms import METHODS
from maip3o.envs.toy import ToyEnv
from maip3o.errors import UserError
from maip3o.runners.compose import compose

GUIDE = Path(__file__).parents[1] / "docs" / "add-an-algorithm.md"


def blocks(language: str) -> list[str]:
    """The guide's code in this language."""
    return [part.split("```")[0] for part in GUIDE.read_text(encoding="utf-8").split(f"```{language}\n")[1:]]


def test_a_new_algorithm_is_a_class_and_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "algo").mkdir()
    (tmp_path / "softplus_penalty.py").write_text(blocks("python")[0], encoding="utf-8")
    (tmp_path / "algo" / "softplus.yaml").write_text(blocks("yaml")[1], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    config, _ = compose(["+scenario=intersection", "algo=softplus", "algo.epochs=1"], config_dir=str(tmp_path))
    assert (config.algo.name, config.algo.penalty.alpha, config.algo.clip) == ("softplus", 0.2, 0.2)
    learner = toy_learner(config)
    metrics = learner.update(toy_rollouts(learner, ToyEnv(4, 8), 4))
    argument = metrics["constraint/termination/penalty_argument"]
    expected = torch.sigmoid(torch.tensor(argument / 0.2))
    assert metrics["constraint/termination/penalty_slope"] == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("method", ["no_such_module:Thing", "maip3o.algo.p3o:P4O", "maip3o.algo.p3o:torch"])
def test_a_class_that_is_none_is_the_users_error(method: str) -> None:
    config, _ = compose(["+scenario=intersection", f"algo.method='{method}'"])
    with pytest.raises(UserError, match=r"algo\.method="):
        toy_learner(config)


@pytest.mark.parametrize("variant", ["", "_paper", "_released"])
def test_the_three_algorithms_of_a_variant_differ_by_the_method_alone(variant: str) -> None:
    algos = [compose(["+scenario=intersection", f"algo={n}{variant}"])[0].algo for n in ("maip3o", "map3o", "mappo")]
    assert [algo.method for algo in algos] == ["ip3o", "p3o", "ppo"]
    assert [algo.name for algo in algos] == ["maip3o", "map3o", "mappo"]
    for algo in algos:
        algo.name, algo.method = "same", "same"
    assert algos[0] == algos[1] == algos[2]


def test_paper_and_released_settings_are_those_of_their_sources() -> None:
    paper, released = (compose(["+scenario=intersection", f"algo=maip3o_{v}"])[0].algo for v in ("paper", "released"))
    for algo in (paper, released):
        table = (
            algo.penalty.eta,
            algo.gamma,
            algo.clip,
            algo.gae_lambda,
            algo.cost_gae_lambda,
            algo.lr,
            algo.critic_lr,
        )
        assert table == (20.0, 0.99, 0.2, 0.95, 0.95, 3e-4, 3e-4)
        assert (algo.minibatch_steps, algo.credit, algo.constraint_estimate) == (64, "team", "mean")
        assert (algo.kl_max, algo.kl_test) == (0.02, "epoch")
    assert (paper.cost_scale, paper.clip_cost, paper.cost_advantage) == ("horizon", True, "raw")
    assert (released.cost_scale, released.clip_cost, released.cost_advantage) == ("one", False, "centred")


VARIANTS = ["ip3o_paper", "ip3o_released", "maip3o_growing", "maip3o_crowd"]


@pytest.mark.parametrize("recurrent", [True, False])
@pytest.mark.parametrize("name", [*METHODS, *VARIANTS])
def test_every_algorithm_trains_several_agents_with_two_constraints(name: str, recurrent: bool) -> None:
    small = ["algo.epochs=1", "model.memory_size=8", "model.hidden_sizes=[16]", f"model.recurrent={recurrent}"]
    config, _ = compose(["+scenario=intersection", f"algo={name}", "+constraints.crash.limit=0.1", *small])
    config.constraints["speed"] = config.constraints.pop("crash")
    learner = toy_learner(config)
    world = ToyEnv(4, 8, end_rule="half", cost_names=("termination", "speed"))
    for _ in range(2):
        metrics = learner.update(toy_rollouts(learner, world, 4))
        assert metrics["policy/max_ratio_error"] < 1e-5
        assert metrics["policy/kl"] > 0 or metrics["policy/rejected"] == 1.0  # no step of a line search was good
