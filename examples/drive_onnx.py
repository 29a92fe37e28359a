"""Drive with an exported policy: onnxruntime and the environment, no torch.

python -m maip3o.export checkpoint=<run> out=policy.onnx && python examples/drive_onnx.py policy.onnx [seed]
"""

import sys

import numpy as np
import onnxruntime

from maip3o import make_env

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
scenario = session.get_modelmeta().custom_metadata_map["scenario"]
recurrent = len(session.get_inputs()) > 1
size = session.get_inputs()[1].shape[1] if recurrent else 0

env = make_env(scenario, end_rule="all")
observations, _ = env.reset(seed=seed)
memory, total, causes = {}, 0.0, []
while env.agents:
    cars = env.agents
    inputs = {"observation": np.stack([observations[car] for car in cars])}
    if recurrent:
        inputs["memory"] = np.stack([memory.get(car, np.zeros(size, np.float32)) for car in cars])
    actions, *after = session.run(None, inputs)
    memory = dict(zip(cars, after[0], strict=True)) if recurrent else {}
    observations, rewards, _, _, infos = env.step(dict(zip(cars, actions.clip(-1, 1), strict=True)))
    total += sum(rewards.values())
    causes += [info["cause"] for info in infos.values() if info["cause"] != "none"]
env.close()
print(
    f"{scenario}, seed {seed}: return {total:.1f}, " + ", ".join(f"{causes.count(c)} {c}" for c in sorted(set(causes)))
)
