"""Compilation of the kernels: once, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

_kernels: list[Any] = []


def kernel(function: Callable[..., Any]) -> Any:
    """Compile with numba and keep the machine code on disk, beside the source or in the user's cache folder.

    No fastmath: a kernel must round as CPython does, operation by operation.
    """
    try:
        compiled = numba.njit(cache=True)(function)
    except RuntimeError:  # numba found no folder that it may write to
        compiled = numba.njit(function)
    _kernels.append(compiled)
    return compiled


def cached() -> bool:
    """Whether every kernel has machine code on disk already."""
    try:
        return all(len(k._cache._cache_file._load_index()) > 0 for k in _kernels)
    except (AttributeError, OSError, EOFError, ImportError):  # no cache, or another numba's internals
        return False
