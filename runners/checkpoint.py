"""Checkpoints: everything a run needs to go on, in a file that is whole at every moment and cannot run code."""

from __future__ import annotations

import io
import os
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf.errors import OmegaConfBaseException

import maip3o
from maip3o.config.schema import Config, from_dict
from maip3o.errors import RunError, UserError
from maip3o.files import second_name, write_whole

FORMAT = "maip3o checkpoint"
VERSION = 1
SHIPPED = Path(maip3o.__file__).parent / "policies"


@dataclass
class Checkpoint:
    config: Config
    learner: dict[str, Any]  # Learner.state_dict(): weights, optimisers, normalisers, schedule, generators
    counters: dict[str, Any]  # iteration, episodes, env_steps, agent_steps, seconds, metrics_bytes


def save(path: Path | str, checkpoint: Checkpoint, keep_as: Path | None = None) -> None:
    """Write `path` so that it holds the old or the new checkpoint, never a part, whatever happens meanwhile.

    The one before stays beside it as previous.pt. keep_as: a second name under which this checkpoint stays for good.
    """
    path = Path(path)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "config": asdict(checkpoint.config),
        "learner": checkpoint.learner,
        "counters": checkpoint.counters,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            second_name(path, path.with_name("previous.pt"))
        if keep_as is not None:
            second_name(write_whole(keep_as, _bytes(content)), path)
        else:
            write_whole(path, _bytes(content))
    except OSError as error:
        held = f"{path} still holds the one before" if path.exists() else "there is none before it"
        raise RunError(f"cannot write the checkpoint {path}: {error.strerror or error}; {held}") from error


def save_dump(path: Path, content: Any) -> bool:
    """Write arrays and plain containers for a later look, so that `weights_only=True` reads them; whether it worked.

    A full disk must not hide the error that is being reported.
    """
    try:
        write_whole(path, _bytes(_with_tensors(content)))
    except OSError:
        return False
    return True


def _with_tensors(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _with_tensors(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_with_tensors(value) for value in content]
    return torch.as_tensor(content) if isinstance(content, (np.ndarray, np.generic)) else content


def _bytes(content: Any) -> bytes:
    buffer = io.BytesIO()  # torch hides a full disk behind errors of its own
    torch.save(content, buffer)
    return buffer.getvalue()


def load(path: Path | str) -> Checkpoint:
    """Read a checkpoint with `weights_only=True`: a stranger's file cannot run code."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"checkpoint {path}: no such file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a foreign file: we refuse it in our own words
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds, with many lines
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"checkpoint {path}: not a checkpoint, or damaged ({first_line[:120]})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"checkpoint {path}: not a checkpoint of maip3o")
    if content.get("version") != VERSION:
        raise UserError(f"checkpoint {path}: format version {content.get('version')}, this program reads {VERSION}")
    try:
        return Checkpoint(from_dict(content["config"]), content["learner"], content["counters"])
    except OmegaConfBaseException as error:  # before KeyError: some are both
        raise UserError(f"checkpoint {path}: its config is not one of ours ({str(error).splitlines()[0]})") from None
    except KeyError as error:
        raise UserError(f"checkpoint {path}: {error} is missing") from None


def mend(directory: Path) -> None:
    """If last.pt of a run cannot be read, put the newest intact checkpoint beside it in its place, and say so.

    The damaged file stays as last.pt.damaged. Without an intact one nothing is changed: `load` will say what is wrong.
    """
    last = directory / "checkpoints" / "last.pt"
    if not last.exists() or _is_intact(last):
        return
    others = [path for path in last.parent.glob("*.pt") if path != last and _is_intact(path)]
    if not others:
        return
    newest = max(others, key=lambda path: load(path).counters["episodes"])
    os.replace(last, last.with_name("last.pt.damaged"))
    second_name(newest, last)
    print(
        f"{last} is damaged, kept as last.pt.damaged: going on from {newest.name}, "
        f"episode {load(last).counters['episodes']}",
        file=sys.stderr,
    )


def _is_intact(path: Path) -> bool:
    try:
        load(path)
    except UserError:
        return False
    return True


def find_checkpoint(name: Path | str) -> Path:
    """A checkpoint by run directory, by file, or by the name of a shipped policy."""
    path = Path(name)
    if path.is_dir():
        last = path / "checkpoints" / "last.pt"
        if not last.is_file():
            raise UserError(f"checkpoint={name}: no checkpoints/last.pt in this directory")
        return last
    if path.is_file():
        return path
    shipped = SHIPPED / f"{name}.pt"
    if shipped.is_file():
        return shipped
    names = ", ".join(sorted(file.stem for file in SHIPPED.glob("*.pt"))) or "none"
    raise UserError(f"checkpoint={name}: no run directory, file or shipped policy of this name (shipped: {names})")
