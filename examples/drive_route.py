"""A driver that has learnt nothing: it follows its route at 3 m/s and sees nobody. Is the way hard, or are the others?

python examples/drive_route.py [scenario] [episodes] [spread] [policy]

spread: steps within which the cars start; thousands mean one after another, alone
policy: a run or a shipped name, which drives instead
Nobody is timed out before 5000 steps.
"""

import sys
from collections import Counter

import numpy as np

from maip3o.config.options import integer
from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.driving.outcomes import Cause
from maip3o.envs.driving.staggered import StaggeredStart
from maip3o.errors import UserError, exit_on_user_error
from maip3o.models.compiled.act import NumpyActor
from maip3o.policy import load_policy
from maip3o.runners.rollout import rollout

AHEAD, SPEED, GAIN = 4.0, 3.0, 1.5  # metres to the point that it steers at, m/s, steering per radian


def at(line: np.ndarray, metres: np.ndarray) -> np.ndarray:
    """Points [n, 2] of a polyline, that far along it."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    return np.stack([np.interp(metres, along, line[:, axis]) for axis in (0, 1)], axis=-1)


def follow_routes(env: StaggeredStart, seed: int) -> list[int]:
    """Drives the episode; how each life ended."""
    now = env.reset(seed)
    routes = [np.zeros((1, 2))] * env.num_slots
    reached = [0] * env.num_slots  # index of the nearest point of the route: never back, never far ahead
    causes: list[int] = []
    while not now.over:
        lines = env.routes() if now.fresh.any() else []
        for car in np.flatnonzero(now.fresh):
            routes[car], reached[car] = at(lines[car], np.arange(0.0, 200.0, 0.25)), 0
        cars, action = env.car_states(), np.zeros((env.num_slots, 2), np.float32)
        for car in np.flatnonzero(now.alive):
            window = routes[car][reached[car] : reached[car] + 40]
            reached[car] += int(np.linalg.norm(window - cars.position[car], axis=1).argmin())
            to = routes[car][min(reached[car] + int(AHEAD / 0.25), len(routes[car]) - 1)] - cars.position[car]
            turn = (np.arctan2(to[1], to[0]) - cars.heading[car] + np.pi) % (2 * np.pi) - np.pi
            action[car] = np.clip([GAIN * turn, 0.5 * (SPEED - cars.speed[car])], -1.0, 1.0)
        now = env.step(action)
        causes += now.outcome[now.outcome > 0].tolist()
    return causes


def main(scenario: str = "parking_lot", episode_count: str = "8", spread_steps: str = "0", driver: str = "") -> None:
    episodes = integer(1, 1_000_000)("episodes", episode_count)
    spread = integer(0, 1_000_000)("spread", spread_steps)
    policy = load_policy(driver) if driver else None
    actor = NumpyActor(policy.weights, policy.config.model) if policy else None
    world = load_scenario(scenario, end_rule="all", horizon=5000)
    env = StaggeredStart(make_array_env(policy.seeing(world) if policy else world, ()), spread)
    if policy and policy.observation_size != env.spec.observation_size:
        given = env.spec.observation_size
        raise UserError(f"{driver}: reads {policy.observation_size} numbers, {scenario} gives {given}")
    causes: Counter[str] = Counter()
    for seed in range(episodes):
        if actor:
            episode = rollout(env, actor, seed, deterministic=False)
            ended = [int(episode.outcome[t, car]) for t, car in episode.life_end]
        else:
            ended = follow_routes(env, seed)
        causes.update(Cause(cause).name.lower() for cause in ended)
    env.close()
    total = causes.total()
    print(
        f"{scenario}, {episodes} episodes: " + ", ".join(f"{n / total:.0%} {name}" for name, n in causes.most_common())
    )


if __name__ == "__main__":
    exit_on_user_error(lambda: main(*sys.argv[1:5]))
