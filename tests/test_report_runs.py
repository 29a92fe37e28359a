"""Reading run directories: what is used, what is left out, and how it is named."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml
from synthetic_runs import write_evaluation, write_run, write_sweep

from maip3o.errors import UserError
from maip3o.report.groups import group_runs, short_names
from maip3o.report.reading import read_run, read_runs, require_runs
from maip3o.report.runs import Run, config_hash


def test_a_tree_of_runs_is_grouped_by_scenario_and_algorithm(tmp_path: Path) -> None:
    runs, remarks = read_runs([write_sweep(tmp_path)])
    groups = group_runs(runs)
    assert remarks == []
    assert [(g.scenario, g.label, g.seeds) for g in groups] == [
        (scenario, label, [0, 1, 2])
        for scenario in ("intersection", "parking_lot")
        for label in ("MAIP3O", "MAP3O", "MAPPO")
    ]


def test_unusable_directories_are_named_one_line_each_and_the_rest_is_used(tmp_path: Path) -> None:
    write_run(tmp_path / "good")
    (tmp_path / "empty").mkdir()
    (tmp_path / "no_config").mkdir()
    (tmp_path / "no_config" / "metrics.jsonl").write_text("{}\n")
    garbage = write_run(tmp_path / "garbage", seed=1)
    (garbage / "metrics.jsonl").write_bytes(b"\xff\x00\xfe\n\x80\x81\n")
    other = write_run(tmp_path / "other", seed=2)
    (other / "metrics.jsonl").write_text('{"loss": 1.0}\n')
    torn = write_run(tmp_path / "torn", seed=3)
    (torn / ".hydra" / "config.yaml").write_text("algo: {name: [")
    begun = write_run(tmp_path / "begun", seed=4)
    (begun / "metrics.jsonl").write_text("")
    (tmp_path / "notes.txt").write_text("not a run")
    runs, remarks = read_runs([tmp_path, tmp_path / "nowhere"])
    assert [run.directory.name for run in runs] == ["good"]
    named = sorted(Path(remark.split(":")[0]).name for remark in remarks)
    assert named == ["begun", "empty", "garbage", "no_config", "nowhere", "other", "torn"]
    assert all("\n" not in remark for remark in remarks)


def test_a_half_written_last_line_costs_that_line_only(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    whole, _ = read_run(directory)
    path = directory / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    run, remark = read_run(directory)
    assert run.records == whole.records[:-1]
    assert "half-written" in remark


def test_nothing_usable_is_the_users_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no usable run"):
        require_runs([tmp_path])
    with pytest.raises(UserError, match="no run directory given"):
        require_runs([])


def test_a_resumed_run_counts_each_episode_once_and_the_later_line_wins(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", episodes=200)
    path = directory / "metrics.jsonl"
    with path.open("a") as stream:
        for kind in ("iteration", "evaluation"):
            line = {"kind": kind, "episodes": 100, "env_steps": 1, "seconds": 1.0, "rollout/return": -1.0}
            stream.write(json.dumps(line) + "\n")
    run, _ = read_run(directory)
    episodes, returns = run.series("rollout/return")
    assert list(episodes) == [20, 40, 60, 80, 100]
    assert returns[-1] == -1.0
    assert run.total("episodes") == 100


def test_the_hash_ignores_seed_and_machine_but_not_the_experiment(tmp_path: Path) -> None:
    settings = {"seed": 0, "num_workers": 4, "runner.name": "local", "algo.lr": 1e-3}
    assert config_hash(settings) == config_hash({**settings, "seed": 7, "num_workers": 1, "runner.name": "ray"})
    assert config_hash(settings) == config_hash({**settings, "algo.option_of_a_later_version": None})
    assert config_hash(settings) == config_hash({**settings, "algo.kl_test": "minibatch"})  # newer, and not null
    assert config_hash(settings) != config_hash({**settings, "algo.kl_test": "epoch"})
    assert config_hash(settings) == config_hash({**settings, "scenario.observation": "linear"})
    assert config_hash(settings) != config_hash({**settings, "scenario.observation": "near"})
    assert config_hash(settings) != config_hash({**settings, "algo.lr": 2e-3})


def test_seeds_that_go_on_from_their_own_seeds_are_one_experiment() -> None:
    first, second = ({"seed": seed, "init": f"runs/stage_1/seed{seed}", "algo.lr": 1e-3} for seed in (1, 12))
    assert config_hash(first) == config_hash(second)
    assert config_hash(first) != config_hash(first | {"init": "runs/other/seed1"})
    assert config_hash(first) != config_hash(first | {"init": None})
    assert config_hash(first) != config_hash(first | {"init": "runs/stage_1/seed12"})  # all from one run
    for spelling in ("runs/stage_1/seed1/", "runs/stage_1/seed1/checkpoints/last.pt"):
        assert config_hash(first) == config_hash(first | {"init": spelling})
    recorded = [{"seed": seed, "init": f"seed{seed}"} for seed in (1, 12)]  # an absolute path, as a record keeps it
    assert config_hash(recorded[0]) == config_hash(recorded[1])


def test_evaluations_that_cannot_be_compared_are_named(tmp_path: Path) -> None:
    for seed in range(3):
        write_evaluation(write_run(tmp_path / f"seed{seed}", seed=seed))
    assert read_runs([tmp_path])[1] == []
    write_evaluation(tmp_path / "seed1", actions="mean")
    (remark,) = read_runs([tmp_path])[1]
    assert "seed1: evaluated with mean actions, seeds 0 to 199, others of intersection with sampled actions" in remark


def test_an_ablation_is_named_by_what_varies(tmp_path: Path) -> None:
    for alpha in (0.05, 0.1, 1.0):
        for seed in (0, 1):
            write_run(tmp_path / f"{alpha}" / f"{seed}", seed=seed, alpha=alpha)
    groups = group_runs(read_runs([tmp_path])[0])
    assert [g.label for g in groups] == ["MAIP3O, alpha=0.05", "MAIP3O, alpha=0.1", "MAIP3O, alpha=1.0"]
    assert [g.differences for g in groups] == [{"algo.penalty.alpha": a} for a in (0.05, 0.1, 1.0)]
    assert all(g.seeds == [0, 1] for g in groups)


def test_the_same_seed_twice_is_not_two_draws(tmp_path: Path) -> None:
    write_run(tmp_path / "short", episodes=200)
    write_run(tmp_path / "long", episodes=400)
    runs, remarks = read_runs([tmp_path])
    assert [run.directory.name for run in runs] == ["long"]
    assert len(remarks) == 1
    assert "same experiment and seed" in remarks[0]


def test_the_chosen_algorithm_names_the_run_not_its_name_key(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    choices = {"hydra": {"runtime": {"choices": {"scenario": "intersection", "algo": "maip3o_paper"}}}}
    (directory / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump(choices))
    assert read_run(directory)[0].algo == "maip3o_paper"
    (directory / ".hydra" / "hydra.yaml").unlink()
    assert read_run(directory)[0].algo == "maip3o"


def test_short_names_stay_unique() -> None:
    names = short_names(["algo.penalty.alpha", "constraints.a.limit", "constraints.b.limit"])
    assert names == {"algo.penalty.alpha": "alpha", "constraints.a.limit": "a.limit", "constraints.b.limit": "b.limit"}


def test_the_best_in_training_is_the_highest_mean_over_a_hundred_episodes_in_a_row() -> None:
    shares = [0.0] * 5 + [0.9] + [0.5] * 10 + [0.2] * 4  # 20 episodes each; one lucky value does not make the best
    lines = [{"kind": "iteration", "episodes": 20 * (i + 1), "rollout/arrived": s} for i, s in enumerate(shares)]
    run = Run(Path(), "intersection", "maip3o", 0, {}, lines)
    assert run.best("rollout/arrived") == pytest.approx((0.9 + 4 * 0.5) / 5)
    assert run.best("rollout/arrived", episodes=20) == pytest.approx(0.9)
    assert run.best("rollout/arrived", episodes=30) == pytest.approx(0.7)  # whole lines: never fewer than asked for
    assert math.isnan(run.best("rollout/arrived", episodes=401))
    assert math.isnan(run.best("no/such"))
