"""A policy as an ONNX file, checked against torch before it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from maip3o.errors import RunError, UserError
from maip3o.policy import Policy, load_policy, run_directory
from maip3o.runners.directory import require_writable

AGENTS, STEPS, TOLERANCE = 16, 50, 1e-4  # of the check


def write_onnx(checkpoint: str, out: str | None) -> Path:
    """Export the policy; returns the file's path."""
    policy = load_policy(checkpoint)
    path = _path(out, policy)
    require_writable(path.parent, "out")
    content = export(policy)
    difference = largest_difference(policy, content)
    if not difference <= TOLERANCE:
        raise RunError(f"{path}: not written, its actions differ from torch's by {difference:.2g}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"written: {path} ({len(content) / 1024:.0f} KiB; largest difference from torch {difference:.1e})")
    return path


def export(policy: Policy) -> bytes:
    """The policy as the bytes of an ONNX file."""
    try:
        from maip3o.models.onnx_graph import build_actor

        metadata = {
            "policy": policy.name,
            "scenario": policy.config.scenario.name,
            "num_agents": str(policy.config.scenario.num_agents),
            "horizon": str(policy.config.scenario.horizon),
            "observation": policy.config.scenario.observation,
            "algo": policy.config.algo.name,
            "std": " ".join(f"{value:.6g}" for value in np.exp(policy.weights["log_std"])),
        }
        proto = build_actor(policy.weights, policy.config.model, metadata)
    except ImportError:
        raise UserError("export needs onnx and onnxruntime: pip install 'maip3o[export]'") from None
    return bytes(proto.SerializeToString())


def largest_difference(policy: Policy, content: bytes) -> float:
    """Largest difference of actions and memories between onnxruntime and torch over random observations."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    observations = np.random.default_rng(0).uniform(0, 1, (STEPS, AGENTS, policy.observation_size)).astype(np.float32)
    size = policy.config.model.memory_size if policy.config.model.recurrent else 0
    memory, torch_memory = np.zeros((AGENTS, size), np.float32), torch.zeros(AGENTS, size)
    difference = 0.0
    for observation in observations:
        inputs = {"observation": observation, **({"memory": memory} if size else {})}
        action, *rest = session.run(None, inputs)
        torch_action, torch_memory = _torch_step(policy, torch.as_tensor(observation), torch_memory)
        gaps = [np.abs(action - torch_action.numpy()).max()]
        if size:
            memory = rest[0]
            gaps.append(np.abs(memory - torch_memory.numpy()).max())
        difference = max(difference, *map(float, gaps))
    return difference


@torch.no_grad()
def _torch_step(policy: Policy, observation: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    actor: Any = policy.learner.actor
    features = actor.encoder(policy.learner.normaliser(observation))
    if actor.gru is not None:
        features = memory = actor.gru(features, memory, [len(observation)])
    return actor.head(features), memory


def _path(out: str | None, policy: Policy) -> Path:
    if out is None:
        folder = run_directory(policy.path)
        return folder / "policy.onnx" if folder else Path(f"{policy.name}.onnx")
    if not out.endswith(".onnx") or Path(out).is_dir():
        raise UserError(f"out={out}: must be the name of an .onnx file")
    return Path(out)
