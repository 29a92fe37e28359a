"""Preloaded by the fork server of test_run_training.py: a child that has trained before starts in milliseconds."""

import tempfile
from pathlib import Path

from tests.toy_run import toy_config, train_inline

with tempfile.TemporaryDirectory() as directory:
    train_inline(toy_config(total_episodes=4), Path(directory))
