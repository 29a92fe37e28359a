"""Record tests/data/robots.npz: what the published packages do on the software of their time.

Run it with a Python that has them: safety-gymnasium 1.0.0 with gymnasium 0.28.1 and mujoco 2.3.3 (the defaults of its
colours made factories, as Python 3.11 asks), and bullet-safety-gym 1.4.0.

    python tests/record_robots.py tests/data/robots.npz
"""

import random
import sys

import numpy as np

SEED, STEPS = 11, 60
NAVIGATION = ("PointGoal1", "CarGoal1", "PointGoal2", "CarGoal2", "PointButton1", "CarButton1")
BULLET = ("BallCircle", "CarCircle", "BallRun", "CarRun", "BallReach", "CarReach")


def actions():
    """[T, 2]: forwards most of the time."""
    noise = np.random.default_rng(SEED).uniform(-1.0, 1.0, (STEPS, 2))
    return (np.array([0.5, 0.3]) + 0.5 * noise).clip(-1.0, 1.0)


def navigation(name):
    from safety_gymnasium.builder import Builder

    env = Builder(task_id=f"Safety{name}-v0", config={"agent_name": "Car" if name.startswith("Car") else "Point"})
    rows = [env.reset(seed=SEED)[0]]
    numbers = []
    for action in actions():
        observation, reward, cost, _, _, _ = env.step(action)
        rows.append(observation)
        numbers.append((reward, cost))
    return np.array(rows), np.array(numbers)


class Clock:
    """Instead of the wall's, which boxes of Bullet Safety Gym follow: recordings must be the same on every machine."""

    now = 0.0

    def time(self):
        return self.now


def bullet(name):
    import bullet_safety_gym  # noqa: F401
    import gymnasium
    from bullet_safety_gym.envs import bases
    from bullet_safety_gym.envs.builder import EnvironmentBuilder

    clock = bases.time = Clock()
    np.random.seed(SEED)  # noqa: NPY002
    random.seed(SEED)
    env = EnvironmentBuilder(**gymnasium.spec(f"Safety{name}-v0").kwargs)
    rows = [env.reset()[0]]
    numbers = []
    for step, action in enumerate(actions()):
        clock.now = step * env.dt
        observation, reward, _, _, info = env.step(action)
        rows.append(observation)
        numbers.append((reward, info["cost"]))
    return np.array(rows), np.array(numbers)


def main(path):
    found = {}
    for names, record in ((NAVIGATION, navigation), (BULLET, bullet)):
        for name in names:
            observations, numbers = record(name)
            found[f"{name}.observations"] = observations.astype(np.float32)
            found[f"{name}.rewards_costs"] = numbers
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
