"""One task of Safety Gymnasium with a quick step: rewards, costs and physics equal the package's own to the bit.

What happens seldom (building a world, a new goal) is left to the package. What happens at each step stands here, once
per step and compiled: the package looks bodies up by name and computes the same mj_forward three times.
"""

from __future__ import annotations

import warnings
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maip3o.envs.contract import RUNNING, FloatArray, Outcome
from maip3o.envs.robots import navigation_kernels as kernels
from maip3o.envs.robots.mujoco_camera import MujocoCamera, View
from maip3o.envs.robots.safety_gymnasium import import_builder

SUBSTEPS = 10  # of a control step
BROKEN = -10.0  # the package's reward for physics that fail
VASE_SPEED = 1e-4  # m/s: below it a vase stands
PREFIXES = {"button": kernels.BUTTON, "gremlin": kernels.GREMLIN, "vase": kernels.VASE}
BAD_STATES = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQACC) + 1)
UNSTABLE, NO_GOAL = 2, 3  # outcomes; 1 is the time-out
OUTCOMES = (
    RUNNING,
    Outcome("time_out", "timeout", "timed out"),
    Outcome("unstable", "failure", "the physics broke down"),
    Outcome("no_goal", "end", "no room for another goal"),
)


class Course:
    """A robots.alone.Robot in a room with a goal, or buttons, and what it should keep away from."""

    def __init__(self, robot: str, task: str, cost_names: tuple[str, ...]) -> None:
        mujoco.set_mju_user_warning(lambda text: None)  # it would write MUJOCO_LOG.TXT into the working directory
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its observation space, whose bounds do not fit into float32
            builder = import_builder()
            self._env: Any = builder(task_id=f"Safety{robot}{task}-v0", config={"agent_name": robot})
        self._task: Any = self._env.task
        self._task.random_generator.build_layout = self._layout
        self._kinds = [thing for thing in self._task._obstacles if thing.is_lidar_observed]  # as the robot sees them
        self._buttons: Any = getattr(self._task, "buttons", None)
        self._gremlins: Any = getattr(self._task, "gremlins", None)
        self._vases: Any = getattr(self._task, "vases", None)
        self._cost_names = cost_names
        self._found = np.zeros(kernels.KINDS)
        self._row = np.zeros(self._env.observation_space.shape[0])
        self.observation_size = len(self._row)
        reach = float(self._task.placements_conf.extents[2])  # of the square in which things are placed
        self._camera = MujocoCamera(View(3.2 * reach, -60.0, look_at=(0.0, -0.1 * reach, 0.0)))
        self.action_size = int(self._env.action_space.shape[0])

    def reset(self, seed: int) -> None:
        self._env.reset(seed=seed)
        self._bind()
        self._goals = 0

    def step(self, action: FloatArray) -> tuple[float, list[float], int, int]:
        if not self._simulate(action):
            return BROKEN, [0.0] * len(self._cost_names), UNSTABLE, self._goals
        distance = self._goal_distance()
        pressed = kernels.touched(self._data.contact.geom, self._kind_of, self._goal_button(), self._found)
        reached = pressed if self._buttons is not None else distance <= self._task.goal.size
        reward = self._task.last_dist_goal - distance
        self._task.last_dist_goal = distance
        costs = self._costs()
        self._task.specific_step()  # the buttons' timer
        outcome = 0
        if reached:
            reward += 1.0
            self._goals += 1
            outcome = self._next_goal()
        return reward, [costs[name] for name in self._cost_names], outcome, self._goals

    def observe(self, out: FloatArray) -> None:
        """Sensors, then what lies where, kind by kind."""
        plain = len(self._sensors)
        row = self._row
        row[:plain] = self._data.sensordata[self._sensors]
        if self._wheel is not None:
            mujoco.mju_quat2Mat(row[plain : plain + 9], self._data.sensordata[self._wheel])
        seen = row[-kernels.BINS * len(self._kinds) :].reshape(-1, kernels.BINS)
        kernels.observe_objects(self._xpos, self._position, self._rotation, self._objects, self._object_kinds, seen)
        if self._buttons is not None and self._buttons.timer != 0:
            seen[self._kinds.index(self._buttons)] = 0.0
        out[:] = row

    @property
    def step_seconds(self) -> float:
        return float(SUBSTEPS * self._task.model.opt.timestep)

    def picture(self) -> NDArray[np.uint8]:
        """The whole room, from above and aslant."""
        return self._camera.picture(self._model, self._data)

    def close(self) -> None:
        pass

    def _simulate(self, action: FloatArray) -> bool:
        """Ten steps of MuJoCo; False if it had to give up and start from the rest pose."""
        model, data = self._model, self._data
        data.ctrl[:] = np.clip(action, -1.0, 1.0)
        self._task.random_generator.binomial(SUBSTEPS, 1.0)  # always ten, but the draw moves the generator on
        if self._gremlins is None:
            mujoco.mj_step(model, data, SUBSTEPS)
        else:
            for _ in range(SUBSTEPS):
                data.mocap_pos[:] = _gremlin_place(self._gremlins, data.time)
                mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        return not data.warning.number[BAD_STATES].any()  # MuJoCo resets what breaks down, and counts it

    def _goal_distance(self) -> float:
        goal = self._xpos[self._goal_body]
        return float(np.sqrt(np.sum(np.square(goal[:2] - self._position[:2]))))

    def _goal_button(self) -> int:
        """Its geom; -1 where nothing has to be pressed."""
        return -1 if self._buttons is None else int(self._button_geoms[self._buttons.goal_button])

    def _costs(self) -> dict[str, float]:
        """By name, then their sum as the package counts it: 1 if there is any."""
        found = self._found
        costs = {}
        if self._buttons is not None:
            active = self._buttons.timer == 0  # after each goal the others are harmless for ten steps
            costs["buttons"] = float(active and found[kernels.BUTTON])
        inside = kernels.is_inside_any(self._xpos, self._position, self._hazards, self._task.hazards.size)
        costs["hazards"] = float(inside)
        if self._gremlins is not None:
            costs["gremlins"] = float(found[kernels.GREMLIN])
        if self._vases is not None and self._vases.is_constrained:
            costs["vases_contact"] = float(found[kernels.VASE])
            speed = np.sqrt(np.square(self._data.qvel[self._vase_velocities]).sum(axis=1))
            costs["vases_velocity"] = float(bool((speed >= VASE_SPEED).any()))
        costs["cost"] = float(any(costs.values()))
        return costs

    def _next_goal(self) -> int:
        """The package's way to another goal; it draws from the episode's generator. Returns the outcome."""
        from safety_gymnasium.utils.common_utils import ResamplingError

        self._task.update_layout()
        try:
            self._task.update_world()
        except ResamplingError:
            return NO_GOAL
        return 0

    def _bind(self) -> None:
        """Find the parts of the world that has just been built. The views stay true while it lives."""
        model, data = self._task.model, self._task.data
        self._model, self._data, self._xpos = model, data, data.xpos
        robot = model.body("agent").id
        self._position, self._rotation = data.xpos[robot], data.xmat[robot]
        agent = self._task.agent
        names = [*agent.sensor_conf.sensors, *agent.sensor_info.ballangvel_names]
        self._sensors = np.concatenate([_addresses(model.sensor(name)) for name in names])
        wheels = agent.sensor_info.ballquat_names  # the car's rear wheel is a ball
        self._wheel = _addresses(model.sensor(wheels[0])) if wheels else None
        bodies = [[model.body(name).id for name in _body_names(kind)] for kind in self._kinds]
        self._objects = np.concatenate(bodies)
        self._object_kinds = np.repeat(np.arange(len(bodies)), [len(part) for part in bodies])
        of_kind = {kind.name: np.array(part) for kind, part in zip(self._kinds, bodies, strict=True)}
        self._goal_body, self._hazards = int(of_kind["goal"][0]), of_kind["hazards"]
        if self._vases is not None:
            starts = [int(model.body(body).dofadr[0]) for body in of_kind["vases"]]
            self._vase_velocities = np.array(starts)[:, None] + np.arange(3)
        geoms = [model.geom(index).name for index in range(model.ngeom)]
        self._kind_of = np.array([_geom_kind(name, agent.body_info.geom_names) for name in geoms])
        self._button_geoms = np.flatnonzero(self._kind_of == kernels.BUTTON)

    def _layout(self) -> dict[str, FloatArray]:
        """The package's draw of a layout, from the same numbers, compiled: of Button 2 it takes seconds in Python."""
        generator = self._task.random_generator
        random = generator.random_generator
        boxes = [
            generator.constrain_placement(generator.placements_extents, k) for _, k in generator.placements.values()
        ]
        keepout = np.array([keepout for _, keepout in generator.placements.values()])
        places = np.zeros((len(boxes), 2))
        start, count, used = random.get_state(), 4096, kernels.TOO_FEW
        while used == kernels.TOO_FEW:
            random.set_state(start)
            used = kernels.draw_layout(random.random_sample(count), np.array(boxes), keepout, places)
            count *= 4
        if used == kernels.NO_LAYOUT:
            raise RuntimeError(f"{self._env.task_id}: found no layout of this seed's objects")
        random.set_state(start)
        random.random_sample(used)
        generator.layout = dict(zip(generator.placements, places, strict=True))
        return generator.layout


def _gremlin_place(gremlins: Any, time: float) -> tuple[float, float, float]:
    """Where on its own circle each of them is pulled to."""
    return np.sin(time) * gremlins.travel, np.cos(time) * gremlins.travel, gremlins.size


def _addresses(sensor: Any) -> Any:
    start = int(sensor.adr[0])
    return np.arange(start, start + int(sensor.dim[0]))


def _body_names(kind: Any) -> list[str]:
    if not hasattr(kind, "num"):
        return [kind.name]
    ending = "obj" if kind.name == "gremlins" else ""
    return [f"{kind.name[:-1]}{index}{ending}" for index in range(kind.num)]


def _geom_kind(name: str, robot: list[str]) -> int:
    if name in robot:
        return kernels.ROBOT
    return next((kind for prefix, kind in PREFIXES.items() if name.startswith(prefix)), kernels.OTHER)
