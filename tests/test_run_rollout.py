"""An episode as the rollout records it, on the toy environment."""

import numpy as np
import pytest

from maip3o.envs.contract import ArrayEnv, StepResult
from maip3o.envs.driving.outcomes import Cause
from maip3o.envs.toy import ToyEnv
from maip3o.runners.recorder import FIRST_ROOM
from maip3o.runners.rollout import NOISE_STEPS, _Noise, rollout, rollouts
from tests.toy_run import assert_same_episode, toy_actor, toy_job

ACTOR = toy_actor(toy_job())


@pytest.mark.parametrize("respawn", [False, True])
@pytest.mark.parametrize("end_rule", ["half", "first", "all"])
def test_lives_are_whole(end_rule: str, respawn: bool) -> None:
    env = ToyEnv(4, 12, hazard=0.8, distance=4.0, end_rule=end_rule, respawn=respawn)
    for seed in range(20):
        episode = rollout(env, ACTOR, seed, deterministic=False)
        ended = episode.terminated | episode.truncated
        assert not (episode.terminated & episode.truncated).any()
        assert np.array_equal(ended, episode.outcome != Cause.NONE)
        assert not (ended & ~episode.active).any()
        assert (ended | ~episode.active)[-1].all(), "the last step ends or cuts everybody"
        assert episode.first.sum() == ended.sum() == len(episode.life_end)
        assert np.array_equal(episode.life_end, np.argwhere(ended))
        assert np.array_equal(episode.final_index, np.argwhere(episode.truncated))
        assert not episode.memory[episode.first].any()


@pytest.mark.parametrize("respawn", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
def test_an_episode_does_not_depend_on_what_runs_beside_it(respawn: bool, deterministic: bool) -> None:
    """Of different lengths, one longer than the recorder's first room, in another order, and in used environments."""

    def make() -> ArrayEnv:
        return ToyEnv(3, 300, hazard=0.004, end_rule="first", respawn=respawn)

    seeds = [5, 8, 2, 11, 3]
    alone = {seed: rollout(make(), ACTOR, seed, deterministic) for seed in seeds}
    assert len({episode.length for episode in alone.values()}) > 1
    assert max(episode.length for episode in alone.values()) > FIRST_ROOM
    envs = [make() for _ in seeds]
    for order in (seeds, seeds[::-1]):
        for episode in rollouts(envs, ACTOR, order, deterministic):
            assert_same_episode(episode, alone[episode.seed])


def test_noise_is_that_of_one_step_after_another() -> None:
    generator = np.random.default_rng([4, 1])
    noise = _Noise([9, 4], slots=3, size=1)
    for t in range(2 * NOISE_STEPS + 3):
        assert np.array_equal(noise.at(t)[3:], generator.standard_normal((3, 1), np.float32))


def test_life_means_cover_each_life_alone() -> None:
    env = ToyEnv(3, 15, hazard=0.5, respawn=True)
    episode = rollout(env, ACTOR, 1, deterministic=False)
    assert len(episode.life_end) > 3, "the test needs several lives in a slot"
    speed = episode.reward  # the toy pays speed
    for (end, slot), mean in zip(episode.life_end, episode.life_measurements[:, 1], strict=True):
        start = max(t for t in range(end + 1) if episode.first[t, slot])
        assert mean == pytest.approx(speed[start : end + 1, slot].mean(), abs=1e-5)


def test_bootstrap_rows_hold_what_the_car_would_have_seen() -> None:
    episode = rollout(ToyEnv(3, 6, hazard=0.0), ACTOR, 2, deterministic=False)
    assert episode.length == 6
    assert (episode.outcome[-1] == Cause.TIME_OUT).all()
    assert np.allclose(episode.final_observation[:, 1], 1.0), "age / horizon after the last step"
    _, _, memory = ACTOR.act(episode.observation[-1], episode.memory[-1], None)
    assert np.allclose(episode.final_memory, memory, atol=1e-6)


def test_pure_function_of_the_seed() -> None:
    env = ToyEnv(3, 20)
    first = rollout(env, ACTOR, 5, deterministic=False)
    rollout(env, ACTOR, 6, deterministic=False)
    assert_same_episode(first, rollout(env, ACTOR, 5, deterministic=False))
    assert not np.array_equal(first.action[0], rollout(env, ACTOR, 6, deterministic=False).action[0])


def test_noise_of_a_car_does_not_depend_on_the_others_lives() -> None:
    """Slot 0 survives in both worlds: its noise, so its log-probability at each step, is the same."""
    safe = rollout(ToyEnv(3, 10, hazard=0.0), ACTOR, 3, deterministic=False)
    risky = rollout(ToyEnv(3, 10, hazard=0.9), ACTOR, 3, deterministic=False)
    for slot in range(3):
        lived = int(risky.active[:, slot].sum())
        assert np.array_equal(risky.log_prob[:lived, slot], safe.log_prob[:lived, slot])
    assert not risky.active.all()


def test_deterministic_episodes_draw_no_noise() -> None:
    episode = rollout(ToyEnv(2, 5, hazard=0.0), ACTOR, 1, deterministic=True)
    mean, _, _ = ACTOR.act(episode.observation[0], episode.memory[0], None)
    assert np.array_equal(episode.action[0], mean)


def test_environment_that_reuses_its_arrays_is_recorded_right() -> None:
    class Reusing(ToyEnv):
        """Hands out the same observation array each time."""

        def _result(self, *arguments: object) -> StepResult:
            result = super()._result(*arguments)  # type: ignore[arg-type]
            self.buffer = getattr(self, "buffer", np.empty_like(result.observation))
            self.buffer[...] = result.observation
            result.observation = self.buffer
            return result

    env: ArrayEnv = Reusing(3, 8)
    assert_same_episode(rollout(env, ACTOR, 4, False), rollout(ToyEnv(3, 8), ACTOR, 4, False))
