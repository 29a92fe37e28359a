"""Videos and replays that lie in run directories, for a page that carries them in itself."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maip3o.report.runs import Run

MOST_BYTES = 48 * 2**20  # of videos in one page: beyond that browsers become slow
REPLAY_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Video:
    run: Run
    path: Path
    title: str
    source: str | None  # data: address; None: too large to be carried


def videos(runs: Sequence[Run]) -> list[Video]:
    """Every MP4 of the runs: those that evaluation.json names, and others in the directory. Smallest first carried."""
    found = [(run, path, title) for run in runs for path, title in _videos_of(run)]
    room = MOST_BYTES
    result = []
    for run, path, title in sorted(found, key=lambda item: item[1].stat().st_size):
        size = path.stat().st_size
        carried = size <= room
        room -= size if carried else 0
        source = f"data:video/mp4;base64,{base64.b64encode(path.read_bytes()).decode()}" if carried else None
        result.append(Video(run, path, title, source))
    order = {run.directory: index for index, run in enumerate(runs)}
    return sorted(result, key=lambda video: (order[video.run.directory], video.path.name))


def _videos_of(run: Run) -> Iterator[tuple[Path, str]]:
    named: dict[Path, str] = {}
    for clip in (run.evaluation or {}).get("videos") or []:
        if isinstance(clip, dict) and isinstance(clip.get("file"), str):
            facts = [str(value) for key, value in clip.items() if key != "file" and isinstance(value, (str, int))]
            named[(run.directory / clip["file"]).resolve()] = ", ".join(facts)
    for path in sorted({*named, *(path.resolve() for path in run.directory.rglob("*.mp4"))}):
        if path.is_file():
            yield path, named.get(path) or path.stem


def replays(runs: Sequence[Run]) -> list[tuple[Run, dict[str, Any]]]:
    """The episodes of every replay page (python -m maip3o.replay) in the runs' directories, as its player's data."""
    episodes = []
    for run in runs:
        for path in sorted(run.directory.glob("*.html")):
            found = REPLAY_DATA.search(path.read_text(encoding="utf-8", errors="replace"))
            try:
                content = json.loads(found.group(1)) if found else []
            except ValueError:
                continue  # half-written: the page is made again by the same command
            episodes += [(run, e) for e in content if isinstance(e, dict) and {"arrays", "road", "steps"} <= e.keys()]
    return episodes
