"""The directory of a run: can it be written, and is nobody else training in it?"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maip3o.errors import UserError


def require_writable(directory: Path, key: str | None = None) -> None:
    """Refuse a directory that cannot be made or written; `key` names the option that chose it. Leaves no trace."""
    try:
        nearest = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=nearest):  # a read-only file system does not show in the permissions
            pass
    except OSError as error:
        name = f"{key}={directory}" if key else str(directory)
        raise UserError(f"{name}: this directory cannot be written ({error.strerror}); choose another") from None


def require_free(directory: Path) -> None:
    """Refuse a directory in which a trainer could not start now. Leaves no trace."""
    require_writable(directory)
    if directory.exists():
        with only_one_trainer(directory):
            pass


@contextmanager
def only_one_trainer(directory: Path) -> Iterator[None]:
    """Hold the directory: two trainers would tear each other's files apart. The lock dies with the process."""
    require_writable(directory)
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{directory}: another process is training in this directory") from None
        except OSError:  # a network file system without locks
            pass
        yield
    finally:
        os.close(descriptor)
