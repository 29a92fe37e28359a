"""Cars that start one after another, on the toy world and on the real simulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.contract import ArrayEnv, StepResult
from maip3o.envs.driving.outcomes import Cause
from maip3o.envs.driving.staggered import StaggeredStart
from maip3o.envs.toy import ToyEnv


def drive(env: ArrayEnv, seed: int, throttle: float) -> list[StepResult]:
    results = [env.reset(seed)]
    while not results[-1].over:
        results.append(env.step(np.full((env.num_slots, env.spec.action_size), throttle, np.float32)))
    return results


def starts(results: list[StepResult]) -> dict[int, int]:
    """Slot -> the step after which it began."""
    return {int(slot): step for step, now in enumerate(results) for slot in np.flatnonzero(now.fresh)}


def test_a_waiting_car_takes_no_part() -> None:
    results = drive(StaggeredStart(ToyEnv(6, 20, hazard=0.0), 10), 3, throttle=0.5)
    begun = starts(results)
    assert set(begun) == set(range(6))
    assert min(begun.values()) == 0
    assert len(set(begun.values())) > 2
    for slot, start in begun.items():
        for step, now in enumerate(results[:-1]):
            assert now.alive[slot] == (step >= start)
            assert np.any(now.observation[slot]) == (step >= start)
            assert (now.reward[slot] != 0) == (step > start)
            assert (now.measurements[slot, 1] != 0) == (step > start)
    assert results[-1].truncated.all(), "all are timed out together: the steps waited count"


def test_starts_depend_on_seed_and_spread_alone() -> None:
    def begun(seed: int, spread: int, throttle: float = 0.1) -> dict[int, int]:
        return starts(drive(StaggeredStart(ToyEnv(6, 30, hazard=0.0), spread), seed, throttle))

    assert begun(1, 12) == begun(1, 12) == begun(1, 12, throttle=0.9)
    assert begun(1, 12) != begun(2, 12)
    assert max(begun(1, 24).values()) > 12 >= max(begun(1, 12).values())


def test_the_next_car_starts_when_nobody_drives() -> None:
    results = drive(StaggeredStart(ToyEnv(4, 1000, hazard=1.0), 900), 5, throttle=1.0)  # everybody crashes at once
    assert len(results) < 30
    assert set(starts(results)) == set(range(4))
    assert all(now.alive.any() for now in results[:-1])
    ended = np.stack([now.outcome for now in results])
    assert (np.count_nonzero(ended == Cause.CRASH_VEHICLE, axis=0) == 1).all()


def test_a_car_hit_while_it_waits_has_had_no_life() -> None:
    class Doomed(ToyEnv):
        """Slot 0 is hit in the third step, whatever it does."""

        def step(self, action: np.ndarray) -> StepResult:  # type: ignore[override]
            now = super().step(action)
            if self._time == 3:
                now.outcome[0], now.terminated[0], now.alive[0], now.cost[0] = Cause.CRASH_VEHICLE, True, False, 1.0
                self._alive[0] = False
            return now

    seed = next(
        s for s in range(50) if StaggeredStart(Doomed(3, 20, hazard=0.0), 15).reset(s).alive.tolist()[0] is False
    )
    env = StaggeredStart(Doomed(3, 20, hazard=0.0), 15)
    results = drive(env, seed, throttle=0.2)
    waited = starts(results).get(0, 99) > 3
    assert waited, "the seed must hold slot 0 back for three steps"
    assert not any(now.alive[0] or now.terminated[0] or now.truncated[0] or now.cost[0].any() for now in results)
    assert set(starts(results)) == {1, 2}


@pytest.mark.simulator
@pytest.mark.parametrize("backend", ["fast", "stock"])
def test_cars_stand_in_their_spaces_until_they_start(backend: str) -> None:
    inner = make_array_env(load_scenario("parking_lot", end_rule="all", backend=backend), ("termination",))
    try:
        env = StaggeredStart(inner, 60)
        now = env.reset(7)
        first = env.car_states().position.copy()
        waiting = ~now.alive
        for _ in range(10):
            now = env.step(np.tile(np.array([0.0, 1.0], np.float32), (env.num_slots, 1)))
            waiting &= ~now.alive & ~now.fresh
        moved = np.linalg.norm(env.car_states().position - first, axis=1)
        assert waiting.any()
        assert moved[waiting].max() < 0.05
        assert moved[now.alive].max() > 1.0
    finally:
        inner.close()


@pytest.mark.simulator
@pytest.mark.slow
def test_the_way_out_of_the_parking_lot_is_easy_and_the_others_are_not() -> None:
    """A driver that only follows its route mostly arrives when alone, and mostly crashes in the crowd."""
    example = Path(__file__).parent.parent / "examples" / "drive_route.py"

    def share(end: str, spread: int, *driver: str, scenario: str = "parking_lot", episodes: int = 2) -> float:
        line = [sys.executable, str(example), scenario, str(episodes), str(spread), *driver]
        answer = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        return sum(float(part.split("%")[0]) for part in answer.split(":")[1].split(",") if end in part)

    assert share("arrived", spread=4000) > 60
    assert share("arrived", spread=0) < 40
    assert share("arrived", 0, "maip3o-near-parking_lot") > 40  # it has learnt something
    # a newcomer has a route of its own: it hits others, but it stays on the road
    assert share("off_road", 0, scenario="intersection_respawn", episodes=1) < 20
