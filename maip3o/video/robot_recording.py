"""An episode of a robot driven again with pictures of it: episodes are pure functions of their seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import cv2
import numpy as np

from maip3o.config.schema import ScenarioConfig
from maip3o.data.episode import Episode
from maip3o.envs.registry import find_world
from maip3o.envs.robots.alone import AloneEnv
from maip3o.envs.robots.views import CameraRobot, Plan, PlanRobot
from maip3o.models.compiled.act import NumpyActor
from maip3o.runners.rollout import rollout
from maip3o.runners.worker import Job, environment
from maip3o.video.plan import draw_plan
from maip3o.video.text import Image

MOST_PICTURES = 500  # of an episode: software rendering takes 50 ms for one
TRAIL = 20  # pictures for which the way of a plan's robot is shown
QUALITY = 93  # of JPEG, in which pictures travel


@dataclass(slots=True)
class RobotRecording:
    episode: Episode
    views: list[bytes] | list[Plan]  # JPEG or plan: before the first step, and after each `every` steps
    every: int
    step_seconds: float

    def picture(self, index: int) -> Image:
        """[HEIGHT, WIDTH, 3] RGB."""
        view = self.views[index]
        if isinstance(view, bytes):
            image = cv2.imdecode(np.frombuffer(view, np.uint8), cv2.IMREAD_COLOR)
            assert image is not None
            return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
        recent = [plan for plan in self.views[max(0, index - TRAIL) : index + 1] if isinstance(plan, Plan)]
        return draw_plan(view, [plan.shapes[-1].outline.mean(axis=0) for plan in recent])


def record_robot(what: tuple[Job, int]) -> RobotRecording:
    """Runs inside a worker process. The episode comes first, so that a short one is shown step by step."""
    job, seed = what
    env = cast(AloneEnv, environment(job.scenario, job.cost_names))
    episode = rollout(env, NumpyActor(job.weights, job.model), seed, job.deterministic)
    every = -(-episode.length // MOST_PICTURES)
    look = _eye(env, job.scenario)
    env.reset(seed)
    views = [look()]
    for step, action in enumerate(episode.action, start=1):
        env.step(action)
        if step % every == 0 or step == episode.length:
            views.append(look())
    return RobotRecording(episode, views, every, cast(CameraRobot, env.robot).step_seconds)


def check_camera(what: tuple[ScenarioConfig, tuple[str, ...]]) -> None:
    """Runs inside a worker process: a UserError if no picture can be taken here."""
    env = cast(AloneEnv, environment(*what))
    env.reset(0)
    _eye(env, what[0])()


def _eye(env: AloneEnv, scenario: ScenarioConfig) -> Callable[[], Any]:
    """A function that looks at the robot in the way of its world."""
    if find_world(scenario).view == "plan":
        return cast(PlanRobot, env.robot).plan
    return lambda: _jpeg(cast(CameraRobot, env.robot).picture())


def _jpeg(image: Image) -> bytes:
    done, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    assert done
    return data.tobytes()
