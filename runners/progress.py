"""The progress line: rewritten in place in a terminal or notebook, a line now and then in a log file."""

from __future__ import annotations

import logging
import math
import re
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

LOG_FILE_INTERVAL = 30.0  # seconds between two lines where nothing can be rewritten


def format_line(
    done: int, total: int, unit: str, seconds_left: float, numbers: Mapping[str, float], kinds: Mapping[str, str]
) -> str:
    """One iteration in words: how far (in episodes or steps), how fast, how well, each constraint against its limit.

    kinds: of the costs. That of an event is a share of lives, a count is summed over the steps of a life.
    """
    parts = [f"{unit} {done}/{total} {100 * done // max(total, 1):3d}%"]
    for label, key, pattern in (
        ("", "speed/env_steps_per_second", "{:.0f} steps/s"),
        ("return", "rollout/return", "{:.1f}"),
        ("arrived", "rollout/arrived", "{:.2f}"),
    ):
        value = numbers.get(key)
        if value is not None and math.isfinite(value):
            parts.append(f"{label} {pattern.format(value)}".strip())
    for name in (key.split("/")[1] for key in numbers if re.fullmatch("constraint/[^/]+/limit", key)):
        mean, limit = (numbers[f"constraint/{name}/{part}"] for part in ("mean", "limit"))
        per = " a life" if kinds.get(name) == "count" else ""
        parts.append(f"{name} {mean:.2f}{per} (limit {limit:g})")
    if math.isfinite(seconds_left):
        parts.append(f"{clock(seconds_left)} left")
    return "  ".join(parts)


def clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class ProgressLine(logging.Handler):
    """Shows progress and, as a logging handler, messages that must not tear the line apart."""

    def __init__(self, quiet: bool = False, stream: TextIO | None = None) -> None:
        super().__init__(level=logging.WARNING if quiet else logging.INFO)
        self.quiet = quiet
        self.stream = stream or sys.stdout
        self.terminal = self.stream.isatty()
        self.live = self.terminal or _in_notebook(self.stream)
        self._shown = ""  # the text that stands on the unfinished line
        self._last_time = -math.inf

    def show(self, text: str, last: bool = False) -> None:
        """Replace the line by `text`. Without a live display: print it, but not more often than every 30 s."""
        if self.quiet:
            return
        if self.live:
            width = shutil.get_terminal_size().columns - 1 if self.terminal else len(text)
            text = text[:width]
            self._write("\r" + text + " " * max(len(self._shown) - len(text), 0))
            self._shown = text
        elif last or time.monotonic() - self._last_time >= LOG_FILE_INTERVAL:
            self._last_time = time.monotonic()
            self._write(text + "\n")

    def say(self, text: str) -> None:
        """A line of its own, above the progress line."""
        blank = "\r" + " " * len(self._shown) + "\r" if self._shown else ""
        line, self._shown = self._shown, ""
        self._write(blank + text + "\n")
        if line:
            self.show(line)

    def finish(self) -> None:
        """Leave the line standing and start a new one."""
        if self._shown:
            self._shown = ""
            self._write("\n")

    def emit(self, record: logging.LogRecord) -> None:
        self.say(
            f"{record.levelname.lower()}: {record.getMessage()}"
            if record.levelno > logging.INFO
            else record.getMessage()
        )

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # whoever was reading has gone: no reason to end a run
            self.stream.write(text)
            self.stream.flush()


def _in_notebook(stream: TextIO) -> bool:
    """IPython's kernel replaces stdout by a stream that understands a carriage return."""
    return type(stream).__module__.startswith("ipykernel")
