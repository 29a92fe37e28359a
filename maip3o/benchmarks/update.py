"""How long one update takes, on synthetic episodes of MetaDrive's shape: no simulator involved.

python -m maip3o.benchmark update steps=50000 threads=1
"""

from __future__ import annotations

import time

import numpy as np
import torch

from maip3o.algo.learner import Learner
from maip3o.config import AlgoConfig, Config, ConstraintConfig, ModelConfig
from maip3o.data.episode import Episode
from maip3o.envs.contract import Cause
from maip3o.models.inference import NumpyActor


def run(
    steps: int = 50_000,
    agents: int = 10,
    horizon: int = 250,
    observation_size: int = 91,
    memory_size: int = 64,
    epochs: int = 8,
    minibatches: int = 4,
    chunk_length: int = 16,
    threads: int = 1,
    repeats: int = 3,
) -> dict[str, float]:
    """Seconds of an update with `epochs` epochs over `steps` agent-steps; the best of `repeats`, and per agent-step."""
    torch.set_num_threads(threads)
    # kl_max: all epochs must run. One constraint: two critics.
    algo = AlgoConfig(
        name="maip3o", epochs=epochs, minibatches=minibatches, chunk_length=chunk_length, kl_max=float("inf")
    )
    model = ModelConfig(memory_size=memory_size)
    config = Config(constraints={"termination": ConstraintConfig(limit=0.1)}, algo=algo, model=model)
    learner = Learner(config, observation_size, 2)
    actor = NumpyActor(learner.actor_weights(), model)
    rng = np.random.default_rng(0)
    episodes, agent_steps = [], 0
    while agent_steps < steps:
        episodes.append(synthetic_episode(actor, rng, agents, horizon, observation_size))
        agent_steps += int(episodes[-1].active.sum())
    state = learner.state_dict()
    seconds, cpu_seconds = [], []
    for _ in range(repeats):
        learner.load_state_dict(state)
        started, cpu_started = time.perf_counter(), time.process_time()
        learner.update(episodes)
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
        state = Learner(config, observation_size, 2).state_dict()
    best = min(seconds)
    return {
        "agent_steps": agent_steps,
        "epochs": epochs,
        "threads": threads,
        "seconds": best,
        "cpu_seconds": min(cpu_seconds),
        "microseconds_per_agent_step_and_epoch": 1e6 * best / agent_steps / epochs,
    }


def synthetic_episode(
    actor: NumpyActor, rng: np.random.Generator, agents: int, horizon: int, observation_size: int
) -> Episode:
    """Random observations and rewards, the actor's own actions and memories; half of the agents die on the way."""
    end = np.where(rng.random(agents) < 0.5, rng.integers(1, horizon + 1, agents), horizon)
    active = np.arange(horizon)[:, None] < end
    observation = rng.random((horizon, agents, observation_size), np.float32)
    hidden = np.zeros((horizon, agents, actor.memory_size), np.float32)
    action, log_prob = np.zeros((horizon, agents, 2), np.float32), np.zeros((horizon, agents), np.float32)
    memory = actor.initial_memory(agents)
    for t in range(horizon):
        hidden[t] = memory
        noise = rng.standard_normal((agents, 2), np.float32)
        action[t], log_prob[t], memory = actor.act(observation[t], memory, noise)
    last = np.arange(horizon)[:, None] == end - 1
    terminated, truncated = last & (end < horizon), last & (end == horizon)
    cut = np.argwhere(truncated)
    ends = np.argwhere(last)
    return Episode(
        seed=0,
        observation=observation,
        hidden=hidden,
        action=action,
        log_prob=log_prob,
        active=active,
        first=active & (np.arange(horizon)[:, None] == 0),
        reward=rng.normal(size=(horizon, agents)).astype(np.float32),
        cost=terminated[..., None].astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        cause=(terminated * Cause.CRASH_VEHICLE + truncated * Cause.TIME_OUT).astype(np.int8),
        final_index=cut,
        final_observation=rng.random((len(cut), observation_size), np.float32),
        final_hidden=memory[cut[:, 1]],
        life_end=ends,
        life_route_completion=np.zeros(len(ends), np.float32),
        life_mean_speed=np.zeros(len(ends), np.float32),
        seconds_simulate=0.0,
        seconds_infer=0.0,
    )
