"""One update on the real simulator: the policy that learns is the one that drove."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json
from maip3o.algo.learner import Learner
from maip3o.config.schema import AlgoConfig, Config, ConstraintConfig
from maip3o.envs import load_scenario, make_array_env
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.rollout import rollout

config = Config(algo=AlgoConfig(name="maip3o", epochs=2), constraints={"termination": ConstraintConfig(limit=0.1)})
env = make_array_env(load_scenario("intersection", num_agents=4, horizon=40), ["termination"])
learner = Learner(config, env.spec)
for i in range(2):
    actor = NumpyActor(learner.actor_weights(), config.model)
    metrics = learner.update([rollout(env, actor, 1_000_000 + 2 * i + j, deterministic=False) for j in range(2)])
env.close()
print(json.dumps(metrics))
"""


@pytest.mark.simulator
def test_replayed_ratio_is_one_on_metadrive_after_an_update() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout.strip().splitlines()[-1])
    assert metrics["policy/max_ratio_error"] < 1e-4
    assert metrics["policy/kl"] > 0
    assert 0 <= metrics["constraint/termination/uncensored"] <= 1
