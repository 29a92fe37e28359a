"""Videos: what is drawn where, how time passes, and what ffmpeg makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from eval_footage import ARRIVAL, CRASH, STEPS, make_footage

from maip3o.data.statistics import EpisodeTable
from maip3o.envs.contract import Cost
from maip3o.envs.driving.outcomes import Cause, driving_spec
from maip3o.errors import RunError
from maip3o.video import palette
from maip3o.video.clips import crash_windows, outcome_seeds, worst_seeds
from maip3o.video.encode import write_gif, write_mp4
from maip3o.video.footage import CAR_LENGTH, Footage
from maip3o.video.frames import FPS, FREEZE_SECONDS, HOLD_SECONDS, Scene, clip_frames, moments, versus_frames
from maip3o.video.legend import legend
from maip3o.video.scene import Camera
from maip3o.video.text import draw_text, fit_text, text_width

WORLD = driving_spec(1, 2, (Cost("termination", "event"),))


def count_near(image: np.ndarray, colour: palette.Colour, tolerance: int = 12) -> int:
    return int(np.all(np.abs(image.astype(int) - colour) <= tolerance, axis=-1).sum())


def around(scene: Scene, image: np.ndarray, position: list[float], radius: int = 14) -> np.ndarray:
    x, y = scene.camera.pixels(np.array(position)).round().astype(int)
    return image[max(0, y - radius) : y + radius, max(0, x - radius) : x + radius]


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (639, 720), (1000, 400)])
def test_the_whole_map_is_in_the_picture(width: int, height: int) -> None:
    bounds = make_footage().tracks.road.bounds
    camera = Camera.framing(bounds, width, height)
    corners = camera.pixels(np.array([[bounds[0], bounds[1]], [bounds[2], bounds[3]]]))
    assert corners.min() > 0
    assert np.all(corners.max(axis=0) < [width, height])
    span = np.abs(corners[1] - corners[0]) / [width, height]
    assert span.max() > 0.8  # and fills it in one direction


def unpredicted() -> Footage:
    footage = make_footage()
    return replace(footage, risk=np.full_like(footage.risk, np.nan))


def test_cars_are_drawn_in_their_colours_where_they_are() -> None:
    scene = Scene(unpredicted(), whole_map=True)
    image = scene.frame(5.0).copy()
    for slot, position in enumerate([[-20.0, -2.0], [2.0, -20.0], [20.0, 2.0]]):
        assert count_near(around(scene, image, position), palette.agent_colour(slot)) > 30
    moved = scene.frame(8.0)
    # The car has driven 6 m on: its colour is left on the line of its route only.
    assert count_near(around(scene, moved, [-20.0, -2.0], 5), palette.agent_colour(0)) < 5
    assert count_near(around(scene, moved, [-14.0, -2.0]), palette.agent_colour(0)) > 30


def test_a_car_has_the_colour_of_what_the_critic_predicts_for_it() -> None:
    footage = make_footage()
    scene = Scene(footage, whole_map=True)
    image = scene.frame(5.0)
    for risk, position in ((0.02, [-20.0, -2.0]), (0.5, [2.0, -20.0]), (0.1, [20.0, 2.0])):
        colour = palette.risk_colour(risk, footage.limit)
        assert count_near(around(scene, image, position), colour) > 30


def far_apart() -> Footage:
    """The same on a map of a kilometre, with car 2 far away for its six steps."""
    footage = make_footage()
    footage.active[6:, 2] = False
    footage.tracks.position[:, 2] = [480.0, 2.0]
    footage.tracks.road = replace(footage.tracks.road, bounds=(-500.0, -500.0, 500.0, 500.0))
    return footage


@pytest.mark.parametrize("footage", [make_footage(), far_apart()], ids=["small", "large"])
def test_cars_are_forty_pixels_long_and_most_of_them_in_the_picture(footage: Footage) -> None:
    scene = Scene(footage)
    assert scene.camera.scale * CAR_LENGTH >= 40
    inside = []
    for step in range(footage.steps):
        pixels = scene.camera.pixels(footage.tracks.position[step]) - scene.view.corner(step)
        seen = np.all((pixels >= 0) & (pixels <= [scene.view.width, scene.view.height]), axis=-1)
        inside += seen[footage.active[step]].tolist()
    assert np.mean(inside) >= 0.5
    corners = np.array([scene.view.corner(time / 10) for time in range(10 * footage.steps)])
    assert np.abs(np.diff(corners, axis=0)).max() < 40  # the camera glides, it does not jump


def test_a_car_outside_of_the_picture_is_pointed_at() -> None:
    footage = far_apart()
    footage.active[:, 2] = True
    footage.tracks.position[:, 1] = [-480.0, -2.0]
    image = Scene(footage).frame(3.0)
    assert (
        count_near(image[:, :40], palette.agent_colour(1)) + count_near(image[:, 880:940], palette.agent_colour(2)) > 60
    )


def test_the_light_theme_is_light_and_has_the_same_marks() -> None:
    shares = {}
    for theme in ("light", "dark"):  # dark last: it is what the other tests expect
        palette.use(theme)
        shares[theme] = float(np.mean(Scene(make_footage()).frame(5.0)))
    assert shares["light"] > 190 > 80 > shares["dark"]


def test_the_legend_names_every_mark_and_the_scale() -> None:
    with_scale, without = legend(make_footage()), legend(unpredicted())
    assert with_scale.shape[0] > without.shape[0]
    for colour in (palette.GOOD, palette.BAD):
        assert count_near(with_scale[without.shape[0] - 12 :], colour, 20) > 20


def test_cars_move_between_steps() -> None:
    scene = Scene(make_footage())
    position, _ = scene._poses(5.5)
    assert position[0].tolist() == [-19.0, -2.0]


def test_crash_and_arrival_leave_their_marks() -> None:
    scene = Scene(unpredicted(), whole_map=True)
    before = scene.frame(float(CRASH)).copy()
    after = scene.frame(float(STEPS)).copy()
    wreck, home = [2.0, -10.0], [28.0, -2.0]
    assert (
        count_near(around(scene, after, wreck), palette.BAD)
        > 20
        > count_near(around(scene, before, wreck), palette.BAD)
    )
    assert count_near(around(scene, after, home), palette.GOOD) > 20


def test_status_knows_how_each_life_ended_and_when() -> None:
    status = make_footage().status()
    assert status[CRASH].tolist() == [0, 0, 0]
    assert status[CRASH + 1].tolist() == [0, Cause.CRASH_VEHICLE, 0]
    assert status[ARRIVAL + 1].tolist() == [Cause.ARRIVED, Cause.CRASH_VEHICLE, 0]
    assert status[STEPS].tolist() == [Cause.ARRIVED, Cause.CRASH_VEHICLE, Cause.TIME_OUT]


def test_time_passes_at_real_speed_and_stands_still_at_the_crash() -> None:
    footage = make_footage()
    times = [time for time, _ in moments(footage)]
    driving = STEPS * 0.1 * FPS
    assert len(times) == driving + 1 + round(FREEZE_SECONDS * FPS) + round(HOLD_SECONDS * FPS)
    assert times.count(float(CRASH + 1)) == 1 + round(FREEZE_SECONDS * FPS)
    assert len(list(moments(footage, freeze=False))) == driving + 1 + round(HOLD_SECONDS * FPS)


def test_the_lidar_is_shown_of_the_car_that_fails_next() -> None:
    focus = make_footage().focus()
    assert set(focus[: CRASH + 1]) == {1}
    assert set(focus[CRASH + 1 :]) == {2}  # nobody fails any more: the car that drives longest


def test_text_is_fitted_and_clipped() -> None:
    name = "a policy with a very long name"
    short = fit_text(name, 16, 120)
    assert short.endswith("…")
    assert text_width(short, 16) <= 120
    image = np.zeros((20, 40, 3), dtype=np.uint8)
    draw_text(image, name, 30, 12, 16, (255, 255, 255))
    draw_text(image, name, -500, -40, 16, (255, 255, 255))
    assert image.max() > 0


def test_mp4_and_gif_can_be_read_back(tmp_path: Path) -> None:
    footage = make_footage()
    path = tmp_path / "clip.mp4"
    count = write_mp4(path, clip_frames(footage, 640, 360))
    assert count == len(list(moments(footage)))
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert frames == count
    assert seconds == pytest.approx(count / FPS, abs=0.1)
    reader = imageio_ffmpeg.read_frames(str(path))
    assert next(reader)["size"] == (640, 360)
    first = np.frombuffer(next(reader), dtype=np.uint8).reshape(360, 640, 3)
    expected = next(iter(clip_frames(footage, 640, 360)))
    assert np.abs(first.astype(int) - expected).mean() < 6
    reader.close()
    write_gif(path, tmp_path / "clip.gif", width=320)
    assert (tmp_path / "clip.gif").read_bytes()[:6] in (b"GIF87a", b"GIF89a")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clip.gif", "clip.mp4"]


def test_a_failed_encoding_leaves_no_file_behind(tmp_path: Path) -> None:
    def broken() -> object:
        yield np.zeros((64, 64, 3), dtype=np.uint8)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_mp4(tmp_path / "clip.mp4", broken())  # type: ignore[arg-type]
    with pytest.raises(RunError, match="no frame"):
        write_mp4(tmp_path / "clip.mp4", iter(()))
    assert list(tmp_path.iterdir()) == []


def test_side_by_side_shows_both_at_the_same_time() -> None:
    frames = versus_frames(make_footage("one"), make_footage("two"), 1280, 720)
    image = next(frames)
    assert image.shape == (720, 1280, 3)
    left, right = image[:480, :639], image[:480, 641:]
    assert np.array_equal(left, right)


def test_outcomes_prefer_episodes_that_show_nothing_else() -> None:
    zeros = np.zeros(3)
    names = ("arrived", "crash_vehicle", "crash_object", "crash_sidewalk", "off_road", "time_out", "cut", "eliminated")
    causes = dict.fromkeys(names, zeros)
    causes |= {
        "arrived": np.array([1.0, 8.0, 2.0]),
        "crash_vehicle": np.array([3.0, 4.0, 1.0]),
        "eliminated": np.array([3.0, 4.0, 1.0]),
    }
    ten = np.full(3, 10.0)
    grid = np.zeros((3, 2))
    table = EpisodeTable(WORLD, np.arange(3), ten, ten, ten, ten, grid, causes, grid, grid, grid)
    assert outcome_seeds(table) == {"arrived": 1, "crash_vehicle": 0}
    assert worst_seeds(table, 2) == [1, 0]


def test_an_episode_is_filmed_once_whatever_happened_in_it() -> None:
    one = np.ones(1)
    names = ("arrived", "crash_vehicle", "crash_object", "crash_sidewalk", "off_road", "time_out", "cut", "eliminated")
    causes = dict.fromkeys(names, one)
    table = EpisodeTable(WORLD, np.arange(1), one, 8 * one, one, one, one, causes, one, one, one)
    assert outcome_seeds(table) == {"arrived": 0}


def test_reel_windows_end_shortly_after_the_crash() -> None:
    (window,) = crash_windows(make_footage())
    assert window[0] == 0
    assert CRASH + 1 < window[1] < CRASH + 20
