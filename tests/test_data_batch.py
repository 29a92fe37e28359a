"""Lives, chunks and packing: no step lost, none twice, nothing mixed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_episodes import toy_config, toy_learner, toy_rollouts, with_garbage

from maip3o.config.schema import AlgoConfig
from maip3o.data.batch import Batch, make_batch
from maip3o.data.chunks import cut_into_chunks, pack, shuffled_minibatches
from maip3o.data.episode import Episode
from maip3o.envs.toy import ToyEnv

LEARNER = toy_learner(toy_config())

worlds = st.builds(
    ToyEnv,
    num_agents=st.integers(1, 5),
    horizon=st.integers(1, 12),
    hazard=st.sampled_from([0.0, 0.3, 1.0]),
    distance=st.sampled_from([0.5, 2.0, float("inf")]),
    end_rule=st.sampled_from(["all", "half", "first"]),
    respawn=st.booleans(),
)


def episodes_of(env: ToyEnv, seed: int) -> list[Episode]:
    return toy_rollouts(LEARNER, env, 3, first_seed=seed)


@settings(max_examples=60, deadline=None)
@given(env=worlds, seed=st.integers(0, 10_000), chunk_length=st.integers(1, 15))
def test_chunks_hold_every_active_step_once_and_stay_inside_one_life(env: ToyEnv, seed: int, chunk_length: int) -> None:
    episodes = episodes_of(env, seed)
    batch = make_batch(episodes)
    assert batch.steps == sum(int(e.active.sum()) for e in episodes)
    chunks = cut_into_chunks(batch, chunk_length)
    packed = pack(chunks, np.random.default_rng(seed).permutation(len(chunks.start)))
    assert sorted(packed.rows) == list(range(batch.steps))
    assert chunks.length.max() <= chunk_length
    for start, length in zip(chunks.start, chunks.length, strict=True):
        assert len(set(batch.life[start : start + length])) == 1
        assert list(np.diff(batch.age[start : start + length])) == [1] * (length - 1)


@settings(max_examples=40, deadline=None)
@given(env=worlds, seed=st.integers(0, 10_000))
def test_rows_carry_what_the_episode_stored(env: ToyEnv, seed: int) -> None:
    episodes = episodes_of(env, seed)
    batch = make_batch(episodes)
    assert len(batch.life_start) == sum(len(e.life_end) for e in episodes) == sum(int(e.first.sum()) for e in episodes)
    row = 0
    moment: dict[tuple[int, int], int] = {}
    for number, episode in enumerate(episodes):
        for a in range(env.num_slots):
            for t in np.flatnonzero(episode.active[:, a]):
                np.testing.assert_array_equal(batch.observation[row], episode.observation[t, a])
                np.testing.assert_array_equal(batch.memory[row], episode.memory[t, a])
                assert batch.reward[row] == episode.reward[t, a]
                assert moment.setdefault((number, int(t)), batch.moment[row]) == batch.moment[row]
                assert (batch.age[row] == 0) == episode.first[t, a]
                row += 1
    assert sorted(moment.values()) == list(range(len(moment)))
    assert set(batch.final_row) == {r for r, cut in zip(batch.last_row, batch.life_cut, strict=True) if cut}


def test_packed_rows_stand_step_by_step() -> None:
    batch = _batch_of_lives([5, 2, 3])
    packed = pack(cut_into_chunks(batch, 3), np.arange(4))
    # Chunks: rows 0-2, 3-4, 5-6, 7-9; sorted by length: (0, 7, 3, 5).
    assert packed.batch_sizes.tolist() == [4, 4, 2]
    assert list(packed.rows) == [0, 7, 3, 5, 1, 8, 4, 6, 2, 9]
    assert list(packed.first_rows) == [0, 7, 3, 5]


def test_garbage_in_dead_slots_never_enters_the_batch() -> None:
    env = ToyEnv(num_agents=4, horizon=10, hazard=0.4, end_rule="half")
    episodes = episodes_of(env, 5)
    assert any((~e.active).any() for e in episodes)
    clean, spoilt = make_batch(episodes), make_batch(with_garbage(episodes, np.random.default_rng(0)))
    for name in Batch.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(clean, name), getattr(spoilt, name))


def test_minibatches_split_by_count_or_by_steps() -> None:
    rng = np.random.default_rng(0)
    by_count = shuffled_minibatches(10, 100, AlgoConfig(minibatches=4), rng)
    assert sorted(len(part) for part in by_count) == [2, 2, 3, 3]
    assert sorted(np.concatenate(by_count)) == list(range(10))
    assert len(shuffled_minibatches(10, 100, AlgoConfig(minibatch_steps=20), rng)) == 5
    assert len(shuffled_minibatches(3, 100, AlgoConfig(minibatches=4), rng)) == 3


def test_a_batch_without_a_single_step_is_refused() -> None:
    episode = episodes_of(ToyEnv(num_agents=2, horizon=3), 0)[0]
    episode.active[:] = False
    with pytest.raises(ValueError, match="no active step"):
        make_batch([episode])


def _batch_of_lives(lengths: list[int]) -> Batch:
    batch = make_batch(episodes_of(ToyEnv(num_agents=1, horizon=2), 0))
    batch.life_length = np.array(lengths)
    batch.life_start = np.cumsum([0, *lengths[:-1]])
    return batch
