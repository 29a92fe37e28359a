"""The report as one HTML file: style and figures are in it, films are linked, nothing comes from a network."""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import matplotlib
import yaml

from maip3o.evaluation.card import PROTOCOLS, interval, rows_of
from maip3o.report import style
from maip3o.report.gallery import drawings
from maip3o.report.groups import Group
from maip3o.report.runs import Run
from maip3o.report.tables import HEADINGS, cells, note, result_rows

VERDICTS = {"met": "good", "violated": "bad", "undecided": "unsure"}


def report_page(groups: Sequence[Group], remarks: Sequence[str], title: str, folder: Path) -> str:
    """The whole page. `remarks` name the directories that were left out; `folder` is where the page will lie."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("maip3o.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("page.html")
    runs = [run for group in groups for run in group.runs]
    parts: dict[str, Any] = {
        "Safety cards": [_card(group, run) for group in groups for run in group.runs if _protocols(run)],
        "Films": [film for run in runs for film in _films(run, folder)],
        "Left out": list(remarks),
    }
    always = ("Results", "Figures", "Differences in configuration", "Throughput", "Versions")
    order = ("Results", "Figures", "Safety cards", "Films", *always[2:], "Left out")
    scenarios = ", ".join(dict.fromkeys(run.scenario for run in runs))
    page = template.render(
        title=title,
        summary=f"{len(runs)} runs of {len(groups)} experiments on {scenarios}",
        style=Path(__file__).with_name("page.css").read_text(encoding="utf-8"),
        sections=[name for name in order if name in always or parts[name]],
        results={"headings": HEADINGS, "rows": [cells(row) for row in result_rows(groups)], "note": note(groups)},
        drawings=[{"caption": drawing.caption, "svg": _svg(drawing.figure)} for drawing in drawings(groups)],
        cards=parts["Safety cards"],
        films=parts["Films"],
        differences=_differences(groups),
        settings=[(_name(g), yaml.safe_dump(g.runs[0].settings, allow_unicode=True)) for g in groups],
        throughput=_throughput(groups),
        versions=_versions(runs),
        remarks=remarks,
    )
    return page.strip() + "\n"


def _svg(figure: Any) -> str:
    stream = io.BytesIO()
    with matplotlib.rc_context(style.SETTINGS):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return base64.b64encode(stream.getvalue()).decode()


def _name(group: Group, run: Run | None = None) -> str:
    return f"{group.label}, {group.scenario}" + (f", seed {run.seed}" if run else "")


def _differences(groups: Sequence[Group]) -> dict[str, Any]:
    """What sets the groups apart."""
    settings = [group.runs[0].compared_settings for group in groups]
    keys = sorted({key for part in settings for key in part})
    differing = [key for key in keys if len({repr(part.get(key)) for part in settings}) > 1]
    rows = [[key, *(_value(part.get(key, "not set")) for part in settings)] for key in differing]
    return {"headings": ["Setting", *map(_name, groups)], "rows": rows}


def _value(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _protocols(run: Run) -> dict[str, Any]:
    protocols = (run.evaluation or {}).get("protocols")
    return protocols if isinstance(protocols, dict) else {}


def _card(group: Group, run: Run) -> dict[str, Any]:
    """The card of a run that has an evaluation.json."""
    protocols = _protocols(run)
    rows = []
    for name, label, kind in rows_of(next(iter(protocols.values()))):
        figures = [_mapping(card, "figures", name) for card in protocols.values()]
        if any(figure.get("mean") is not None for figure in figures):
            kinds = {str(figure.get("interval", "")) for figure in figures}
            rows.append([label, *(_interval(figure, kind) for figure in figures), ", ".join(kinds)])
    verdicts = []
    for name, constraint in _mapping(protocols.get("full"), "constraints").items():
        verdict = str(_mapping(constraint).get("verdict"))
        cost = _interval(_mapping(constraint, "cost"), "number")
        text = f"{name}: {verdict} (limit {_mapping(constraint).get('limit')}, cost {cost})"
        verdicts.append((VERDICTS.get(verdict, "unsure"), text))
    return {
        "name": _name(group, run),
        "verdicts": verdicts,
        "headings": ["Shares are of lives", *(PROTOCOLS.get(p, p) for p in protocols), "Interval"],
        "rows": rows,
        "episodes": ", ".join(str(_mapping(card).get("episodes")) for card in protocols.values()),
    }


def _mapping(value: Any, *keys: str) -> Mapping[str, Any]:
    """value[key][key]... as a mapping; an evaluation.json of another make has gaps, not errors."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _interval(figure: Mapping[str, Any], kind: str) -> str:
    try:
        return interval({key: float(figure[key]) for key in ("mean", "low", "high")}, kind).replace("\\[", "[")
    except (KeyError, TypeError, ValueError):
        return "-"


