"""Checkpoints: whole or absent, readable without running code, wrong ones refused in one line."""

import os
import pickle
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from maip3o.errors import RunError, UserError
from maip3o.policy import load_policy
from maip3o.runners import checkpoint
from maip3o.runners.checkpoint import SHIPPED, Checkpoint, find_checkpoint
from tests.toy_run import toy_config


def make(episodes: int) -> Checkpoint:
    return Checkpoint(toy_config(), {"actor": {"w": torch.arange(4.0)}}, {"episodes": episodes})


def test_round_trip(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "last.pt", make(4))
    loaded = checkpoint.load(tmp_path / "last.pt")
    assert loaded.config == toy_config()
    assert torch.equal(loaded.learner["actor"]["w"], torch.arange(4.0))
    assert loaded.counters == {"episodes": 4}


def test_previous_and_kept_ones_stay(tmp_path: Path) -> None:
    last = tmp_path / "last.pt"
    checkpoint.save(last, make(4), keep_as=tmp_path / "episode_4.pt")
    checkpoint.save(last, make(8))
    names = {path.name: checkpoint.load(path).counters["episodes"] for path in tmp_path.iterdir()}
    assert names == {"last.pt": 8, "previous.pt": 4, "episode_4.pt": 4}


@pytest.mark.parametrize("call", ["replace", "link", "fsync"])
def test_a_failure_at_any_step_keeps_the_old_one(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    last = tmp_path / "last.pt"
    checkpoint.save(last, make(4))

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    monkeypatch.setattr("shutil.copyfile", fail)
    with pytest.raises(RunError, match=r"No space left on device; .* still holds the one before"):
        checkpoint.save(last, make(8))
    assert checkpoint.load(last).counters == {"episodes": 4}


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file in the way")
    with pytest.raises(RunError, match="there is none before it"):
        checkpoint.save(tmp_path / "checkpoints" / "last.pt", make(4))


class Malicious:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch owned",)


def wrong_files(directory: Path) -> dict[str, str]:
    """File name -> what the message must say."""
    checkpoint.save(directory / "good.pt", make(4))
    whole = (directory / "good.pt").read_bytes()
    (directory / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    (directory / "empty.pt").write_bytes(b"")
    (directory / "text.pt").write_text("hello")
    (directory / "pickle.pt").write_bytes(pickle.dumps(Malicious()))
    torch.save(Malicious(), directory / "malicious.pt")
    torch.save({"state_dict": {}}, directory / "foreign.pt")
    torch.save([1, 2], directory / "list.pt")
    torch.save({"format": checkpoint.FORMAT, "version": 99}, directory / "future.pt")
    head = {"format": checkpoint.FORMAT, "version": 1}
    torch.save({**head, "config": asdict(toy_config()), "learner": {}}, directory / "part.pt")
    torch.save({**head, "config": {"x": 1}}, directory / "config.pt")
    damaged = dict.fromkeys(("truncated.pt", "empty.pt", "text.pt", "pickle.pt", "malicious.pt"), "damaged")
    foreign = dict.fromkeys(("foreign.pt", "list.pt"), "not a checkpoint of maip3o")
    rest = {"future.pt": "version 99", "part.pt": "counters", "config.pt": "config", "nowhere.pt": "no such file"}
    return {**damaged, **foreign, **rest}


def test_wrong_files_are_refused_in_one_line_and_run_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, expected in wrong_files(tmp_path).items():
        with pytest.raises(UserError, match=expected) as refused:
            checkpoint.load(tmp_path / name)
        assert "\n" not in str(refused.value), name
    assert not (tmp_path / "owned").exists()


def test_find_by_directory_file_and_name(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "checkpoints" / "last.pt", make(4))
    assert find_checkpoint(tmp_path) == find_checkpoint(tmp_path / "checkpoints" / "last.pt")
    with pytest.raises(UserError, match="no run directory, file or shipped policy"):
        find_checkpoint("nothing_of_this_name")
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match=r"no checkpoints/last\.pt"):
        find_checkpoint(tmp_path / "other")


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.pt")))
def test_shipped_policies_are_what_their_names_say(name: str) -> None:
    policy = load_policy(name)
    assert name.startswith(f"{policy.config.algo.name}-")
    assert name.endswith(f"-{policy.config.scenario.name}")
    assert policy.counters["episodes"] == policy.config.total_episodes >= 2000, "trained to its end"
    assert not [key for key in checkpoint.load(policy.path).learner if "optimiser" in key], "two thirds of the file"
