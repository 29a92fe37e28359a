"""The search for hyper-parameters, with a trainer of formulas in place of the real one."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from maip3o.errors import UserError
from maip3o.runners import search as trials
from maip3o.runners.search import parse_space
from maip3o.tune import Search, open_study, read_command_line, requeue_interrupted, tune

optuna = pytest.importorskip("optuna")
TRAINER = """#!{python}
import json, os, sys, time
values = dict(text.split("=", 1) for text in sys.argv[1:] if "=" in text)
folder, level = values["hydra.run.dir"], float(values["algo.lr"])
if values.get("algo.epochs") == "13":
    print("error: algo.epochs=13: unlucky"); sys.exit(2)
with open(os.path.join(folder, "metrics.jsonl"), "w") as stream:
    for episodes in (100, 200, 300, 400):
        line = {{"kind": "evaluation", "episodes": episodes, "evaluation/full/return": level * episodes}}
        stream.write(json.dumps(line) + "\\n"); stream.flush()
        time.sleep({pause} if level < 0 else 0)
open(os.path.join(folder, "count"), "a").write("x")
"""


@pytest.fixture
def trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ends at 400 * lr; dies with 13 epochs; is slow when its lr is negative, so that it can be pruned."""
    path = tmp_path / "trainer"
    path.write_text(TRAINER.format(python=sys.executable, pause=1.0))
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(trials, "POLL_SECONDS", 0.02)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return tmp_path / "study"


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_the_search_finds_the_best_and_keeps_it_on_disk(trainer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = Search(parse_space(["+scenario=x", "algo.lr=0.1,0.2,0.3"]), trainer, total_episodes=400, trials=6)
    tune(search)
    best = json.loads((trainer / "best.json").read_text())
    tried = {float(row["algo.lr"]) for row in rows(trainer)}
    assert best["value"] == pytest.approx(400 * max(tried))
    assert best["overrides"][0] == "+scenario=x"
    assert f"algo.lr={max(tried)}" in capsys.readouterr().out.splitlines()[-1]


def test_the_same_command_goes_on_where_the_study_is(trainer: Path) -> None:
    space = parse_space(["algo.lr=interval(0.1,0.9)"])
    tune(Search(space, trainer, 400, trials=2))
    first = rows(trainer)
    tune(Search(space, trainer, 400, trials=2))
    assert rows(trainer) == first
    tune(Search(space, trainer, 400, trials=3))
    assert rows(trainer)[:2] == first
    assert len(rows(trainer)) == 3
    assert len({row["algo.lr"] for row in rows(trainer)}) == 3


def test_a_dead_trial_is_marked_and_the_search_goes_on(trainer: Path) -> None:
    tune(Search(parse_space(["algo.lr=0.1,0.2", "algo.epochs=2,13"]), trainer, 400, trials=8))
    states = {(row["algo.epochs"], row["state"]) for row in rows(trainer)}
    assert states == {("2", "complete"), ("13", "fail")}


def test_a_hopeless_trial_is_stopped_early(trainer: Path) -> None:
    space = parse_space(["algo.lr=0.5,-0.5"])
    study = open_study(Search(space, trainer, 400))
    for _ in range(6):
        study.enqueue_trial({"algo.lr": 0.5})
    study.enqueue_trial({"algo.lr": -0.5})
    tune(Search(space, trainer, 400, trials=7))
    last = rows(trainer)[-1]
    assert (last["state"], last["algo.lr"]) == ("pruned", "-0.5")
    assert not (Path(last["directory"]) / "count").exists()  # it was stopped, not waited for


def test_what_a_killed_search_left_is_tried_again_in_its_directory(trainer: Path) -> None:
    search = Search(parse_space(["algo.lr=interval(0.1,0.9)"]), trainer, 400, trials=1)
    study = open_study(search)
    left = study.ask()
    overrides = search.space.suggest(left)
    left.set_user_attr("directory", str(trials.trial_directory(trainer, overrides)))
    requeue_interrupted(study)
    tune(search)
    found = rows(trainer)
    assert [row["state"] for row in found] == ["fail", "complete"]
    assert found[0]["algo.lr"] == found[1]["algo.lr"]
    assert found[0]["directory"] == found[1]["directory"]


def test_values_are_drawn_as_the_command_line_says() -> None:
    space = parse_space(
        [
            "a=1",
            "algo.lr=tag(log,interval(1e-4,1e-3))",
            "algo.epochs=range(2,5)",
            "algo=maip3o,mappo",
            "b=interval(0,1)",
        ]
    )
    assert space.fixed == ("a=1",)
    study = optuna.create_study()
    for _ in range(20):
        drawn = dict(text.split("=") for text in space.suggest(study.ask()))
        assert 1e-4 <= float(drawn["algo.lr"]) <= 1e-3
        assert int(drawn["algo.epochs"]) in (2, 3, 4)
        assert drawn["algo"] in ("maip3o", "mappo")


def test_bad_input_is_one_line_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, message in (
        (["algo.lr=interval(1,2)"], "no scenario"),
        (["+scenario=intersection", "trials=0"], "trials=0"),
        (["+scenario=intersection", "algo.epoch=range(1,3)"], "algo.epochs"),
        (["+scenario=intersection", "evaluation.every_episodes=0"], "every_episodes"),
        (["+scenario=intersection", "direction=up"], "direction=up"),
        (["+scenario=intersection", "algo.lr=interval(1e-3,1e-4)"], "lower end must be below"),
        (["+scenario=intersection", "algo.epochs=range(5,5)"], "lower end must be below"),
        (["+scenario=intersection", "algo.lr=tag(log,interval(0,1))"], "must begin above 0"),
    ):
        with pytest.raises(UserError, match=message):
            read_command_line(arguments)
    assert list(tmp_path.iterdir()) == []
    search = read_command_line(["+scenario=intersection", "trials=3", "algo.epochs=2,3"])
    assert (search.trials, search.folder) == (3, Path("runs/tune/intersection_maip3o"))
    assert len(read_command_line(["+scenario=intersection"]).space.drawn) == 6


def test_what_is_set_or_without_effect_is_not_searched() -> None:
    space = read_command_line(["+scenario=intersection", "algo=mappo", "algo.lr=5e-5"]).space
    assert "algo.lr=5e-5" in space.fixed
    drawn = {override.key_or_group for override in space.drawn}
    assert drawn == {"algo.critic_lr", "algo.epochs", "algo.kl_max"}


def test_a_metric_that_is_not_measured_ends_the_search_and_spoils_no_study(trainer: Path) -> None:
    space = parse_space(["algo.lr=0.1,0.2"])
    with pytest.raises(UserError, match=r"no such thing; did you mean evaluation/full/return\?"):
        tune(Search(space, trainer, 400, trials=2, metric="evaluation/full/retrun"))
    tune(Search(space, trainer, 400, trials=2))
    assert [row["state"] for row in rows(trainer)] == ["fail", "complete", "complete"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"out=.*this directory cannot be written"):
        tune(Search(parse_space(["algo.lr=0.1,0.2"]), tmp_path / "file", 400, trials=1))


def test_another_metric_needs_another_study(trainer: Path) -> None:
    space = parse_space(["algo.lr=0.1,0.2"])
    tune(Search(space, trainer, 400, trials=1))
    with pytest.raises(UserError, match="has metric=evaluation/full/return"):
        tune(Search(space, trainer, 400, trials=1, metric="evaluation/full/arrived"))
    with pytest.raises(UserError, match="is to maximize"):
        tune(Search(space, trainer, 400, trials=1, direction="minimize"))


def test_the_command_explains_itself() -> None:
    done = subprocess.run([sys.executable, "-m", "maip3o.tune", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "trials=40" in done.stdout