def _films(run: Run, folder: Path) -> list[dict[str, str]]:
    """Films that evaluation.json names, other films and replay pages in the run's directory: links from `folder`."""
    named: dict[Path, str] = {}
    for clip in (run.evaluation or {}).get("videos") or []:
        if isinstance(clip, dict) and isinstance(clip.get("file"), str):
            named[(run.directory / clip["file"]).resolve()] = f"{clip.get('what')}, seeds {clip.get('seeds')}"
    others = [path.resolve() for ending in ("*.mp4", "replay.html") for path in run.directory.rglob(ending)]
    return [
        {
            "path": quote(os.path.relpath(path, folder.resolve())),
            "title": f"{run.algo}, {run.scenario}, seed {run.seed}: {named.get(path, path.stem.replace('_', ' '))}",
        }
        for path in sorted({*named, *others})
        if path.is_file() and path.suffix in (".mp4", ".html")
    ]


def _throughput(groups: Sequence[Group]) -> dict[str, Any]:
    headings = ["Run", "Steps per second", "Episodes", "Steps", "Hours", "Simulate", "Infer", "Update", "State"]
    rows = []
    for group in groups:
        for run in group.runs:
            speed = run.series("speed/env_steps_per_second")[1]
            seconds = [run.series(f"speed/{part}_seconds")[1] for part in ("simulate", "infer", "update")]
            row = [_name(group, run), _number(speed.mean() if len(speed) else math.nan)]
            row += [_number(run.total("episodes")), _number(run.total("env_steps"))]
            row += [f"{run.total('seconds') / 3600:.2f}"]
            row += [f"{_number(part.sum() if len(part) else math.nan)} s" for part in seconds]
            rows.append([*row, str(run.status.get("state", "unknown"))])
    return {"headings": headings, "rows": rows}


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"


def _other_versions(run: Run) -> list[Any]:
    """What earlier sessions of the run were made with, if it was something else than the last."""
    sessions = [run.versions, *(old for old in run.versions.get("earlier") or [] if isinstance(old, dict))]
    made = [{k: v for k, v in session.items() if k not in ("command", "earlier")} for session in sessions]
    return [other for other in made[1:] if other != made[0]]


def _versions(runs: Sequence[Run]) -> dict[str, Any]:
    """What the runs were made with: one column per distinct set."""
    columns: dict[str, tuple[dict[str, str], list[str]]] = {}
    for run in runs:
        known = {**run.versions, **_mapping(run.versions, "packages"), "earlier": _other_versions(run)}
        facts = {k: _value(v) for k, v in known.items() if k not in ("packages", "command")}
        names = columns.setdefault(repr(sorted(facts.items())), (facts, []))[1]
        names.append(f"{run.scenario}/{run.algo}/seed{run.seed}")
    keys = list(dict.fromkeys(key for facts, _ in columns.values() for key in facts))
    headings = ["", *(f"{len(names)} run(s), e.g. {names[0]}" for _, names in columns.values())]
    return {"headings": headings, "rows": [[k, *(facts.get(k, "-") for facts, _ in columns.values())] for k in keys]}
