"""resume=<run directory>: its own config, honest changes only."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from maip3o.config.algorithms import METHODS
from maip3o.errors import UserError
from maip3o.runners import checkpoint, loop
from maip3o.runners import command as train
from maip3o.runners.compose import compose
from maip3o.runners.pool import Pool
from maip3o.runners.resume import continued_config, refuse_another_experiment
from tests.toy_run import InlineWorker, final_state, toy_config, train_inline

CONF = str(Path(__file__).parent / "conf")
FIRST = ["+scenario=toy", "algo=mappo", "total_episodes=4", "episodes_per_iteration=4", "algo.lr=0.002", "seed=5"]
FIRST += ["evaluation.episodes=1", "logger.quiet=true", "logger.tensorboard=false", "num_workers=1", "torch_threads=1"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run as the command line leaves it."""
    directory = tmp_path_factory.mktemp("run")
    (directory / ".hydra").mkdir()
    (directory / ".hydra" / "overrides.yaml").write_text(yaml.safe_dump(FIRST))
    train_inline(compose(FIRST, CONF)[0], directory)
    return directory


def test_goes_on_with_its_own_config(directory: Path) -> None:
    config = continued_config(directory, ["total_episodes=8"], CONF)
    assert (config.total_episodes, config.seed, config.algo.name, config.algo.lr) == (8, 5, "mappo", 0.002)


def test_saying_the_same_again_changes_nothing(directory: Path) -> None:
    same = continued_config(directory, ["+scenario=toy", "algo=mappo", "algo.lr=0.002", "seed=5"], CONF)
    assert same == continued_config(directory, [], CONF)


def test_how_it_is_computed_and_watched_may_change(directory: Path) -> None:
    config = continued_config(directory, ["runner=ray", "num_workers=3", "evaluation.episodes=3"], CONF)
    assert (config.runner.name, config.num_workers, config.evaluation.episodes) == ("ray", 3, 3)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("+scenario=intersection", "scenario."),
        ("algo=maip3o", "algo."),
        ("algo.lr=0.1", "algo.lr"),
        ("model.memory_size=7", "model.memory_size"),
        ("seed=6", "seed"),
        ("episodes_per_iteration=2", "episodes_per_iteration"),
        ("constraints.termination.limit=0.3", "constraints.termination.limit"),
        ("+constraints.speed.limit=0.3", "constraints.speed.limit"),
        ("scenario.horizon=30", "scenario.horizon"),
        ("algo.nonsense=1", "unknown key"),
        ("total_episodes=6", "multiple"),
    ],
)
def test_another_experiment_is_refused(directory: Path, override: str, key: str) -> None:
    with pytest.raises(UserError, match=key) as refused:
        continued_config(directory, [override], CONF)
    assert "\n" not in str(refused.value)


@pytest.fixture(params=["another --config-dir", "from Python", "no .hydra at all"])
def without_first_line(request: pytest.FixtureRequest, directory: Path, tmp_path: Path) -> Path:
    """The same run where its first command line says nothing."""
    copy = tmp_path / "copy"
    if request.param == "from Python":
        train_inline(compose(FIRST, CONF)[0], copy)
        assert yaml.safe_load((copy / ".hydra" / "config.yaml").read_text())["algo"]["lr"] == 0.002
    else:
        shutil.copytree(directory, copy)
    if request.param == "no .hydra at all":
        shutil.rmtree(copy / ".hydra")
    return copy


def test_goes_on_without_its_first_command_line(without_first_line: Path) -> None:
    overrides = ["total_episodes=2000", "algo.lr=0.002", "runner=ray", "logger.quiet=false"]
    config = continued_config(without_first_line, overrides, None)
    assert (config.total_episodes, config.seed, config.algo.lr, config.scenario.world) == (2000, 5, 0.002, "toy")
    assert (config.runner.name, config.logger.quiet) == ("ray", False)
    for override, key in {
        "algo.lr=0.1": "algo.lr",
        "algo=maip3o": "algo.",
        "+scenario=intersection": "scenario.",
        "total_episodes=6": "multiple",
        "total_episodes=x": "total_episodes",
        "num_worker=2": "did you mean num_workers",
        "+constraints.speed.limit=0.3": "constraints.speed.limit",
        "~constraints.termination": "constraints",
        "seed=5,6": "seed",
    }.items():
        with pytest.raises(UserError, match=key) as refused:
            continued_config(without_first_line, [override], None)
        assert "\n" not in str(refused.value)


def test_printed_command_goes_on_whatever_the_first_one_was(without_first_line: Path) -> None:
    with patch.object(loop, "make_pool", lambda runner, num_workers: Pool(InlineWorker, 1, runner)):
        train.resume([f"resume={without_first_line}", "total_episodes=8"], None, multirun=False)
    assert checkpoint.load(without_first_line / "checkpoints" / "last.pt").counters["episodes"] == 8
    assert yaml.safe_load((without_first_line / ".hydra" / "config.yaml").read_text())["total_episodes"] == 8


def test_another_length_is_another_run_unless_it_is_resumed(tmp_path: Path) -> None:
    train_inline(compose(FIRST, CONF)[0], tmp_path)
    with pytest.raises(UserError, match=r"total_episodes=8: the run in .* has 4; .* resume="):
        train_inline(compose([*FIRST, "total_episodes=8"], CONF)[0], tmp_path)
    with patch.object(loop, "make_pool", lambda runner, num_workers: Pool(InlineWorker, 1, runner)):
        train.resume([f"resume={tmp_path}", "total_episodes=8"], CONF, multirun=False)
    train_inline(compose(FIRST, CONF)[0], tmp_path)  # the first command again: finished
    assert checkpoint.load(tmp_path / "checkpoints" / "last.pt").counters["episodes"] == 8


