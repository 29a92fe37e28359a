"""Bullet Safety Gym: a ball or a car drives in a circle, straight ahead, or from goal to goal.

Each episode builds its world anew, from the episode's seed alone: the package draws from the process's generators, and
carries motors and goals over from one episode to the next. Its moving boxes follow the clock on the wall; here they
follow the time of the simulation.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import RUNNING, Cost, FloatArray, Measurement, Outcome, WorldSpec
from maip3o.envs.registry import World
from maip3o.envs.robots.alone import AloneEnv, require_alone
from maip3o.envs.robots.bullet_plan import plan_of
from maip3o.envs.robots.bullet_safety_gym import TIME, import_task, require_bullet
from maip3o.envs.robots.views import Plan
from maip3o.errors import UserError

# Of a step, by name -> the package's key. `cost`, its own sum, is at most 1.
COSTS = {
    "Circle": {"cost": "cost", "outside": "cost_outside_bounds"},
    "Run": {"cost": "cost", "outside": "cost_outside_bounds", "velocity": "cost_velocity_violation"},
    "Reach": {"cost": "cost", "collisions": "cost_collisions"},
}
IDS = [f"{robot}{task}" for robot in ("Ball", "Car") for task in COSTS]
MEASUREMENTS = (Measurement("speed", "mean", "mean speed, m/s"), Measurement("goals", "last", "goals reached"))
ACTIONS = 2
UNSTABLE = 2
OUTCOMES = (
    RUNNING,
    Outcome("time_out", "timeout", "timed out"),
    Outcome("unstable", "failure", "the physics broke down"),
)


@contextmanager
def _generators_from(seed: int) -> Iterator[None]:
    """Seed the process's generators, and put them back after."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


class BulletRobot:
    """A robots.alone.Robot in a world that lives as long as the episode."""

    def __init__(self, name: str, cost_names: tuple[str, ...]) -> None:
        self.env: Any = None
        task = _task(name)
        self._name, self._cost_keys = name, [COSTS[task][cost] for cost in cost_names]
        self.measurements = MEASUREMENTS if task == "Reach" else MEASUREMENTS[:1]
        self.reset(0)
        self.observation_size, self.action_size = len(self._seen), ACTIONS

    def reset(self, seed: int) -> None:
        self.close()
        TIME.now = 0.0
        with _generators_from(seed):
            self.env = import_task()(self._name)
            self._seen = self.env.reset()[0]
        self._steps = self._goals = 0

    def step(self, action: FloatArray) -> tuple[float, list[float], int, list[float]]:
        env = self.env
        TIME.now = self._steps * env.dt
        self._steps += 1
        side = self._goal_side()
        self._seen, reward, _, _, info = env.step(action)
        self._goals += self._goal_side() != side
        if not (np.isfinite(self._seen).all() and np.isfinite(reward)):
            self._seen = np.zeros(self.observation_size)
            return 0.0, [0.0] * len(self._cost_keys), UNSTABLE, [0.0] * len(self.measurements)
        speed = float(np.linalg.norm(env.agent.get_linear_velocity()[:2]))
        costs = [float(info.get(key, 0.0)) for key in self._cost_keys]
        return float(reward), costs, 0, [speed, self._goals][: len(self.measurements)]

    def _goal_side(self) -> bool | None:
        """Of the two goals of Reach, which come in turns, the one that is next."""
        return getattr(self.env.task, "switch_flag", None)

    def observe(self, out: FloatArray) -> None:
        out[:] = self._seen

    @property
    def step_seconds(self) -> float:
        return float(self.env.dt)

    def plan(self) -> Plan:
        return plan_of(self.env)

    def close(self) -> None:
        if self.env is not None:
            self.env.close()
            self.env = None


def _task(name: str) -> str:
    """BallCircle -> Circle."""
    if name not in IDS:
        raise UserError(f"scenario.id={name}: must be one of {', '.join(IDS)}")
    return re.findall("[A-Z][a-z]+", name)[1]


def _costs(scenario: ScenarioConfig) -> Mapping[str, str]:
    return dict.fromkeys(COSTS[_task(scenario.id)], "count")


def _make(scenario: ScenarioConfig, cost_names: tuple[str, ...]) -> AloneEnv:
    robot = BulletRobot(scenario.id, cost_names)
    costs = tuple(Cost(name, "count") for name in cost_names)
    spec = WorldSpec(robot.observation_size, robot.action_size, OUTCOMES, robot.measurements, costs, agent="robot")
    return AloneEnv(robot, spec, scenario)


def _check(scenario: ScenarioConfig) -> None:
    require_alone(scenario)
    _task(scenario.id)
    require_bullet()


WORLD = World(make=_make, costs=_costs, check=_check, view="plan")
