"""A shipped policy drives an episode step by step; then the same episode as a film.

python examples/drive.py [policy] [seed] [film.mp4]
"""

import sys

import maip3o
from maip3o.config.options import integer
from maip3o.errors import exit_on_user_error


def main(name: str = "maip3o-growing-intersection", seed_text: str = "0", path: str = "drive.mp4") -> None:
    seed = integer(0, 999_999)("seed", seed_text)
    policy = maip3o.load_policy(name)
    policy.reset(seed)
    world = policy.config.scenario
    env = maip3o.make_env(
        world.name, num_agents=world.num_agents, horizon=world.horizon, observation=world.observation, end_rule="all"
    )
    observations, _ = env.reset(seed)
    collective = 0.0
    while env.agents:
        observations, rewards, *_ = env.step(policy.act({agent: observations[agent] for agent in env.agents}))
        collective += sum(rewards.values())
    env.close()
    print(f"{name}, seed {seed}: return {collective:.1f}")
    print(f"film: {maip3o.film(policy, path, seed)}")


if __name__ == "__main__":
    exit_on_user_error(lambda: main(*sys.argv[1:4]))
