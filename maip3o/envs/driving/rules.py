"""The rules above either backend: when a life ends and why, what it costs, when the episode is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from maip3o.envs.contract import BoolArray, FloatArray, IntArray, StepResult
from maip3o.envs.driving.backend import Backend, RawStep
from maip3o.envs.driving.costs import DrivingCost
from maip3o.envs.driving.outcomes import Cause, driving_spec
from maip3o.envs.driving.views import CarStates, RoadMap
from maip3o.envs.scenarios import END_RULES
from maip3o.errors import UserError


class SlotEnv:
    """An ArrayEnv over a backend.

    end_rule: "half" ends the episode when more than half of `num_slots` cars have been eliminated (crash or road exit),
    "first" at the first elimination, "all" when nobody drives any more (which ends it under every rule).
    encode: makes the cars' observations [A, O], a new array, from the backend's; rows of zeros must stay zeros.
    """

    def __init__(
        self,
        backend: Backend,
        end_rule: str,
        costs: Sequence[DrivingCost],
        encode: Callable[[FloatArray], FloatArray] = np.copy,
    ) -> None:
        if end_rule not in END_RULES:
            raise UserError(f"scenario.end_rule={end_rule}: must be one of {', '.join(END_RULES)}")
        self.end_rule = end_rule  # training and evaluation change it between episodes: an engine takes seconds to start
        self._costs = [cost.function for cost in costs]
        self._backend, self._encode = backend, encode
        self.num_slots = backend.num_slots
        declared = tuple(cost.declared for cost in costs)
        self.spec = driving_spec(backend.observation_size, backend.action_size, declared)
        self._allowed = np.inf
        self._eliminated = 0
        self._alive = np.zeros(self.num_slots, dtype=np.bool_)
        self._started = self._closed = False

    def reset(self, seed: int) -> StepResult:
        if self._closed:
            raise UserError("the environment is closed: make a new one")
        raw = self._backend.reset(check_seed(seed))
        self._allowed = {"half": self.num_slots // 2, "first": 0, "all": np.inf}[self.end_rule]
        self._eliminated = 0
        self._started = True
        return self._result(raw, np.zeros(self.num_slots, dtype=np.int8))

    def step(self, action: FloatArray) -> StepResult:
        if not self._alive.any():
            raise UserError("step() after the end of the episode: call reset(seed) first")
        self._check_action(action)
        raw = self._backend.step(action)
        if raw.ended.any() or raw.fresh.any():
            return self._result(raw, causes(raw))
        return self._nothing_ended(raw)

    def _nothing_ended(self, raw: RawStep) -> StepResult:
        """The common case of _result, without what it does not need."""
        none = np.zeros(self.num_slots, dtype=np.bool_)
        return StepResult(
            observation=self._encode(raw.observation),
            alive=self._alive.copy(),
            fresh=none,
            reward=raw.reward.copy(),
            cost=self._cost(raw, none),
            terminated=none.copy(),
            truncated=none.copy(),
            outcome=np.zeros(self.num_slots, dtype=np.int8),
            final_observation=np.zeros_like(raw.observation),
            measurements=_measurements(raw),
            over=False,
        )

    def _result(self, raw: RawStep, cause: IntArray) -> StepResult:
        eliminated = is_eliminated(cause)
        self._eliminated += int(eliminated.sum())
        going_on = raw.acted & ~raw.ended
        alive = going_on | raw.fresh
        # MetaDrive cannot step without a living car, and its own "__all__" may stay False on a mixed last step.
        over = not alive.any() or self._eliminated > self._allowed
        if over:
            cause[going_on] = Cause.CUT
            alive = np.zeros_like(alive)
        fresh = raw.fresh & alive
        truncated = (cause == Cause.TIME_OUT) | (cause == Cause.CUT)
        seen = self._encode(raw.observation)
        observation = np.where((going_on & alive)[:, None], seen, np.float32(0))
        observation[fresh] = self._encode(raw.fresh_observation)[fresh]
        self._alive = alive
        return StepResult(
            observation=observation,
            alive=alive.copy(),
            fresh=fresh,
            reward=raw.reward.copy(),
            cost=self._cost(raw, eliminated),
            terminated=(cause != Cause.NONE) & ~truncated,
            truncated=truncated,
            outcome=cause,
            final_observation=np.where((cause != Cause.NONE)[:, None], seen, np.float32(0)),
            measurements=_measurements(raw),
            over=over,
        )

    def _cost(self, raw: RawStep, eliminated: BoolArray) -> FloatArray:
        cost = np.zeros((self.num_slots, len(self._costs)), dtype=np.float32)
        for k, function in enumerate(self._costs):
            cost[:, k] = function(raw, eliminated)
        return cost

    def _check_action(self, action: FloatArray) -> None:
        expected = (self.num_slots, self.spec.action_size)
        if np.shape(action) != expected:
            raise UserError(f"action has shape {np.shape(action)}: must be {expected}, one row per slot")
        finite = np.isfinite(action)
        if finite.all():
            return
        bad = self._alive & ~finite.all(axis=1)
        if bad.any():
            slot = int(bad.argmax())
            raise UserError(f"action of slot {slot} is not finite: {np.asarray(action)[slot].tolist()}")

    def car_states(self) -> CarStates:
        return self._running().car_states()

    def road_map(self) -> RoadMap:
        return self._running().road_map()

    def routes(self) -> list[FloatArray]:
        return self._running().routes()

    def _running(self) -> Backend:
        if self._closed or not self._started:
            raise UserError("no map and no cars yet: call reset(seed) first, and close() last")
        return self._backend

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._alive[:] = False
            self._backend.close()


def _measurements(raw: RawStep) -> FloatArray:
    """[A, 2], in the order of outcomes.MEASUREMENTS."""
    return np.stack([raw.route_completion.clip(0.0, 1.0), raw.speed], axis=-1)


def causes(raw: RawStep) -> IntArray:
    """Why each car that ended in this step ended: [A] int8.

    A crash with a car or an object outranks everything, for MetaDrive's own order would hide it behind an arrival or a
    road exit in the same step. An arrival outranks a touched line or kerb, as it does in MetaDrive's reward.
    """
    cause = np.full(raw.ended.shape, Cause.CRASH_OBJECT, dtype=np.int8)
    for flag, value in (
        (raw.max_step, Cause.TIME_OUT),
        (raw.out_of_road, Cause.OFF_ROAD),
        (raw.crash_sidewalk, Cause.CRASH_SIDEWALK),
        (raw.arrived, Cause.ARRIVED),
        (raw.crash_object, Cause.CRASH_OBJECT),
        (raw.crash_vehicle, Cause.CRASH_VEHICLE),
    ):
        cause[flag] = value
    cause[~raw.ended] = Cause.NONE
    return cause


def is_eliminated(cause: IntArray) -> BoolArray:
    """[A]: the cause is one of outcomes.ELIMINATED."""
    return (cause >= Cause.CRASH_VEHICLE) & (cause <= Cause.OFF_ROAD)


def check_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**31:
        raise UserError(f"seed={seed!r}: must be an integer in [0, 2147483648)")
    return int(seed)
