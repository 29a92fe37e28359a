"""Films of robots: their pictures, the strip beside them, and what the command makes."""

from __future__ import annotations

from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from maip3o.algo.learner import Learner
from maip3o.config.schema import Config
from maip3o.data.statistics import EpisodeTable
from maip3o.envs import load_scenario, make_array_env
from maip3o.envs.contract import RUNNING, Outcome, WorldSpec
from maip3o.envs.robots.views import HEIGHT, WIDTH
from maip3o.errors import UserError
from maip3o.evaluation.command import run as evaluate
from maip3o.models.compiled.act import NumpyActor
from maip3o.policy import load_policy
from maip3o.runners.checkpoint import Checkpoint, save
from maip3o.runners.compose import compose
from maip3o.runners.rollout import rollout
from maip3o.runners.worker import Job, environment
from maip3o.video import palette
from maip3o.video.clips import telling_seeds
from maip3o.video.plan import draw_plan, plan_colours
from maip3o.video.robot_film import make_robot_footage, robot_frames
from maip3o.video.robot_recording import MOST_PICTURES, record_robot
from maip3o.video.scene import Camera
from maip3o.video.strip import SUMMARY_WIDTH


def make_run(folder: Path, scenario: str, horizon: int) -> Path:
    """A run directory of an untrained policy."""
    config: Config = compose([f"+scenario={scenario}", f"scenario.horizon={horizon}", "model.hidden_sizes=[8]"])[0]
    spec = make_array_env(config.scenario, list(config.constraints)).spec
    learner = Learner(config, spec, "cpu")
    counters = {"iteration": 0, "episodes": 0, "env_steps": 0, "agent_steps": 0, "seconds": 0.0}
    save(folder / "checkpoints" / "last.pt", Checkpoint(config, learner.state_dict(), counters))
    return folder


def job_of(folder: Path) -> Job:
    policy = load_policy(folder)
    return Job(policy.config.scenario, tuple(policy.config.constraints), policy.config.model, policy.weights)


def near(image: np.ndarray, colour: palette.Colour, tolerance: int = 14) -> np.ndarray:
    return np.all(np.abs(image.astype(int) - colour) <= tolerance, axis=-1)


def test_the_plan_shows_every_thing_where_it_stands() -> None:
    env = make_array_env(load_scenario("ball_reach"), [])
    env.reset(3)
    plan = env.robot.plan()  # type: ignore[attr-defined]
    assert [shape.kind for shape in plan.shapes].count("hazard") == 8
    camera = Camera.framing(plan.bounds, WIDTH, HEIGHT, 0.5)
    image = draw_plan(plan, [])
    for shape in plan.shapes[1:]:
        x, y = camera.pixels(shape.outline.mean(axis=0)).round().astype(int)
        covered = [other.kind for other in plan.shapes if np.ptp(other.outline, axis=0).max() < 3]
        assert near(image[y, x], plan_colours()[shape.kind]) or len(covered) > 1
    robot = env.robot.env.agent.get_position()[:2]  # type: ignore[attr-defined]
    assert plan.shapes[-1].outline.mean(axis=0) == pytest.approx(robot, abs=1e-9)
    env.close()


@pytest.mark.parametrize(("scenario", "colour"), [("point_goal1", (230, 10, 50)), ("ant_velocity", (205, 160, 115))])
def test_a_picture_shows_the_robot_and_each_world_anew(scenario: str, colour: palette.Colour) -> None:
    env = make_array_env(load_scenario(scenario), [])
    env.reset(3)
    first = env.robot.picture().copy()  # type: ignore[attr-defined]
    assert first.shape == (HEIGHT, WIDTH, 3)
    assert near(first, colour, 60).sum() > 200
    for _ in range(30):
        env.step(np.ones((1, env.spec.action_size)))
    assert np.abs(env.robot.picture().astype(int) - first).max() > 60  # type: ignore[attr-defined]
    env.reset(4)
    assert np.abs(env.robot.picture().astype(int) - first).max() > 60  # type: ignore[attr-defined]
    env.reset(3)
    assert np.abs(env.robot.picture().astype(int) - first).max() < 20  # type: ignore[attr-defined]


def test_filming_changes_no_number(tmp_path: Path) -> None:
    job = job_of(make_run(tmp_path, "ball_run", 510))
    recording = record_robot((job, 5))
    env = environment(job.scenario, job.cost_names)
    alone = rollout(env, NumpyActor(job.weights, job.model), 5, False)
    assert alone.observation.tobytes() == recording.episode.observation.tobytes()
    assert alone.reward.tobytes() == recording.episode.reward.tobytes()
    assert (recording.every, len(recording.views)) == (2, 256)
    assert len(recording.views) <= MOST_PICTURES + 1


def test_frames_show_the_cost_the_limit_and_the_prediction(tmp_path: Path) -> None:
    run = make_run(tmp_path, "ball_run", 40)
    policy = load_policy(run)
    footage = make_robot_footage(policy, policy.config.scenario, record_robot((job_of(run), 1)))
    assert footage.limit == 25
    assert np.isfinite(footage.risk).all()
    footage.cost = np.zeros(40)
    footage.cost[20:] = 2.0
    frames = [frame.copy() for frame in robot_frames(footage)]
    assert frames[0].shape == (HEIGHT, WIDTH + SUMMARY_WIDTH, 3)
    border = [near(frame[4:6, 100:200], palette.BAD).mean() > 0.9 for frame in frames[:41]]
    assert border == [step > 20 for step in range(41)]
    bars = [frame[170, WIDTH + 20 : -20] for frame in frames]  # full at twice the limit
    assert not near(bars[20], palette.GOOD).any()
    assert near(bars[30], palette.GOOD).mean() == pytest.approx(20 / 50, abs=0.02)
    assert near(bars[40], palette.BAD).mean() == pytest.approx(40 / 50, abs=0.02)
    assert near(frames[40][240:380, WIDTH:], palette.WARN).sum() > 300  # the curve of the cost


def test_the_telling_episodes_of_a_robot() -> None:
    world = WorldSpec(1, 1, (RUNNING, Outcome("time_out", "timeout"), Outcome("fell", "failure")))
    four = np.arange(4.0)
    outcomes = {"time_out": np.array([1.0, 1, 1, 0]), "fell": np.array([0.0, 0, 0, 1])}
    cost = np.array([[0.0], [9.0], [3.0], [1.0]])
    returns = np.array([0.0, 5.0, 6.0, 30.0])
    ones = np.ones(4)
    grid = np.zeros((4, 1))
    table = EpisodeTable(world, np.arange(4), four, ones, returns, ones, grid, outcomes, cost, grid, grid)
    assert telling_seeds(table) == {"typical": 1, "costliest": 2, "fell": 3}


@pytest.mark.parametrize("scenario", ["ball_run", "point_button1"])
def test_the_command_makes_films(scenario: str, tmp_path: Path) -> None:
    run, out = make_run(tmp_path / "run", scenario, 15), tmp_path / "out"
    evaluate([f"checkpoint={run}", "episodes=2", "video=true", "num_workers=1", f"out={out}"])
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(out / "typical.mp4"))
    assert frames > 15
    assert seconds > 1
    for wish in ("replay=true", f"versus={run}"):
        with pytest.raises(UserError, match="show cars on their map"):
            evaluate([f"checkpoint={run}", wish, f"out={out}"])
