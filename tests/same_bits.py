"""Does a refactoring change what is learnt? Trains the same runs by two checkouts and compares every weight.

    python tests/same_bits.py <checkout before> [<checkout after>] [episodes=60]

A checkout is a folder, for instance of `git worktree add <folder> HEAD`. Three algorithms on Intersection, Parking Lot
and the toy world. Exit code 1 if any tensor of the actor or of a critic differs by a bit.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

ALGORITHMS = ("maip3o", "map3o", "mappo")
ROOT = Path(__file__).parents[1]
SCENARIOS = ("toy", "intersection", "parking_lot")


def train(checkout: Path, scenario: str, algorithm: str, episodes: str, directory: Path) -> dict[str, torch.Tensor]:
    """The weights after a short run of that checkout's code."""
    command = [sys.executable, "-m", "maip3o.train", "--config-dir", str(checkout / "tests" / "conf")]
    command += [f"+scenario={scenario}", f"algo={algorithm}", f"total_episodes={episodes}"]
    command += ["evaluation.every_episodes=0", "logger.quiet=true", f"hydra.run.dir={directory}"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(command, check=True, cwd=checkout, env=environment, stdout=subprocess.DEVNULL)
    learner = torch.load(directory / "checkpoints" / "last.pt", weights_only=True)["learner"]
    critics = {f"{name}.{key}": tensor for name, critic in learner["critics"].items() for key, tensor in critic.items()}
    return {**{f"actor.{key}": tensor for key, tensor in learner["actor"].items()}, **critics}


def differences(old: dict[str, torch.Tensor], new: dict[str, torch.Tensor]) -> list[str]:
    if old.keys() != new.keys():
        return sorted(old.keys() ^ new.keys())
    return [name for name in old if not torch.equal(old[name], new[name])]


def main() -> None:
    words = [text for text in sys.argv[1:] if "=" not in text]
    options = dict(text.split("=", 1) for text in sys.argv[1:] if "=" in text)
    checkouts = {"before": Path(words[0]).resolve(), "after": Path(words[1] if len(words) > 1 else ROOT).resolve()}
    episodes, bad = options.get("episodes", "60"), 0
    with tempfile.TemporaryDirectory() as scratch:
        for scenario, algorithm in itertools.product(SCENARIOS, ALGORITHMS):
            old, new = (
                train(checkout, scenario, algorithm, episodes, Path(scratch, name, scenario, algorithm))
                for name, checkout in checkouts.items()
            )
            changed = differences(old, new)
            bad += bool(changed)
            print(
                f"{scenario} {algorithm}: {'DIFFERENT: ' + ', '.join(changed[:3]) if changed else 'equal'}", flush=True
            )
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
