"""Slots, causes, costs and ends, on a scripted backend: exact, no simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.driving.backend import RawStep, empty_raw_step
from maip3o.envs.driving.costs import driving_costs
from maip3o.envs.driving.outcomes import Cause
from maip3o.envs.driving.rules import SlotEnv
from maip3o.envs.parallel import ParallelDriving
from maip3o.errors import UserError

NAMES = ("termination", "crash", "off_road")
COSTS = driving_costs(ScenarioConfig(name="scripted"), NAMES)
A, SIZE = 4, 3


class Scripted:
    """A backend that replays events: per step a list of (slot, flag); the other living cars drive on."""

    num_slots, observation_size, action_size = A, SIZE, 2

    def __init__(self, *steps: list[tuple[int, str]]) -> None:
        self.steps = list(steps)
        self.living = np.ones(A, dtype=bool)
        self.actions: list[np.ndarray] = []

    def reset(self, seed: int) -> RawStep:
        raw = empty_raw_step(A, SIZE)
        raw.fresh[:] = True
        raw.fresh_observation[:] = 0.5
        return raw

    def step(self, action: np.ndarray) -> RawStep:
        self.actions.append(action)
        raw = empty_raw_step(A, SIZE)
        raw.acted[:] = self.living
        raw.observation[self.living] = np.arange(1, A + 1, dtype=np.float32)[self.living, None] / 10
        raw.reward[self.living] = 1.0
        raw.route_completion[self.living] = 1.2
        for slot, flag in self.steps.pop(0):
            getattr(raw, flag)[slot] = True
            if flag == "fresh":
                self.living[slot] = True
                raw.fresh_observation[slot] = 0.9
            else:
                raw.ended[slot] = True
                self.living[slot] = False
        return raw

    def close(self) -> None: ...


def play(backend: Scripted, end_rule: str = "all") -> tuple[SlotEnv, list]:
    env = SlotEnv(backend, end_rule, COSTS)
    results = [env.reset(0)]
    while backend.steps and not results[-1].over:
        results.append(env.step(np.zeros((A, 2))))
    return env, results


def test_reset_gives_only_observations_of_living_slots() -> None:
    _, (result,) = play(Scripted())
    assert result.alive.all()
    assert result.fresh.all()
    assert (result.observation == 0.5).all()
    assert not result.over
    assert not result.reward.any()
    assert (result.outcome == Cause.NONE).all()


@pytest.mark.parametrize(
    ("flags", "cause", "costs"),
    [
        (["arrived"], Cause.ARRIVED, (0, 0, 0)),
        (["crash_vehicle"], Cause.CRASH_VEHICLE, (1, 1, 0)),
        (["crash_object"], Cause.CRASH_OBJECT, (1, 1, 0)),
        (["crash_sidewalk", "out_of_road"], Cause.CRASH_SIDEWALK, (1, 1, 1)),
        (["out_of_road"], Cause.OFF_ROAD, (1, 0, 1)),
        (["max_step"], Cause.TIME_OUT, (0, 0, 0)),
        # A road exit must not hide a crash, nor may an arrival; and both flags cost.
        (["out_of_road", "crash_vehicle"], Cause.CRASH_VEHICLE, (1, 1, 1)),
        (["arrived", "crash_vehicle"], Cause.CRASH_VEHICLE, (1, 1, 0)),
        (["arrived", "out_of_road"], Cause.ARRIVED, (0, 0, 1)),
        (["max_step", "crash_vehicle"], Cause.CRASH_VEHICLE, (1, 1, 0)),
    ],
)
def test_cause_and_costs_come_from_the_flags(flags: list[str], cause: Cause, costs: tuple[int, ...]) -> None:
    _, (_, result) = play(Scripted([(1, flag) for flag in flags]))
    assert result.outcome[1] == cause
    assert tuple(result.cost[1]) == costs
    assert result.outcome[[0, 2, 3]].tolist() == [Cause.NONE] * 3
    assert not result.cost[[0, 2, 3]].any()


def test_time_out_is_truncated_and_everything_else_terminated_never_both() -> None:
    _, (_, result) = play(Scripted([(0, "max_step"), (1, "crash_vehicle"), (2, "arrived")]))
    assert result.truncated.tolist() == [True, False, False, False]
    assert result.terminated.tolist() == [False, True, True, False]


def test_the_ended_car_keeps_its_last_observation_apart_and_its_slot_goes_silent() -> None:
    _, (_, result, after) = play(Scripted([(1, "out_of_road")], []))
    assert (result.final_observation[1] == np.float32(0.2)).all()
    assert not result.final_observation[[0, 2, 3]].any()
    assert not result.observation[1].any()
    assert result.alive.tolist() == [True, False, True, True]
    assert after.reward.tolist() == [1, 0, 1, 1]


def test_half_rule_ends_when_more_than_half_are_eliminated_and_cuts_the_living() -> None:
    _, results = play(Scripted([(0, "crash_vehicle"), (1, "out_of_road")], [], [(2, "crash_object")], []), "half")
    assert [result.over for result in results] == [False, False, False, True]
    last = results[-1]
    assert last.outcome.tolist() == [Cause.NONE, Cause.NONE, Cause.CRASH_OBJECT, Cause.CUT]
    assert last.truncated.tolist() == [False, False, False, True]
    assert last.terminated.tolist() == [False, False, True, False]
    assert (last.final_observation[3] == np.float32(0.4)).all()
    assert not last.alive.any()


def test_arrivals_do_not_count_as_eliminations() -> None:
    _, results = play(Scripted([(0, "arrived"), (1, "arrived"), (2, "arrived")], []), "half")
    assert [result.over for result in results] == [False, False, False]


def test_first_rule_ends_at_the_first_elimination_but_not_at_an_arrival() -> None:
    _, results = play(Scripted([(0, "arrived")], [(1, "out_of_road")], []), "first")
    assert [result.over for result in results] == [False, False, True]
    assert results[-1].outcome.tolist() == [Cause.NONE, Cause.OFF_ROAD, Cause.CUT, Cause.CUT]


@pytest.mark.parametrize("rule", ["half", "first", "all"])
def test_every_rule_ends_when_nobody_drives_any_more(rule: str) -> None:
    env, results = play(Scripted([(slot, "arrived") for slot in range(A)]), rule)
    assert results[-1].over
    with pytest.raises(UserError, match="after the end"):
        env.step(np.zeros((A, 2)))


def test_a_new_car_takes_the_slot_in_the_step_in_which_the_old_one_arrived() -> None:
    _, (_, result, after) = play(Scripted([(2, "arrived"), (2, "fresh")], []))
    assert result.outcome[2] == Cause.ARRIVED
    assert (result.final_observation[2] == np.float32(0.3)).all()
    assert (result.observation[2] == np.float32(0.9)).all()
    assert result.fresh.tolist() == [False, False, True, False]
    assert result.alive.all()
    assert not after.fresh.any()


def test_route_completion_stays_within_its_range() -> None:
    _, (_, result) = play(Scripted([]))
    assert (result.measurements[:, 0] == 1.0).all()


def test_the_end_rule_can_change_between_episodes() -> None:
    env, _ = play(Scripted([(0, "out_of_road")]), "half")
    env.end_rule = "first"
    env._backend = Scripted([(0, "out_of_road")])  # type: ignore[assignment]
    env.reset(1)
    assert env.step(np.zeros((A, 2))).over


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros((A, 3)), "shape"),
        (np.zeros(2), "shape"),
        (np.full((A, 2), np.nan), "not finite"),
        (np.full((A, 2), np.inf), "not finite"),
    ],
)
def test_bad_actions_are_refused_before_anything_moves(action: np.ndarray, message: str) -> None:
    backend = Scripted([])
    env, _ = play(backend)
    env.reset(0)
    calls = len(backend.actions)
    with pytest.raises(UserError, match=message):
        env.step(action)
    assert len(backend.actions) == calls


def test_rows_of_dead_slots_may_hold_anything() -> None:
    env = SlotEnv(Scripted([(1, "arrived")], []), "all", COSTS)  # type: ignore[arg-type]
    env.reset(0)
    env.step(np.zeros((A, 2)))
    action = np.zeros((A, 2))
    action[1] = np.nan
    assert not env.step(action).over


@pytest.mark.parametrize("seed", [-1, 2**31, 1.5, "3", True, None])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(UserError, match="seed"):
        SlotEnv(Scripted(), "all", COSTS).reset(seed)  # type: ignore[arg-type]


def too_fast(raw: RawStep, eliminated: np.ndarray, *, factor: float) -> np.ndarray:
    """A cost from outside the package."""
    return factor * (raw.speed > 1.0).astype(np.float32)


def scenario_with(**costs: dict[str, Any]) -> ScenarioConfig:
    return ScenarioConfig(name="scripted", costs=costs)


def test_costs_take_parameters_and_may_come_from_outside() -> None:
    own = {"cost": f"{__name__}:too_fast", "factor": 3}
    costs = driving_costs(scenario_with(hurry={"cost": "speed", "threshold": 2.0}, own=own), ("hurry", "own", "crash"))
    assert [(cost.declared.name, cost.declared.kind) for cost in costs] == [
        ("hurry", "count"),
        ("own", "count"),
        ("crash", "event"),
    ]
    raw = Scripted([(0, "crash_vehicle")]).step(np.zeros((A, 2)))
    raw.speed[:3] = (0.5, 1.5, 2.5)
    nobody = np.zeros(A, bool)
    assert costs[0].function(raw, nobody)[:3].tolist() == [0, 0, 1]
    assert costs[1].function(raw, nobody)[:3].tolist() == [0, 3, 3]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cost": "sped"}, r"constraints\.x\.cost=sped: known are termination, crash, off_road, speed, or package"),
        ({"cost": "nowhere:f"}, r"constraints\.x\.cost=nowhere:f: cannot be imported"),
        ({"cost": "speed", "limits": 1}, r"constraints\.x\.limits=1: this cost takes threshold"),
        ({"cost": "speed", "threshold": "fast"}, r"constraints\.x\.threshold=fast: must be a number"),
        ({"cost": f"{__name__}:too_fast"}, r"constraints\.x: its cost needs factor"),
    ],
)
def test_a_wrong_cost_is_refused_in_one_line(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        driving_costs(scenario_with(x=settings), ["x"])


def pettingzoo(*steps: list[tuple[int, str]], respawn: bool = False) -> ParallelDriving:
    scenario = ScenarioConfig(name="scripted", map="intersection", num_agents=A, horizon=10, respawn=respawn)
    env = ParallelDriving(scenario, SlotEnv(Scripted(*steps), "all", COSTS))  # type: ignore[arg-type]
    env.reset(seed=0)
    return env


def still(env: ParallelDriving) -> dict[str, list[float]]:
    return {agent: [0.0, 0.0] for agent in env.agents}


def test_pettingzoo_drops_an_ended_agent_and_says_why() -> None:
    env = pettingzoo([(1, "crash_vehicle")], [])
    observations, rewards, terminated, truncated, infos = env.step(still(env))
    assert terminated == {"agent0": False, "agent1": True, "agent2": False, "agent3": False}
    assert not any(truncated.values())
    assert infos["agent1"]["cause"] == "crash_vehicle"
    assert infos["agent1"]["costs"] == {"termination": 1.0, "crash": 1.0, "off_road": 0.0}
    assert not infos["agent1"]["arrived"]
    assert infos["agent0"]["route_completion"] == 1.0
    assert (observations["agent1"] == np.float32(0.2)).all()
    assert rewards["agent1"] == 1.0
    assert env.agents == ["agent0", "agent2", "agent3"]
    assert set(env.step(still(env))[0]) == {"agent0", "agent2", "agent3"}


def test_pettingzoo_never_uses_a_name_twice() -> None:
    env = pettingzoo([(1, "arrived"), (1, "fresh")], [(1, "arrived"), (1, "fresh")], respawn=True)
    observations, _, terminated, _, infos = env.step(still(env))
    assert terminated["agent1"]
    assert infos["agent1"]["arrived"]
    assert (observations["agent1"] == np.float32(0.2)).all()
    assert not terminated["agent4"]
    assert (observations["agent4"] == np.float32(0.9)).all()
    assert infos["agent4"]["slot"] == 1
    assert env.agents == ["agent0", "agent4", "agent2", "agent3"]
    env.step(still(env))
    assert env.agents == ["agent0", "agent5", "agent2", "agent3"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent1": [0.0, 0.0]}, "'agent1', which does not drive"),
        ({"nobody": [0.0, 0.0]}, "'nobody', which does not drive"),
        ({"agent0": [0.0, np.nan]}, "'agent0' is not finite"),
        ({"agent0": [0.0]}, r"'agent0' has shape \(1,\)"),
        ({"agent0": "left"}, "'agent0' is not a list of numbers"),
        ({"agent0": None}, "'agent0'"),
    ],
)
def test_pettingzoo_refuses_bad_actions_and_nothing_moves(change: dict[str, object], message: str) -> None:
    env = pettingzoo([(1, "arrived")], [])
    env.step(still(env))
    with pytest.raises(UserError, match=message):
        env.step({**still(env), **change})
    with pytest.raises(UserError, match="no action for 'agent0'"):
        env.step({"agent2": [0.0, 0.0], "agent3": [0.0, 0.0]})
    assert len(env.step(still(env))[0]) == 3


def test_pettingzoo_seeds_of_following_episodes_come_from_the_last_seed() -> None:
    def seeds(env: ParallelDriving) -> list[int]:
        seen: list[int] = []
        reset = env.array_env.reset
        env.array_env.reset = lambda seed: (seen.append(seed), reset(seed))[1]  # type: ignore[method-assign]
        env.reset(seed=5)
        env.reset()
        env.reset()
        return seen

    first, second = seeds(pettingzoo([])), seeds(pettingzoo([]))
    assert first == second
    assert len(set(first)) == 3
