"""docs/add-an-algorithm.md, done: one function and one configuration make a new algorithm."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from toy_episodes import toy_learner, toy_rollouts

from maip3o.algo.penalties import PENALTIES
from maip3o.config.compose import compose
from maip3o.config.schema import PenaltyConfig
from maip3o.envs.toy import ToyEnv
from maip3o.errors import UserError

YAML = """
defaults:
  - maip3o
  - _self_
name: masoft
penalty:
  name: softplus
  alpha: 0.2
epochs: 1
"""


def softplus(x: torch.Tensor, settings: PenaltyConfig, multiplier: torch.Tensor) -> torch.Tensor:
    """A smooth ReLU of width alpha."""
    return settings.alpha * torch.nn.functional.softplus(x / settings.alpha)


def test_a_new_algorithm_is_a_function_and_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "algo").mkdir()
    (tmp_path / "algo" / "masoft.yaml").write_text(YAML)
    overrides = ["+scenario=intersection", "algo=masoft"]
    with pytest.raises(UserError, match="softplus"):
        compose(overrides, config_dir=str(tmp_path))

    monkeypatch.setitem(PENALTIES, "softplus", softplus)
    config, _ = compose(overrides, config_dir=str(tmp_path))
    assert (config.algo.name, config.algo.penalty.alpha, config.algo.clip) == ("masoft", 0.2, 0.2)
    learner = toy_learner(config)
    metrics = learner.update(toy_rollouts(learner, ToyEnv(4, 8), 4))
    argument = metrics["constraint/termination/penalty_argument"]
    expected = torch.sigmoid(torch.tensor(argument / 0.2))
    assert metrics["constraint/termination/penalty_slope"] == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("variant", ["", "_paper", "_released"])
def test_the_three_algorithms_of_a_variant_differ_by_the_penalty_alone(variant: str) -> None:
    algos = [compose(["+scenario=intersection", f"algo={n}{variant}"])[0].algo for n in ("maip3o", "map3o", "mappo")]
    assert [algo.penalty.name for algo in algos] == ["celu", "relu", "none"]
    assert [algo.name for algo in algos] == ["maip3o", "map3o", "mappo"]
    for algo in algos:
        algo.name, algo.penalty.name = "same", "same"
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


@pytest.mark.parametrize(
    "name", ["maipo", "mappo_lagrangian", "maip3o_paper", "maip3o_released", "maip3o_growing", "maip3o_crowd"]
)
def test_every_variant_learns_on_the_toy_environment(name: str) -> None:
    config, _ = compose(["+scenario=intersection", f"algo={name}", "algo.epochs=1", "model.memory_size=8"])
    learner = toy_learner(config)
    metrics = learner.update(toy_rollouts(learner, ToyEnv(4, 8, end_rule="half"), 4))
    assert metrics["policy/max_ratio_error"] < 1e-5
    assert metrics["policy/kl"] > 0
