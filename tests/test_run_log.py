"""Console, metrics and TensorBoard of a run."""

import io
import json
import logging
import re
import sys
import types
from pathlib import Path

import pytest

from maip3o.data.statistics import tabulate
from maip3o.envs.toy import ToyEnv
from maip3o.errors import RunError
from maip3o.runners.board import layout, tag
from maip3o.runners.last_words import last_words
from maip3o.runners.log import RunLog
from maip3o.runners.loop import INITIAL_COUNTERS
from maip3o.runners.progress import ProgressLine, format_line
from maip3o.runners.rollout import rollout
from tests.toy_run import toy_actor, toy_config, toy_job

NUMBERS = {
    "speed/env_steps_per_second": 812.4,
    "rollout/return": 495.06,
    "rollout/arrived": 0.34,
    "constraint/termination/mean": 0.45,
    "constraint/termination/limit": 0.1,
    "constraint/speed/mean": 31.5,
    "constraint/speed/limit": 25.0,
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_line_tells_how_far_how_fast_how_well_how_safe() -> None:
    line = format_line(400, 2000, "episode", 3725.0, NUMBERS, {"termination": "event", "speed": "count"})
    assert line == (
        "episode 400/2000  20%  812 steps/s  return 495.1  arrived 0.34  termination 0.45 (limit 0.1)  "
        "speed 31.50 a life (limit 25)  1:02:05 left"
    )


def test_a_budget_in_steps_is_shown_in_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = toy_config()
    config.total_steps, config.steps_per_iteration, config.logger.quiet = 1000, 100, False
    with RunLog(tmp_path, config, INITIAL_COUNTERS) as log:
        log.iteration({**INITIAL_COUNTERS, "env_steps": 400}, NUMBERS)
    assert "step 400/1000  40%" in capsys.readouterr().out


def test_line_without_numbers() -> None:
    line = format_line(0, 2000, "episode", float("nan"), {"rollout/return": float("nan")}, {})
    assert line == "episode 0/2000   0%"


def test_there_is_no_time_left_before_an_iteration_after_the_one_that_compiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = toy_config()
    config.total_episodes, config.logger.quiet = 100, False
    clock = iter([1000.0, 1010.0, 1020.0])  # the first iteration ended at 1000
    monkeypatch.setattr("maip3o.runners.log.time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    with RunLog(tmp_path, config, INITIAL_COUNTERS) as log:
        log.progress.live = log.progress.terminal = True
        for episodes in (2, 4, 6):
            log.iteration({**INITIAL_COUNTERS, "episodes": episodes}, {})
    first, second, third = [part for part in capsys.readouterr().out.split("\r") if part.startswith("episode")]
    assert "left" not in first
    assert second.split("%")[1].strip() == "8:00 left"
    assert third.split("%")[1].strip().startswith("7:50 left")


def test_terminal_rewrites_one_line_and_messages_stand_above_it() -> None:
    terminal = Terminal()
    progress = ProgressLine(stream=terminal)
    progress.show("a long first line")
    progress.show("short")
    progress.emit(logging.LogRecord("x", logging.WARNING, "", 0, "worker %d replaced", (1,), None))
    progress.finish()
    screen = [line.split("\r")[-1].rstrip() for line in terminal.getvalue().split("\n")]
    assert screen == ["warning: worker 1 replaced", "short", ""]


def test_terminal_line_is_cut_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    ProgressLine(stream=terminal).show("x" * 100)
    assert terminal.getvalue() == "\r" + "x" * 39


def test_log_file_gets_whole_lines_now_and_then() -> None:
    file = io.StringIO()
    progress = ProgressLine(stream=file)
    for i in range(100):
        progress.show(f"line {i}", last=i == 99)
    assert file.getvalue() == "line 0\nline 99\n"


def test_notebook_rewrites_its_line() -> None:
    stream_class = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    stream = stream_class()
    progress = ProgressLine(stream=stream)
    progress.show("one")
    progress.show("two")
    assert stream.getvalue() == "\rone\rtwo"


def test_quiet_prints_warnings_only(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine(quiet=True)
    progress.show("nothing")
    assert capsys.readouterr().out == ""
    assert progress.level == logging.WARNING


def test_metrics_are_flat_json_with_null_for_nan(tmp_path: Path) -> None:
    counters = {**INITIAL_COUNTERS, "episodes": 4, "iteration": 1}
    with RunLog(tmp_path, toy_config(), INITIAL_COUNTERS) as log:
        log.iteration(counters, {"loss/policy": 1.5, "critic/explained_variance": float("nan")})
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["kind"] == "iteration"
    assert (record["episodes"], record["loss/policy"], record["critic/explained_variance"]) == (4, 1.5, None)


def test_metrics_that_somebody_deleted_begin_anew(tmp_path: Path) -> None:
    with RunLog(tmp_path, toy_config(), {**INITIAL_COUNTERS, "episodes": 4, "metrics_bytes": 1000}) as log:
        log.iteration({**INITIAL_COUNTERS, "episodes": 8}, {})
        assert log.metrics_bytes == (tmp_path / "metrics.jsonl").stat().st_size
    (line,) = (tmp_path / "metrics.jsonl").read_bytes().splitlines()
    assert json.loads(line)["episodes"] == 8


def test_tensorboard_events_are_grouped_by_name_over_episodes(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = toy_config()
    config.logger.tensorboard = True
    for start in (0, 4):  # the second session goes on at 4 and repeats 8
        counters = {**INITIAL_COUNTERS, "episodes": start, "metrics_bytes": 0}
        with RunLog(tmp_path, config, counters) as log:
            for episodes in (start + 4, start + 8):
                log.iteration({**INITIAL_COUNTERS, "episodes": episodes}, {"rollout/return": float(start + episodes)})
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("reward/return/training")] == [4, 8, 12]
    assert events.PluginTagToContent("custom_scalars")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("rollout/return", "reward/return/training"),
        ("evaluation/full/arrived", "reward/arrived/full"),
        ("evaluation/first/cost/termination", "constraints/termination/cost_first"),
        ("rollout/cost/termination", "constraints/termination/cost_training"),
        ("constraint/termination/mean", "constraints/termination/mean"),
        ("critic/termination/explained_variance", "critics/termination/explained_variance"),
        ("loss/policy", "policy/loss"),
        ("loss/cost_termination", "critics/loss_cost_termination"),
        ("bound/theorem2", "policy/theorem2"),
        ("policy/kl", "policy/kl"),
        ("speed/update_seconds", "speed/update_seconds"),
    ],
)
def test_tensorboard_has_five_groups(name: str, shown: str) -> None:
    assert tag(name) == shown


def test_each_estimate_of_a_cost_stands_in_one_chart_with_its_limit() -> None:
    chart = layout(["termination"], "uncensored")["constraints"]["termination"]
    shown = [tag(f"constraint/termination/{part}") for part in ("uncensored", "limit")]
    assert all(any(re.fullmatch(pattern, name) for pattern in chart[1]) for name in shown)
    assert layout([], "mean").keys() == {"reward"}


def test_a_run_ends_with_its_constraints_where_things_are_and_what_to_type(tmp_path: Path) -> None:
    config = toy_config()
    lines = last_words(tmp_path / "a run", config, None)
    assert lines[-2:] == [
        f"next: python -m maip3o.evaluate 'checkpoint={tmp_path}/a run'",
        f"      tensorboard --logdir '{tmp_path}/a run'",
    ]
    config.scenario.world = "driving"  # which can be filmed
    assert last_words(tmp_path, config, None)[-2].endswith(" video=true")
    table = tabulate([rollout(ToyEnv(), toy_actor(toy_job()), seed, deterministic=False) for seed in range(4)])
    text = "\n".join(last_words(tmp_path, config, table))
    assert "last evaluation, 4 held-out episodes" in text
    assert re.search(r"termination: \d+ % \[\d+, \d+\] of lives, limit 10 %", text)
    assert re.search(r"failed \d+ % \[", text)


def test_how_a_run_ended_is_in_status(tmp_path: Path) -> None:
    def state() -> str:
        return str(json.loads((tmp_path / "status.json").read_text())["state"])

    with RunLog(tmp_path, toy_config(), INITIAL_COUNTERS):
        assert state() == "running"
    assert state() == "finished"
    with pytest.raises(RunError), RunLog(tmp_path, toy_config(), INITIAL_COUNTERS):
        raise RunError("no more")
    assert state() == "failed"
    with pytest.raises(KeyboardInterrupt), RunLog(tmp_path, toy_config(), INITIAL_COUNTERS):
        raise KeyboardInterrupt
    assert state() == "interrupted"


def test_messages_of_every_session_and_the_cause_of_a_failure_are_in_train_log(tmp_path: Path) -> None:
    with RunLog(tmp_path, toy_config(), INITIAL_COUNTERS):
        logging.getLogger("maip3o.runners.pool").warning("worker 0 replaced")
    with pytest.raises(RunError), RunLog(tmp_path, toy_config(), {**INITIAL_COUNTERS, "episodes": 4}):
        raise RunError("no more") from ZeroDivisionError("deep down")
    lines = (tmp_path / "train.log").read_text().splitlines()
    assert sum("worker 0 replaced" in line for line in lines) == 1
    assert sum("going on at episode 4" in line for line in lines) == 1
    assert "ZeroDivisionError: deep down" in lines
    logging.getLogger("maip3o.runners.pool").warning("of nobody's run")
    assert "nobody" not in (tmp_path / "train.log").read_text()


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(RunError, match=r"cannot write .*metrics\.jsonl: Is a directory"):
        RunLog(tmp_path, toy_config(), INITIAL_COUNTERS)


def test_weights_and_biases_reads_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, object]] = []
    stand_in = types.SimpleNamespace(init=lambda **settings: calls.append(settings), finish=lambda: calls.append({}))
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    config = toy_config()
    config.logger.wandb_project = "cars"
    one, other = (tmp_path / folder / "toy/maip3o/default/seed0" for folder in ("runs", "runs/ablation"))
    for directory in (one, other, one):
        directory.mkdir(parents=True, exist_ok=True)
        with RunLog(directory, config, INITIAL_COUNTERS):
            pass
    ids = [call["id"] for call in calls if call]
    assert ids[0] == ids[2] != ids[1]
    assert calls[0]["project"] == "cars"
    assert calls[0]["sync_tensorboard"] is True
    assert calls[0]["resume"] == "allow"
    assert calls[1] == {}


def test_versions_of_earlier_sessions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["/somewhere/python", "-m", "maip3o.train", "+scenario=toy", "a=b c"])
    path = tmp_path / "versions.json"
    path.write_text(json.dumps({"commit": "old", "packages": {}}))
    for _ in range(2):
        with RunLog(tmp_path, toy_config(), INITIAL_COUNTERS):
            pass
    content = json.loads(path.read_text())
    assert content["earlier"] == [{"commit": "old", "packages": {}}]
    assert content["packages"]["numpy"]
    assert content["command"] == "python -m maip3o.train +scenario=toy 'a=b c'"


def test_reader_who_has_gone_does_not_end_the_run() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    ProgressLine(stream=Closed()).say("hello")
