"""Whole runs on the toy environment: same bytes on any number of workers and after any interruption, nothing lost."""

import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from maip3o.algo.learner import Learner, NonFiniteError
from maip3o.data.episode import Episode
from maip3o.envs.toy import ToyEnv
from maip3o.errors import RunError, UserError
from maip3o.runners import checkpoint, loop
from maip3o.runners.directory import only_one_trainer
from maip3o.runners.local_worker import LocalWorker
from maip3o.runners.pool import Pool
from maip3o.runners.run import run
from maip3o.runners.seeds import training_seeds
from tests.toy_run import InlineWorker, final_state, processes_of, toy_config, toy_job, train_inline

CONF = str(Path(__file__).parent / "conf")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 12 episodes on one worker process."""
    directory = tmp_path_factory.mktemp("undisturbed")
    run(toy_config(), directory)
    return directory


def records(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def test_run_directory_holds_what_it_should(undisturbed: Path) -> None:
    kinds = [(record["kind"], record["episodes"]) for record in records(undisturbed)]
    iterations = [("iteration", 4), ("iteration", 8), ("evaluation", 8), ("iteration", 12), ("evaluation", 12)]
    assert kinds == iterations
    assert json.loads((undisturbed / "status.json").read_text()) == {"state": "finished", "episodes": 12, "message": ""}
    versions = json.loads((undisturbed / "versions.json").read_text())
    assert versions["packages"]["torch"]
    assert {path.name for path in (undisturbed / "checkpoints").iterdir()} == {
        "last.pt",
        "previous.pt",
        "episode_12.pt",
    }
    for record in records(undisturbed):
        assert {"iteration", "episodes", "env_steps", "agent_steps", "seconds"} <= record.keys()


@pytest.mark.parametrize("num_workers", [2, 3])
def test_same_bytes_on_any_number_of_workers(undisturbed: Path, tmp_path: Path, num_workers: int) -> None:
    with processes_of(LocalWorker) as processes:
        run(toy_config(num_workers=num_workers), tmp_path)
    assert len(processes - {os.getpid()}) == num_workers
    assert final_state(tmp_path) == final_state(undisturbed)


def test_a_run_without_processes_leaves_the_next_one_its_own(tmp_path: Path) -> None:
    train_inline(toy_config(total_episodes=4), tmp_path / "inline")
    with processes_of(LocalWorker) as processes:
        run(toy_config(total_episodes=4), tmp_path / "local")
    assert len(processes - {os.getpid()}) == 1


def test_same_bytes_after_a_resume_and_no_duplicate_lines(undisturbed: Path, tmp_path: Path) -> None:
    train_inline(toy_config(total_episodes=8), tmp_path)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "iteration", "episodes": 12}\n{"half a li')  # a kill after the checkpoint
    train_inline(toy_config(), tmp_path, prolong=True)
    assert final_state(tmp_path) == final_state(undisturbed)
    lines = [(record["kind"], record["episodes"]) for record in records(tmp_path)]
    assert lines == [(record["kind"], record["episodes"]) for record in records(undisturbed)]


def test_finished_run_is_not_run_again(undisturbed: Path) -> None:
    before = (undisturbed / "checkpoints" / "last.pt").stat()
    result = run(toy_config(), undisturbed)
    assert (undisturbed / "checkpoints" / "last.pt").stat().st_mtime_ns == before.st_mtime_ns
    assert result == records(undisturbed)[-1]["evaluation/full/return"]


def test_evaluation_does_not_disturb_training(undisturbed: Path, tmp_path: Path) -> None:
    config = toy_config()
    config.evaluation.every_episodes = 0
    train_inline(config, tmp_path)
    mine, other = final_state(tmp_path), final_state(undisturbed)
    assert {k: v for k, v in mine.items() if "result" not in k} == {k: v for k, v in other.items() if "result" not in k}


@pytest.mark.slow
def test_same_bytes_after_twenty_kills(tmp_path: Path) -> None:
    """kill -9 of the trainer at random moments; last.pt can be loaded after each."""
    config = toy_config(total_episodes=600)  # more than twenty trainers can do, also on a fast machine
    config.algo.method = "cppo_pid"  # it has a memory of its own
    config.evaluation.every_episodes = 40
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.toy_warm"])
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    undisturbed = context.Process(target=train_inline, args=(config, calm))
    undisturbed.start()
    undisturbed.join(120)
    assert undisturbed.exitcode == 0
    moments = random.Random(0)
    last = rough / "checkpoints" / "last.pt"
    for _ in range(20):
        trainer = context.Process(target=train_inline, args=(config, rough))
        seen = last.stat().st_mtime_ns if last.exists() else 0
        trainer.start()
        while trainer.is_alive() and (last.stat().st_mtime_ns if last.exists() else 0) == seen:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, 0.08))
        trainer.kill()
        trainer.join()
        assert trainer.exitcode == -signal.SIGKILL
        checkpoint.load(last)
        assert json.loads((rough / "status.json").read_text())["state"] == "running"
    final = context.Process(target=train_inline, args=(config, rough))
    final.start()
    final.join(120)
    assert final.exitcode == 0
    assert final_state(rough) == final_state(calm)
    assert [r["episodes"] for r in records(rough)] == [r["episodes"] for r in records(calm)]


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    command = [sys.executable, "-m", "maip3o.train", "--config-dir", CONF, "+scenario=toy", "total_episodes=4000"]
    command += ["num_workers=1", f"hydra.run.dir={directory}", "logger.tensorboard=false"]
    trainer = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts what it runs in the background with Ctrl-C ignored, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    metrics = directory / "metrics.jsonl"
    while trainer.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= 2):
        time.sleep(0.05)
    os.killpg(trainer.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    output, errors = trainer.communicate(timeout=30)
    assert trainer.returncode == 1
    assert f"python -m maip3o.train resume={directory}" in output
    assert "Traceback" not in output + errors
    status = json.loads((directory / "status.json").read_text())
    assert status["state"] == "interrupted"
    assert checkpoint.load(directory / "checkpoints" / "last.pt").counters["episodes"] == status["episodes"] >= 2


def test_another_experiment_in_the_same_directory_is_refused(undisturbed: Path) -> None:
    for name, changed in {
        "seed": toy_config(seed=1),
        "episodes_per_iteration": toy_config(episodes_per_iteration=2),
        "scenario.horizon": toy_config(scenario=replace(toy_config().scenario, horizon=30)),
        "algo.lr": toy_config(algo=replace(toy_config().algo, lr=1.0)),
        "model.memory_size": toy_config(model=replace(toy_config().model, memory_size=8)),
        "constraints.termination.limit": toy_config(
            constraints={"termination": replace(toy_config().constraints["termination"], limit=0.2)}
        ),
    }.items():
        with pytest.raises(UserError, match=name):
            run(changed, undisturbed)


def test_a_prolonged_run_follows_the_schedule_of_its_new_length(tmp_path: Path) -> None:
    algo = replace(toy_config().algo, lr=1e-3, lr_schedule="linear")
    train_inline(toy_config(algo=algo, total_episodes=4), tmp_path)
    train_inline(toy_config(algo=algo, total_episodes=8), tmp_path, prolong=True)
    rates = [line["policy/lr"] for line in records(tmp_path) if line["kind"] == "iteration"]
    assert rates == pytest.approx([1e-3, 0.5e-3])


def test_a_run_can_start_with_the_networks_of_another(undisturbed: Path, tmp_path: Path) -> None:
    algo = replace(toy_config().algo, lr=1e-12, critic_lr=1e-12)
    train_inline(toy_config(algo=algo, seed=7, total_episodes=4, init=str(undisturbed)), tmp_path / "tuned")
    train_inline(toy_config(algo=algo, seed=7, total_episodes=4), tmp_path / "fresh")
    paths = [
        directory / "checkpoints" / "last.pt" for directory in (undisturbed, tmp_path / "tuned", tmp_path / "fresh")
    ]
    first, tuned, fresh = (checkpoint.load(path).learner["actor"] for path in paths)
    for name, tensor in first.items():
        torch.testing.assert_close(tuned[name], tensor, msg=name)
    assert any(not torch.allclose(tuned[name], fresh[name]) for name in tuned)


def test_two_trainers_in_one_directory_are_refused(tmp_path: Path) -> None:
    with only_one_trainer(tmp_path), pytest.raises(UserError, match="another process is training"):
        run(toy_config(), tmp_path)


def test_full_disk_leaves_the_checkpoint_before_intact(tmp_path: Path) -> None:
    train_inline(toy_config(total_episodes=4), tmp_path)
    last = tmp_path / "checkpoints" / "last.pt"
    before = last.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (len(before) // 2, hard)
    )  # the kernel refuses to write more, as on a full disk
    try:
        with pytest.raises(RunError, match=r"cannot write the checkpoint .*last\.pt still holds the one before"):
            train_inline(toy_config(), tmp_path, prolong=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert last.read_bytes() == before
    assert not list(last.parent.glob(".*"))
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "failed"
    train_inline(toy_config(), tmp_path, prolong=True)


def test_update_gone_wrong_stops_with_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_inline(toy_config(total_episodes=4), tmp_path)
    real = Learner.load_state_dict

    def poisoned(self: Learner, state: dict[str, object]) -> None:
        real(self, state)
        with torch.no_grad():
            next(iter(self.critics["value"].parameters())).fill_(float("inf"))

    monkeypatch.setattr(Learner, "load_state_dict", poisoned)
    with pytest.raises(RunError, match=r"in iteration 2: .*not_finite\.pt holds what went in"):
        train_inline(toy_config(), tmp_path, prolong=True)
    assert checkpoint.load(tmp_path / "checkpoints" / "last.pt").counters["episodes"] == 4

    monkeypatch.undo()
    dump = torch.load(tmp_path / "not_finite.pt", weights_only=True)
    learner = Learner(toy_config(), ToyEnv().spec)
    learner.load_state_dict(dump["learner"])
    episodes = [
        Episode(**{name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in stored.items()})
        for stored in dump["episodes"]
    ]
    for episode in episodes:
        episode.world = ToyEnv().spec
    with pytest.raises(NonFiniteError) as again:
        learner.update(episodes, dump["progress"])
    assert again.value.tensor == dump["tensor"]


def test_no_evidence_is_claimed_that_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Learner, episodes: object, progress: float) -> None:
        raise NonFiniteError("batch.reward")

    monkeypatch.setattr(Learner, "update", refuse)
    (tmp_path / "not_finite.pt").mkdir()
    with pytest.raises(RunError, match=r"iteration 1: .* last\.pt is from before it$"):
        train_inline(toy_config(), tmp_path)


def test_episodes_of_another_policy_end_the_run_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Learner.update

    def tampered(self: Learner, episodes: list[Episode], progress: float) -> dict[str, float]:
        return real(self, [replace(episode, log_prob=episode.log_prob + 1) for episode in episodes], progress)

    monkeypatch.setattr(Learner, "update", tampered)
    with pytest.raises(RunError, match=r"^iteration 1: replayed and stored .* last\.pt is from before it$"):
        train_inline(toy_config(), tmp_path)
    assert "RuntimeError: replayed and stored" in (tmp_path / "train.log").read_text()


def test_cars_start_together_from_half_of_the_training_on(tmp_path: Path) -> None:
    config = toy_config(start_spread=10, total_episodes=32)
    run(config, tmp_path / "one")
    lines = [record for record in records(tmp_path / "one") if record["kind"] == "iteration"]
    assert [line["rollout/start_spread"] for line in lines] == [10, 8, 5, 2, 0, 0, 0, 0]
    run(replace(config, num_workers=2), tmp_path / "two")
    assert final_state(tmp_path / "two") == final_state(tmp_path / "one"), (
        "the waits depend on the seed alone, not on the worker"
    )
    run(toy_config(total_episodes=32), tmp_path / "together")
    others = [record for record in records(tmp_path / "together") if record["kind"] == "iteration"]
    assert "rollout/start_spread" not in others[0]
    assert lines[0]["agent_steps"] < others[0]["agent_steps"], "who waits does not act"  # type: ignore[operator]


def test_a_budget_in_steps_takes_whole_episodes_in_seed_order(tmp_path: Path) -> None:
    config = toy_config()
    config.total_steps, config.steps_per_iteration, config.scenario.settings = 90, 45, {"hazard": 0.4}
    train_inline(config, tmp_path)
    counters = checkpoint.load(tmp_path / "checkpoints" / "last.pt").counters
    assert counters["iteration"] == 2
    assert 90 <= counters["env_steps"] < 90 + 2 * config.scenario.horizon
    assert counters["episodes"] > 4  # some ended before the horizon of 20 steps


def test_an_iteration_of_steps_is_the_shortest_run_of_episodes_that_reaches_them() -> None:
    config = toy_config(total_steps=1000, steps_per_iteration=100)
    job = toy_job(hazard=0.9)  # they end after a few of their twenty steps
    episodes = loop._sample(config, Pool(InlineWorker, 1, config.runner), job, first=3)
    lengths = [episode.length for episode in episodes]
    assert len(lengths) > 100 // 20, "one round is not enough"
    assert sum(lengths) >= 100 > sum(lengths[:-1])
    assert [episode.seed for episode in episodes] == training_seeds(config.seed, 3, len(lengths))
