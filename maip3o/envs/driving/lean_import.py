"""MetaDrive without PyTorch: a worker that only simulates saves 200 MB and seconds of start-up."""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from types import ModuleType


class _TorchHidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "torch":
            raise ModuleNotFoundError("hidden while MetaDrive is imported", name=name)


def import_metadrive() -> None:
    """Import MetaDrive. It tries to import PyTorch for an expert driver that nobody here uses, and does without."""
    if "metadrive" in sys.modules or "torch" in sys.modules:
        return
    finder = _TorchHidden()
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module("metadrive")
    finally:
        sys.meta_path.remove(finder)
