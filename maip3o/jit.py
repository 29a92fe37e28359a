"""Compilation of the kernels: once, kept on disk beside the source or, where that is read-only, in the user's cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

# "contract" allows fused multiply-add and nothing else: the order of sums stays as written.
# Without the interpreter's lock: policy and critics learn side by side.
FUSED: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "nogil": True}


@cache
def _stamp(folder: Path) -> bytes:
    """numba forgets a kernel's machine code when the kernel's own file changes. A kernel holds the code of those that
    it calls, so it has to be forgotten when any file of its folder changes, or this one."""
    digest = hashlib.sha256()
    for path in (Path(__file__), *sorted(folder.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.digest()


def kernel(function: Callable[..., Any], signature: Any = None, **options: Any) -> Any:
    """Compile with numba at the first call, or now for one signature and no other.

    No fastmath unless options say so: a kernel rounds as CPython does, operation by operation.
    """
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
        compiled._cache._cache_file._source_stamp = _stamp(_folder(function))
    except RuntimeError:  # no folder can be written to
        compiled = numba.njit(**options)(function)
    if signature is not None:
        compiled.compile(signature)
        compiled.disable_compile()
    return compiled


def fused(function: Callable[..., Any]) -> Any:
    """A kernel that may use fused multiply-add."""
    return kernel(function, **FUSED)


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """A function that C++ can call, compiled now."""
    compiled: Any = CFunc(function, normalize_signature(signature), locals={}, options={})
    try:
        compiled.enable_caching()
        compiled._cache._cache_file._source_stamp = _stamp(_folder(function))
    except RuntimeError:
        pass
    compiled.compile()
    return compiled


def _folder(function: Callable[..., Any]) -> Path:
    return Path(function.__code__.co_filename).parent


def are_cached(*kernels: Any) -> bool:
    """Whether kernels need no compilation."""
    try:
        return all(len(one._cache._cache_file._load_index()) > 0 for one in kernels)
    except AttributeError:  # numba keeps nothing on disk here
        return False
