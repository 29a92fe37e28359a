"""The documented layout of the observation, held against what the cars really do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from maip3o.envs import load_scenario, make_array_env, observation_layout
from maip3o.envs.contract import FloatArray


def test_parts_follow_each_other_and_cover_the_vector() -> None:
    for name, size in (("intersection", 91), ("bottleneck", 96), ("tollgate", 156)):
        layout = observation_layout(name)
        assert [part.start for part in layout] == [0, *(part.stop for part in layout[:-1])]
        assert layout[-1].stop == size
        assert len({part.name for part in layout}) == len(layout)


def test_the_documentation_has_every_part() -> None:
    table = (Path(__file__).parent.parent / "docs" / "environment.md").read_text()
    for part in observation_layout("intersection"):
        numbers = f"{part.start}-{part.stop - 1}" if part.stop > part.start + 1 else str(part.start)
        assert (
            f"| {numbers} | `{part.name}` | {part.unit or '-'} | {part.low:g} | {part.high:g} | {part.meaning} |"
            in table
        )


def test_layout_follows_the_configured_sensors() -> None:
    scenario = load_scenario(
        "intersection", metadrive={"vehicle_config": {"lidar": {"num_lasers": 24, "distance": 30.0, "num_others": 2}}}
    )
    layout = {part.name: part for part in observation_layout(scenario)}
    assert layout["lidar"].slice == slice(27, 51)
    assert layout["lidar"].high == 30
    assert layout["other_car_2"].slice == slice(23, 27)


@pytest.mark.simulator
def test_numbers_mean_what_the_layout_says() -> None:
    layout = {part.name: part for part in observation_layout("intersection")}
    env = make_array_env(load_scenario("intersection"), ["termination"])
    first = env.reset(3).observation
    start = env.car_states()

    def quantity(observation: FloatArray, name: str) -> FloatArray:
        part = layout[name]
        return part.low + observation[:, part.start] * (part.high - part.low)

    # Two lanes of 3.5 m a direction; a new car stands straight in its lane and still.
    total = quantity(first, "distance_to_left") + quantity(first, "distance_to_right")
    assert np.allclose(total, 7.0, atol=1e-4)
    assert np.allclose(quantity(first, "heading"), 0, atol=1e-5)
    assert np.allclose(quantity(first, "speed"), 0, atol=1e-3)
    # Beams count counter-clockwise from ahead: the one towards the nearest car sees it.
    for slot in range(env.num_slots):
        offset = np.delete(start.position, slot, axis=0) - start.position[slot]
        nearest = offset[np.linalg.norm(offset, axis=1).argmin()]
        if np.linalg.norm(nearest) < 35:
            bearing = np.degrees(np.arctan2(nearest[1], nearest[0]) - start.heading[slot])
            beam = first[slot, layout["lidar"].start + round(bearing / 5) % 72]
            assert 0 < beam * 40 < np.linalg.norm(nearest)

    for _ in range(8):
        result = env.step(np.tile((0.3, 0.8), (env.num_slots, 1)))
    states = env.car_states()
    alive = result.alive
    assert alive.any()
    assert np.allclose(quantity(result.observation, "speed")[alive], states.speed[alive] * 3.6, atol=1e-2)
    assert np.allclose(quantity(result.observation, "last_steering")[alive], 0.3, atol=1e-5)
    assert np.allclose(quantity(result.observation, "last_throttle")[alive], 0.8, atol=1e-5)
    # Steering is positive to the left, and so the heading's sine turns negative.
    turned = np.unwrap(np.stack([start.heading, states.heading]), axis=0)
    assert (turned[1] - turned[0])[alive].min() > 0
    assert np.allclose(quantity(result.observation, "heading")[alive], -np.sin(turned[1] - turned[0])[alive], atol=1e-4)
    assert (quantity(result.observation, "yaw_rate")[alive] > 0).all()
    env.close()
