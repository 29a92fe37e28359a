"""The Python API: light to import, the same numbers as the commands, and the examples run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from eval_policies import make_run

import maip3o
from maip3o.errors import UserError

EXAMPLES = Path(__file__).parent.parent / "examples"
CONF = str(Path(__file__).parent / "conf")
TOY = ("+scenario=toy", "total_episodes=8", "evaluation.every_episodes=4", "evaluation.episodes=2", "num_workers=1")


def test_import_is_light_and_the_names_are_functions() -> None:
    look = (
        "import sys, maip3o; heavy = {'torch', 'numpy', 'matplotlib'} & set(sys.modules); "
        "import maip3o.api; print(heavy, [callable(getattr(maip3o, name)) for name in maip3o.__all__])"
    )
    printed = subprocess.check_output([sys.executable, "-c", look], text=True)
    assert printed.split(maxsplit=1) == ["set()", f"{[True] * len(maip3o.__all__)}\n"]


def test_training_returns_a_run_with_metrics_and_a_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = maip3o.train(*TOY, config_dir=CONF)
    assert run.directory.is_dir()
    assert run.metrics["episodes"].tolist() == [2, 4, 6, 8]
    assert np.isfinite(run.metrics["rollout/return"]).all()
    assert np.isfinite(run.metrics["evaluation/full/return"]).tolist() == [False, True, False, True]
    assert run.policy.act(np.zeros((3, 3))).shape == (3, 2)
    again = maip3o.train(*TOY, config_dir=CONF)
    assert again.directory == run.directory
    assert "finished before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: maip3o.train("+scenario=moon"), "no such scenario"),
        (lambda: maip3o.train("resume=somewhere"), "resume="),
        (lambda: maip3o.load_policy("nobody"), "shipped"),
        (lambda: maip3o.evaluate("maip3o-intersection", episode=3), "unknown option 'episode'"),
        (lambda: maip3o.evaluate("maip3o-intersection", video=True), "unknown option 'video'"),
        (lambda: maip3o.load_policy("maip3o-intersection").act(np.zeros((2, 7))), "reads 91 numbers each"),
    ],
)
def test_mistakes_are_one_line(call: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        call()  # type: ignore[operator]


def test_memory_belongs_to_an_agent_until_reset() -> None:
    policy = maip3o.load_policy("maip3o-intersection")
    seen = {name: np.full(91, value, np.float32) for name, value in (("a", 0.2), ("b", 0.7))}
    first = policy.act(seen, deterministic=True)
    second = policy.act({"b": seen["b"]}, deterministic=True)
    assert not np.array_equal(first["b"], second["b"])  # it remembers the step before
    policy.reset()
    assert np.array_equal(policy.act({"b": seen["b"]}, deterministic=True)["b"], first["b"])
    policy.reset()
    assert np.array_equal(policy.act(seen["b"], deterministic=True), first["b"])
    assert policy.act({}) == {}


@pytest.mark.simulator
def test_acting_step_by_step_is_the_evaluated_episode(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", num_agents=4, horizon=40)
    card = maip3o.evaluate(str(folder), episodes=1, first_seed=3, protocol="full", num_workers=1)
    policy = maip3o.load_policy(folder)
    env = maip3o.make_env("intersection", num_agents=4, horizon=40, end_rule="all")
    observations, _ = env.reset(seed=3)
    policy.reset(seed=3)
    total = 0.0
    while env.agents:
        observations, rewards, *_ = env.step(policy.act({agent: observations[agent] for agent in env.agents}))
        total += sum(rewards.values())
    env.close()
    assert card["full"]["figures"]["return"]["mean"] == pytest.approx(total, abs=1e-3)


@pytest.mark.simulator
@pytest.mark.slow
def test_the_notebook_shows_a_car_driving(tmp_path: Path) -> None:
    notebook = json.loads((EXAMPLES / "drive.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    assert len(cells[0].splitlines()) == 10
    film = cells[0].splitlines()[-1]
    cells[0] = cells[0].replace(film, f"shown = {film}")
    script = "\n".join([*cells, "print(len(shown._repr_html_()))"])
    printed = subprocess.check_output([sys.executable, "-c", script], cwd=tmp_path, text=True)
    assert int(printed.splitlines()[-1]) > 50_000  # the film itself stands in the page


@pytest.mark.simulator
@pytest.mark.slow
def test_the_script_drives_and_films(tmp_path: Path) -> None:
    make_run(tmp_path / "run", num_agents=3, horizon=30)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "drive.py"), "run", "2", "film.mp4"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "run, seed 2: return " in done.stdout
    assert (tmp_path / "film.mp4").stat().st_size > 5000
