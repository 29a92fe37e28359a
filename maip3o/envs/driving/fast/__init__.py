"""`backend=fast`: MetaDrive, bit for bit, without its per-object Python. See docs/fast-metadrive.md."""

from maip3o.envs.driving.fast.backend import FastBackend

__all__ = ["FastBackend"]
