"""OmniSafe's side of the benchmark `algorithms`: an update for every line on stdin, its processor seconds on stdout.

Run by an interpreter that has OmniSafe 0.5, so nothing of maip3o is imported:
    echo | python maip3o/benchmarks/omnisafe_update.py PPOLag 5000 10 64
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time


def main(name: str, steps: int, epochs: int, batch: int) -> None:
    import omnisafe

    algo = {"steps_per_epoch": steps, "update_iters": epochs, "batch_size": batch, "kl_early_stop": False}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        settings = {
            "train_cfgs": {"total_steps": steps, "vector_env_nums": 1, "torch_threads": 1, "device": "cpu"},
            "algo_cfgs": algo,
            "logger_cfgs": {"log_dir": folder, "use_wandb": False, "use_tensorboard": False},
        }
        agent = omnisafe.Agent(name, "SafetyHalfCheetahVelocity-v1", custom_cfgs=settings).agent
        agent._env.rollout(steps_per_epoch=steps, agent=agent._actor_critic, buffer=agent._buf, logger=agent._logger)
        for _ in sys.stdin:
            used = time.process_time()
            agent._update()
            print(time.process_time() - used, file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