def test_constraints_in_another_order_are_refused(tmp_path: Path) -> None:
    added = ["+constraints.crash.limit=0.2", "+constraints.off_road.limit=0.3"]
    old, new = (compose(["+scenario=intersection", *texts], CONF)[0] for texts in (added, reversed(added)))
    refuse_another_experiment(old, old, tmp_path)
    with pytest.raises(UserError, match="has them in the order termination, crash, off_road"):
        refuse_another_experiment(old, new, tmp_path)


def test_not_a_run_directory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run directory"):
        continued_config(tmp_path, [], CONF)
    with pytest.raises(UserError, match="no such run directory"):
        continued_config(tmp_path / "nowhere", [], CONF)


def test_damaged_checkpoint_is_named(directory: Path, tmp_path: Path) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text(yaml.safe_dump(FIRST))
    (tmp_path / "checkpoints").mkdir()
    whole = (directory / "checkpoints" / "last.pt").read_bytes()
    (tmp_path / "checkpoints" / "last.pt").write_bytes(whole[:1000])
    with pytest.raises(UserError, match="damaged"):
        continued_config(tmp_path, [], CONF)


def test_a_damaged_last_checkpoint_is_put_aside_for_the_newest_intact_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = toy_config(total_episodes=12)
    train_inline(config, tmp_path / "whole")
    train_inline(config, tmp_path / "torn")
    folder = tmp_path / "torn" / "checkpoints"
    (folder / "last.pt").write_bytes((folder / "last.pt").read_bytes()[:1000])
    capsys.readouterr()
    train_inline(config, tmp_path / "torn")
    assert (
        "last.pt is damaged, kept as last.pt.damaged: going on from previous.pt, episode 8" in capsys.readouterr().err
    )
    assert (folder / "last.pt.damaged").stat().st_size == 1000
    ours, theirs = (checkpoint.load(tmp_path / name / "checkpoints" / "last.pt") for name in ("whole", "torn"))
    for name, tensor in ours.learner["actor"].items():
        assert tensor.equal(theirs.learner["actor"][name])


@pytest.mark.parametrize("method", METHODS)
def test_every_algorithm_goes_on_with_all_its_state(method: str, tmp_path: Path) -> None:
    """Multipliers, Adam's averages, PID terms: the same weights, and the same lines in the log, slopes included."""
    config = toy_config(total_episodes=12)
    config.algo.method = method
    train_inline(config, tmp_path / "whole")
    train_inline(replace(config, total_episodes=8), tmp_path / "halved")
    train_inline(config, tmp_path / "halved", prolong=True)
    assert final_state(tmp_path / "halved") == final_state(tmp_path / "whole")
    assert logged(tmp_path / "halved") == logged(tmp_path / "whole")


def logged(directory: Path) -> list[dict[str, float]]:
    """The lines of the iterations, without the clock."""
    records = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    lines = [record for record in records if record["kind"] == "iteration"]
    return [{key: value for key, value in line.items() if "second" not in key} for line in lines]


def test_command_goes_on_and_remembers_the_new_length(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "make_pool", lambda runner, num_workers: Pool(InlineWorker, 1, runner))
    train.resume([f"resume={directory}", "total_episodes=8"], CONF, multirun=False)
    assert checkpoint.load(directory / "checkpoints" / "last.pt").counters["episodes"] == 8
    saved = yaml.safe_load((directory / ".hydra" / "config.yaml").read_text())
    assert (saved["total_episodes"], saved["algo"]["lr"]) == (8, 0.002)
    assert continued_config(directory, [], CONF).total_episodes == 8
    assert "going on at episode 4" in (directory / "train.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["total_episodes=0"], "total_episodes=0"),
        (["hydra.run.dir=elsewhere"], "hydra.run.dir=elsewhere: not with resume="),
        (["+experiment=smoke"], "experiment=smoke: not with resume="),
        (["resume=elsewhere"], "resume=elsewhere: one run goes on at a time"),
    ],
)
def test_what_makes_no_sense_with_it(directory: Path, arguments: list[str], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        train.resume([f"resume={directory}", *arguments], CONF, multirun=False)


def test_fewer_episodes_than_there_are_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    train_inline(compose([*FIRST, "total_episodes=8"], CONF)[0], tmp_path)
    before = (tmp_path / ".hydra" / "config.yaml").read_bytes()
    with pytest.raises(UserError, match=r"total_episodes=4: the run in .* has 8 behind it already"):
        train.resume([f"resume={tmp_path}", "total_episodes=4"], CONF, multirun=False)
    assert (tmp_path / ".hydra" / "config.yaml").read_bytes() == before


@pytest.mark.parametrize("plus", ["", "+", "++"])
def test_with_a_plus_sign_it_is_no_new_run(plus: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(train, "resume", lambda overrides, config_dir, multirun: asked.append(overrides))
    monkeypatch.setattr("sys.argv", ["train", f"{plus}resume={directory}"])
    train.main()
    assert asked == [[f"{plus}resume={directory}"]]


def test_not_with_a_sweep(directory: Path) -> None:
    with pytest.raises(UserError, match="same command"):
        train.resume([f"resume={directory}"], CONF, multirun=True)
