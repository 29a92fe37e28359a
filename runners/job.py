"""One job of a sweep in a process of its own: `python -m maip3o.runners.job DIRECTORY`.

The directory holds the job's config. Whatever kills the process (memory, a driver, an operator) kills this job only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from maip3o.errors import exit_on_user_error
from maip3o.runners.compose import to_config

OUTPUT = "output.log"  # what the job printed, all attempts


@dataclass(frozen=True)
class Ending:
    """How the process of a job ended."""

    state: str  # finished | refused | interrupted | failed | killed
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def execute(directory: str, cores: int, started: list[subprocess.Popen[bytes]] | None = None) -> dict[str, Any]:
    """Run the job in `directory` in a new process that uses `cores` cores; the Ending as a dictionary.

    The process is added to `started`, for whoever may have to stop it.
    """
    environment = {**os.environ, "LOKY_MAX_CPU_COUNT": str(cores), "OMP_NUM_THREADS": str(cores)}
    output = Path(directory) / OUTPUT
    with output.open("ab") as stream:
        begin = stream.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "maip3o.runners.job", directory],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        if started is not None:
            started.append(process)
        try:
            code = process.wait()
        finally:
            if process.poll() is None:  # the sweep is being stopped: let the run save itself
                process.terminate()
                process.wait()
    with output.open("rb") as stream:
        stream.seek(begin)
        return ending(code, stream.read().decode(errors="replace")).as_dict()


def ending(code: int, text: str) -> Ending:
    """What an exit code and the printed text say about the end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if code == 0:
        return Ending("finished")
    if code == 2:
        return Ending("refused", last.removeprefix("error: "))
    if code in (130, -signal.SIGINT):
        return Ending("interrupted")
    if code < 0:
        return Ending("killed", f"by {signal.Signals(-code).name}")
    return Ending("failed", last or f"exit code {code}")


def main(directory: Path) -> None:
    from maip3o.runners.run import run

    composed = OmegaConf.load(directory / ".hydra" / "config.yaml")
    assert isinstance(composed, DictConfig)
    exit_on_user_error(lambda: run(to_config(composed), directory))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
