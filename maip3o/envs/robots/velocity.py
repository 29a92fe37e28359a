"""Safety Velocity: six MuJoCo robots that are paid for running, and a cost for each step above a speed.

Gymnasium's v4 robots (v5 has other rewards and other physics) under the limits of Safety Gymnasium. The policy acts in
[-1, 1], mapped linearly to the range of the motors. As there, nothing is clipped on the way: the motors clamp what lies
beyond their range, and the reward charges for the action as it was chosen.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maip3o.config.schema import ScenarioConfig
from maip3o.envs.contract import RUNNING, Cost, FloatArray, Measurement, Outcome, WorldSpec
from maip3o.envs.registry import World
from maip3o.envs.robots.alone import AloneEnv, require_alone
from maip3o.envs.robots.extras import require_mujoco
from maip3o.errors import UserError

KINDS = {"velocity": "count"}
FELL = 2
OUTCOMES = (RUNNING, Outcome("time_out", "timeout", "timed out"), Outcome("fell", "failure"))
MEASUREMENTS = (Measurement("speed", "mean", "mean speed, m/s"),)


Place = Callable[[], list[float]]  # where the robot is now: x, y


def _base(env: Any) -> Place:
    return env.data.qpos[:2].tolist  # a view, as below: MuJoCo keeps its arrays where they are


def _torso(env: Any) -> Place:
    return env.data.xpos[1, :2].tolist  # body 0 is the world


def _centre_of_mass(env: Any) -> Place:
    from gymnasium.envs.mujoco.humanoid_v4 import mass_center

    return lambda: mass_center(env.model, env.data).tolist()


@dataclass(frozen=True, slots=True)
class Limit:
    """A speed of x has a sign: running backwards is free."""

    metres_per_second: float
    of: str  # x | xy: the length of the velocity


@dataclass(frozen=True, slots=True)
class Kind:
    """What sets the six apart, besides Gymnasium's own classes."""

    place: Callable[[Any], Place]  # of Gymnasium's environment: the velocity is its way in a step, over the time
    v1: Limit
    v0: Limit
    falls: bool = True
    forward_weight: float = 1.0  # of the speed along x in the reward
    observes_forces: bool = False  # of contacts, which MuJoCo computes only when it is asked
    fastest: float = math.inf  # velocity of a joint that is observed
    view: tuple[float, float, float] = (4.5, -15.0, -0.2)  # of films: distance, elevation, height above the torso


ROBOTS = {
    "Ant": Kind(_torso, Limit(2.6222, "xy"), Limit(2.5745, "xy")),
    "HalfCheetah": Kind(_base, Limit(3.2096, "x"), Limit(2.8795, "x"), falls=False),
    "Hopper": Kind(_base, Limit(0.7402, "x"), Limit(0.37315, "x"), fastest=10.0),
    "Humanoid": Kind(
        _centre_of_mass, Limit(1.4149, "xy"), Limit(2.3475, "xy"), forward_weight=1.25, observes_forces=True
    ),
    "Swimmer": Kind(_base, Limit(0.2282, "x"), Limit(0.04845, "xy"), falls=False),
    "Walker2d": Kind(_base, Limit(2.3415, "x"), Limit(1.7075, "x"), fastest=10.0),
}


