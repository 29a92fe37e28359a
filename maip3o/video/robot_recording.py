"""An episode of a robot driven again with pictures of it: episodes are pure functions of their seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.data.episode import Episode
from maip3o.envs.contract import FloatArray
from maip3o.envs.registry import find_world
from maip3o.envs.robots.alone import AloneEnv
from maip3o.envs.robots.views import CameraRobot, PlanRobot
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.rollout import rollout
from maip3o.runners.worker import Job, environment
from maip3o.video.plan import draw_plan
from maip3o.video.text import Image

MOST_PICTURES = 500  # of an episode: software rendering takes 50 ms for one
TRAIL = 40  # steps behind the robot of a plan
QUALITY = 93  # of JPEG, in which the pictures travel


@dataclass(slots=True)
class RobotRecording:
    episode: Episode
    pictures: list[bytes]  # JPEG: before the first step, and after each `every` steps
    every: int
    step_seconds: float

    def picture(self, index: int) -> Image:
        """[HEIGHT, WIDTH, 3] RGB."""
        data = np.frombuffer(self.pictures[index], np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)
        assert image is not None
        return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)


def record_pictures(what: tuple[Job, int]) -> RobotRecording:
    """Runs inside a worker process. The episode comes first, so that a short one is shown step by step."""
    job, seed = what
    env = cast(AloneEnv, environment(job.scenario, job.cost_names))
    episode = rollout(env, NumpyActor(job.weights, job.model), seed, job.deterministic)
    every = -(-episode.length // MOST_PICTURES)
    eye = _Eye(env, job.scenario)
    env.reset(seed)
    pictures = [eye.look()]
    for step, action in enumerate(episode.action, start=1):
        env.step(action)
        eye.follow()
        if step % every == 0 or step == episode.length:
            pictures.append(eye.look())
    return RobotRecording(episode, pictures, every, eye.step_seconds)


def check_camera(what: tuple[ScenarioConfig, tuple[str, ...]]) -> None:
    """Runs inside a worker process: a UserError if no picture can be taken here."""
    env = cast(AloneEnv, environment(*what))
    env.reset(0)
    _Eye(env, what[0]).look()


class _Eye:
    """Looks at the robot in the way of its world."""

    def __init__(self, env: AloneEnv, scenario: ScenarioConfig) -> None:
        self._robot = env.robot
        self._is_plan = find_world(scenario).view == "plan"
        self._trail: list[FloatArray] = []
        self.step_seconds = cast(CameraRobot, env.robot).step_seconds

    def look(self) -> bytes:
        if self._is_plan:
            image = draw_plan(cast(PlanRobot, self._robot).plan(), self._trail)
        else:
            image = cast(CameraRobot, self._robot).picture()
        done, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        assert done
        return data.tobytes()

    def follow(self) -> None:
        """Keep where the robot of a plan is now."""
        if self._is_plan:
            outline = cast(PlanRobot, self._robot).plan().shapes[-1].outline
            self._trail = [*self._trail[-TRAIL:], outline.mean(axis=0)]
