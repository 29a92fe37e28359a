"""Drive with an exported policy: onnxruntime and the environment, no torch. Actions are drawn as in training.

python -m maip3o.export checkpoint=<run> out=policy.onnx && python examples/drive_onnx.py policy.onnx [seed]
"""

import sys

import numpy as np
import onnxruntime

from maip3o import make_env
from maip3o.config.options import integer
from maip3o.errors import UserError, exit_on_user_error


def main(path: str = "", seed_text: str = "0") -> None:
    seed = integer(0, 2**31 - 1)("seed", seed_text)
    wrong = f"{path or 'no file given'}: name an .onnx file that maip3o.export has written"
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime has a class for each cause and no common one
        raise UserError(wrong) from None
    about = session.get_modelmeta().custom_metadata_map
    if not {"scenario", "num_agents", "horizon", "std"} <= set(about):
        raise UserError(wrong)
    std = np.array(about["std"].split(), np.float32)
    recurrent = len(session.get_inputs()) > 1
    size = session.get_inputs()[1].shape[1] if recurrent else 0
    world = {
        "num_agents": int(about["num_agents"]),
        "horizon": int(about["horizon"]),
        "observation": about.get("observation", "linear"),
    }
    env = make_env(about["scenario"], **world, end_rule="all")
    observations, _ = env.reset(seed=seed)
    noise = np.random.default_rng(seed)
    memory, total, causes = {}, 0.0, []
    while env.agents:
        cars = env.agents
        inputs = {"observation": np.stack([observations[car] for car in cars])}
        if recurrent:
            inputs["memory"] = np.stack([memory.get(car, np.zeros(size, np.float32)) for car in cars])
        means, *after = session.run(None, inputs)
        memory = dict(zip(cars, after[0], strict=True)) if recurrent else {}
        actions = (means + std * noise.standard_normal(means.shape, np.float32)).clip(-1, 1)
        observations, rewards, _, _, infos = env.step(dict(zip(cars, actions, strict=True)))
        total += sum(rewards.values())
        causes += [info["cause"] for info in infos.values() if info["cause"] != "none"]
    env.close()
    ends = ", ".join(f"{causes.count(cause)} {cause}" for cause in sorted(set(causes)))
    print(f"{about['scenario']}, seed {seed}: return {total:.1f}, {ends}")


if __name__ == "__main__":
    exit_on_user_error(lambda: main(*sys.argv[1:3]))
