"""The wheel works on its own: conf/ and runners/ are in it and are found from any folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.simulator
@pytest.mark.slow
def test_wheel_in_an_empty_environment_trains_from_any_folder(tmp_path: Path) -> None:
    wheels, home, elsewhere = tmp_path / "wheels", tmp_path / "venv", tmp_path / "elsewhere"
    elsewhere.mkdir()
    source = tmp_path / "source"
    tracked = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")[:-1]
    for name in tracked:  # a copy, so that the build leaves nothing behind in the checkout
        path = ROOT / name
        if name.startswith(("maip3o", "conf", "runners")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                (source / name).symlink_to(os.readlink(path))
            elif path.exists():
                (source / name).write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.check_call([*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels, source])

    venv.create(home, with_pip=False)
    site = next(home.glob("lib/python3*/site-packages"))
    # Dependencies are borrowed; a .pth inside a borrowed folder is not read, so the checkout's own install is not seen.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    wheel = next(wheels.glob("maip3o-*.whl"))
    subprocess.check_call([*pip, "--python", home / "bin/python", "install", "-q", "--no-deps", "--no-index", wheel])

    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    where = subprocess.check_output(
        [home / "bin/python", "-c", "import maip3o; print(maip3o.__file__)"], cwd=elsewhere, env=environment, text=True
    )
    assert where.startswith(str(site))
    train = [home / "bin/python", "-m", "maip3o.train", "+scenario=intersection", "total_episodes=2"]
    small = ["episodes_per_iteration=2", "num_workers=1", "evaluation.every_episodes=0", "scenario.horizon=30"]
    subprocess.check_call([*train, *small, "hydra.run.dir=here"], cwd=elsewhere, env=environment)
    lines = (elsewhere / "here/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["episodes"] for line in lines] == [2]
    assert (elsewhere / "here/checkpoints/last.pt").stat().st_size > 0
