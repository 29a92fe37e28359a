"""Compilation of the kernels: once, kept on disk beside the source or, where that is read-only, in the user's cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature


def _stamp() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


# numba forgets a kernel's machine code when the kernel's own file changes. A kernel holds the code of those that it
# calls, so it has to be forgotten when any file of this folder changes.
STAMP = _stamp()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile with numba at the first call. No fastmath: a kernel rounds as CPython does, operation by operation."""
    try:
        compiled: Any = numba.njit(cache=True)(function)
    except RuntimeError:  # no folder can be written to
        return numba.njit(function)
    compiled._cache._cache_file._source_stamp = STAMP
    return compiled


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """A function that C++ can call, compiled now."""
    compiled: Any = CFunc(function, normalize_signature(signature), locals={}, options={})
    try:
        compiled.enable_caching()
        compiled._cache._cache_file._source_stamp = STAMP
    except RuntimeError:
        pass
    compiled.compile()
    return compiled


def are_cached(*kernels: Any) -> bool:
    """Whether kernels need no compilation."""
    try:
        return all(len(one._cache._cache_file._load_index()) > 0 for one in kernels)
    except AttributeError:  # numba keeps nothing on disk here
        return False
