"""The command itself, in this process: what it refuses, with which code, and what it leaves alone."""

import sys
from pathlib import Path

import pytest

from maip3o.runners import command as train
from maip3o.runners.directory import only_one_trainer
from tests.test_config_bad_input import BAD, SCENARIO

CONF = str(Path(__file__).parent / "conf")
TOY = ["--config-dir", CONF, "+scenario=toy"]


def refused(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which the command is refused."""
    monkeypatch.setattr(sys, "argv", ["train", *arguments])
    with pytest.raises(SystemExit) as ended:
        train.main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ")
    return line


def files(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("override", [override for override, _ in BAD])
def test_bad_override_ends_the_command_with_one_line_and_nothing_written(
    override: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused([SCENARIO, override], monkeypatch, capsys)
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["+scenario=nowhere"],
        [SCENARIO, "--nonsense"],
        [SCENARIO, "--config-name", "other"],
        [SCENARIO, "--config-dir", "nowhere"],
        [SCENARIO, "-m", "seed=0,-1"],
        [SCENARIO, "-m", "algo=mappo,nothing"],
        ["+experiment=smoke"],
        ["-m", "+experiment=smok"],
        ["resume=nowhere"],
        ["++resume=nowhere"],
        ["resume="],
        ["resume=nowhere", "hydra.run.dir=elsewhere"],
        ["-m", "resume=nowhere"],
        [*TOY, "init=maip3o-intersection"],
        [SCENARIO, "~seed"],
        [SCENARIO, "~algo"],
    ],
    ids=" ".join,
)
def test_bad_command_ends_with_one_line_and_nothing_written(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(arguments, monkeypatch, capsys)
    assert files(tmp_path) == {}


def test_second_trainer_in_a_directory_leaves_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text("- of the first\n")
    before = files(tmp_path)
    with only_one_trainer(tmp_path):
        line = refused([*TOY, "logger.quiet=true", f"hydra.run.dir={tmp_path}"], monkeypatch, capsys)
    assert "another process is training" in line
    assert files(tmp_path) == before


def test_job_of_a_sweep_leaves_a_running_one_alone(tmp_path: Path) -> None:
    from maip3o.runners.sweep import prepare
    from tests.test_sweep_jobs import composed

    config, _ = composed(["+scenario=intersection"])
    with only_one_trainer(tmp_path / "job"):
        job = prepare(0, [], config, tmp_path, "job")
    assert (job.state, list((tmp_path / "job").iterdir())) == ("refused", [])
    assert "another process is training" in job.message


@pytest.mark.parametrize("flags", [["hydra.run.dir="], ["-m", "hydra.sweep.dir="]])
def test_directory_that_cannot_be_written(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    for directory, reason in {
        "/proc/nowhere/run": "No such file",
        "file": "Not a dir",
        "file/run": "Not a dir",
    }.items():
        line = refused([*TOY, *flags[:-1], flags[-1] + directory], monkeypatch, capsys)
        assert f"{directory}: this directory cannot be written ({reason}" in line
    assert files(tmp_path) == {str(tmp_path / "file"): b"in the way"}
