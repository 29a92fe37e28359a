"""A replay as one HTML file: the data of the episode, the player and its style, nothing from a network.

The player is also usable inside another page: put `player_style()` and `player_script()` into it once, and for each
episode call `mountReplay(element, data)` with the JSON of `replay_data(footage)` (through `embedded_json`).
"""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from maip3o.envs.contract import FloatArray
from maip3o.envs.driving.outcomes import ELIMINATED, Cause
from maip3o.video.footage import CAR_LENGTH, CAR_WIDTH, CAUSE_TEXT, STEP_SECONDS, Footage
from maip3o.video.palette import agent_colour

SCRIPTS = ("replay_draw.js", "replay.js", "replay_panel.js")


def replay_data(footage: Footage, what: str = "") -> dict[str, Any]:
    """What the player needs of an episode; arrays are base64 of little-endian bytes, in the order [step, slot]."""
    tracks = footage.tracks
    arrays = {
        "x": _floats(tracks.position[..., 0]),
        "y": _floats(tracks.position[..., 1]),
        "heading": _floats(tracks.heading),
        "speed": _floats(tracks.speed),
        "present": _bytes(tracks.present),
        "active": _bytes(footage.active),
        "cause": _bytes(footage.cause),
        "reward": _floats(footage.reward),
        "cost": _floats(footage.cost),
        "risk": _floats(footage.risk),
        "value": _floats(footage.value),
        "lidar": _bytes(np.clip(np.floor(footage.lidar * 255), 0, 255)),
    }
    return {
        "label": " · ".join(part for part in (footage.policy, footage.scenario, f"seed {footage.seed}", what) if part),
        "policy": footage.policy,
        "scenario": footage.scenario,
        "seed": footage.seed,
        "steps": footage.steps,
        "slots": footage.slots,
        "step_seconds": STEP_SECONDS,
        "constraint": footage.constraint,
        "limit": footage.limit if math.isfinite(footage.limit) else None,
        "car": [CAR_LENGTH, CAR_WIDTH],
        "colours": ["#{:02x}{:02x}{:02x}".format(*agent_colour(slot)) for slot in range(footage.slots)],
        "causes": [CAUSE_TEXT[cause] for cause in Cause],
        "arrived": int(Cause.ARRIVED),
        "failures": [int(cause) for cause in ELIMINATED],
        "rays": int(footage.lidar.shape[-1]),
        "lidar_range": footage.lidar_range,
        "road": {
            "bounds": list(tracks.road.bounds),
            "lanes": [_flat(lane) for lane in tracks.road.lanes],
            "lines": [{"kind": kind, "points": _flat(line)} for line, kind in tracks.road.lines],
        },
        "routes": [{"slot": r.slot, "start": r.start, "line": _flat(r.line)} for r in tracks.routes],
        "arrays": arrays,
    }


def _floats(values: FloatArray) -> dict[str, str]:
    return {"kind": "float32", "base64": base64.b64encode(values.astype("<f4").tobytes()).decode()}


def _bytes(values: Any) -> dict[str, str]:
    return {"kind": "uint8", "base64": base64.b64encode(np.asarray(values).astype(np.uint8).tobytes()).decode()}


def _flat(points: FloatArray) -> list[float]:
    return np.round(points, 2).ravel().tolist()


def embedded_json(value: Any) -> str:
    """JSON that is safe between <script> tags: no name in it can close the tag."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def player_script() -> str:
    """The player: defines mountReplay(element, data)."""
    return "\n".join(_asset(name) for name in SCRIPTS)


def player_style() -> str:
    return _asset("replay.css")


def replay_page(footages: Sequence[tuple[str, Footage]], title: str) -> str:
    """A page that plays the episodes; each comes with a word on what it shows."""
    return Template(_asset("replay.html")).substitute(
        title=html.escape(title),
        style=player_style(),
        script=player_script(),
        data=embedded_json([replay_data(footage, what) for what, footage in footages]),
    )


def _asset(name: str) -> str:
    return resources.files("maip3o.video").joinpath(name).read_text(encoding="utf-8")
