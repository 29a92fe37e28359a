"""ONNX export: the same actions as torch and as the workers' actor, memory in and out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from eval_policies import make_config

from maip3o import export
from maip3o.algo.learner import Learner
from maip3o.config.schema import ModelConfig
from maip3o.envs import load_scenario
from maip3o.envs.contract import WorldSpec
from maip3o.errors import RunError
from maip3o.evaluation import onnx_export
from maip3o.models.compiled.act import NumpyActor
from maip3o.policy import load_policy
from maip3o.runners.checkpoint import Checkpoint, save


def make_checkpoint(path: Path, model: ModelConfig, size: int = 13) -> Path:
    """Random weights throughout: the fresh head is nearly zero and would hide an error."""
    import torch

    config = make_config(load_scenario("intersection"))
    config.model = model
    learner = Learner(config, WorldSpec(size, 2), "cpu")
    generator = torch.Generator().manual_seed(3)
    for parameter in learner.actor.parameters():
        parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator)
    learner.normaliser.update(torch.rand(100, size, generator=generator))
    save(path, Checkpoint(config, learner.state_dict(), {"episodes": 0}))
    return path


MODELS = [
    ModelConfig(hidden_sizes=[32, 16], memory_size=24),
    ModelConfig(hidden_sizes=[8], activation="relu", recurrent=False),
]


@pytest.mark.parametrize("model", MODELS, ids=["gru", "feed-forward"])
def test_onnx_acts_like_torch_and_like_the_workers(model: ModelConfig, tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "policy.pt", model)
    file = export.run([f"checkpoint={checkpoint}", f"out={tmp_path / 'sub' / 'policy.onnx'}"])
    policy = load_policy(str(checkpoint))
    assert onnx_export.largest_difference(policy, file.read_bytes()) < 1e-4

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    actor = NumpyActor(policy.weights, policy.config.model)
    memory = actor.initial_memory(5)
    onnx_memory = memory.copy()
    for observation in np.random.default_rng(1).normal(0.5, 1.0, (20, 5, 13)).astype(np.float32):
        action, _, memory = actor.act(observation, memory, None)
        inputs = {"observation": observation, **({"memory": onnx_memory} if model.recurrent else {})}
        onnx_action, *rest = session.run(None, inputs)
        assert onnx_action == pytest.approx(action, abs=1e-4)
        if model.recurrent:
            onnx_memory = rest[0]
            assert onnx_memory == pytest.approx(memory, abs=1e-4)
    assert np.abs(action).max() > 0.05  # the comparison was about something
    about = session.get_modelmeta().custom_metadata_map
    assert about["scenario"] == "intersection"
    assert int(about["horizon"]) == policy.config.scenario.horizon


def test_a_wrong_graph_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = make_checkpoint(tmp_path / "policy.pt", MODELS[0])
    monkeypatch.setattr("maip3o.models.onnx_graph.OBSERVATION_CLIP", 0.1)
    with pytest.raises(RunError, match=re.escape("differ from torch")):
        export.run([f"checkpoint={checkpoint}", f"out={tmp_path / 'policy.onnx'}"])
    assert not (tmp_path / "policy.onnx").exists()