class VelocityRobot:
    """A robots.alone.Robot over Gymnasium's environment, without its wrappers and its dictionaries."""

    def __init__(self, name: str, version: str, charged: bool) -> None:
        import gymnasium
        import mujoco

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # v4 is old, and meant
            env: Any = gymnasium.make(f"{name}-v4", disable_env_checker=True).unwrapped
        self.env, self.name, self.kind = env, name, ROBOTS[name]
        self.limit: Limit = getattr(self.kind, version)
        self.charged = charged  # the cost is asked for
        self._half_range = env.model.actuator_ctrlrange[:, 1].copy()  # the ranges are symmetric
        self._free_root = env.model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
        self._camera: Any = None
        self._normalise = mujoco.mju_normalize4
        self._advance = partial(mujoco.mj_step, env.model, env.data, nstep=env.frame_skip)
        self._forces = partial(mujoco.mj_rnePostConstraint, env.model, env.data)
        # What is asked for in every step, once: each look-up in MuJoCo's structures takes about a microsecond.
        self._control, self._place, self._seconds = env.data.ctrl, self.kind.place(env), float(env.dt)
        self._position, self._velocity = env.data.qpos, env.data.qvel
        self._control_weight = env._ctrl_cost_weight
        self._healthy_reward = env._healthy_reward if self.kind.falls else 0.0

    def reset(self, seed: int) -> None:
        self.env.reset(seed=seed)
        if self._free_root:  # MuJoCo 2, whose observations the published results are of, did so by itself
            self._normalise(self.env.data.qpos[3:7])
        self._before = self._place()

    def step(self, action: FloatArray) -> tuple[float, Any, int, Any]:
        control = self._control
        np.multiply(action, self._half_range, out=control)
        self._advance()
        if self.kind.observes_forces:
            self._forces()
        (x_before, y_before), self._before = self._before, self._place()
        x, y = (self._before[0] - x_before) / self._seconds, (self._before[1] - y_before) / self._seconds
        reward = self.kind.forward_weight * x + self._healthy_reward - self._control_weight * control.dot(control)
        speed = x if self.limit.of == "x" else math.hypot(x, y)
        cost = speed > self.limit.metres_per_second
        fell = self.kind.falls and self.env.terminated
        return reward, cost if self.charged else (), FELL if fell else 0, speed

    def observe(self, out: FloatArray) -> None:
        if self.kind.observes_forces:
            out[:] = self.env._get_obs()
            return
        joints = len(out) - len(self._velocity)
        out[:joints] = self._position[-joints:]
        out[joints:] = self._velocity
        if self.kind.fastest < math.inf:
            np.minimum(np.maximum(out[joints:], -self.kind.fastest), self.kind.fastest, out=out[joints:])

    @property
    def step_seconds(self) -> float:
        return float(self.env.dt)

    def picture(self) -> NDArray[np.uint8]:
        """The robot in the middle, from its side."""
        if self._camera is None:
            from maip3o.envs.robots.mujoco_camera import MujocoCamera, View

            distance, elevation, height = self.kind.view
            self._camera = MujocoCamera(View(distance, elevation, look_at=(0.0, 0.0, height), follows=1))
        return self._camera.picture(self.env.model, self.env.data)

    def close(self) -> None:
        self.env.close()


def _make(scenario: ScenarioConfig, cost_names: tuple[str, ...]) -> AloneEnv:
    robot = VelocityRobot(scenario.id, _version(scenario), bool(cost_names))
    size = robot.env.observation_space.shape[0]
    outcomes = OUTCOMES if robot.kind.falls else OUTCOMES[:FELL]
    costs = tuple(Cost(name, KINDS[name]) for name in cost_names)
    spec = WorldSpec(
        size, robot.env.action_space.shape[0], outcomes, MEASUREMENTS, costs, agent="robot", failure="fell"
    )
    return AloneEnv(robot, spec, scenario)


def _version(scenario: ScenarioConfig) -> str:
    return str(scenario.settings.get("version", "v1"))


def _check(scenario: ScenarioConfig) -> None:
    require_alone(scenario)
    if scenario.id not in ROBOTS:
        raise UserError(f"scenario.id={scenario.id}: must be one of {', '.join(ROBOTS)}")
    for key in scenario.settings:
        if key != "version":
            raise UserError(f"scenario.settings.{key}: world velocity knows version alone")
    if _version(scenario) not in ("v1", "v0"):
        raise UserError(f"scenario.settings.version={_version(scenario)}: must be v1 or v0")
    require_mujoco(scenario)


WORLD = World(make=_make, costs=lambda scenario: KINDS, check=_check, view="camera", side_by_side=16)
