"""The sections of the report page, each a function from runs to Html ("" if there is nothing to show)."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import yaml

from maip3o.evaluation.card import rows_of
from maip3o.report import style
from maip3o.report.gallery import Drawing, drawings
from maip3o.report.groups import Group
from maip3o.report.markup import Html, element, table, together
from maip3o.report.media import replays, videos
from maip3o.report.runs import Run
from maip3o.report.tables import HEADINGS, cells, note, result_rows

VERDICTS = {"met": "good", "violated": "bad", "undecided": "unsure", "censored": "unsure"}


def results(groups: Sequence[Group]) -> Html:
    rows = [cells(row) for row in result_rows(groups)]
    return together([table(HEADINGS, rows, numbers_from=2), element("p", note(groups), class_="note")])


def differences(groups: Sequence[Group]) -> Html:
    """What sets the groups apart, then everything of each."""
    keys = sorted({key for group in groups for key in group.runs[0].compared_settings})
    settings = [group.runs[0].compared_settings for group in groups]
    differing = [key for key in keys if len({repr(s.get(key)) for s in settings}) > 1]
    names = [f"{group.label} ({group.scenario})" for group in groups]
    rows = [[key, *(_value(s.get(key, "not set")) for s in settings)] for key in differing]
    parts = [table(["Setting", *names], rows, numbers_from=len(names) + 1)] if rows else [element("p", "None.")]
    for name, group in zip(names, groups, strict=True):
        text = yaml.safe_dump(group.runs[0].settings, sort_keys=True, allow_unicode=True)
        parts.append(element("details", element("summary", f"All settings of {name}"), element("pre", text)))
    return together(parts)


def _value(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def curves(groups: Sequence[Group]) -> Html:
    """All figures. Those against episodes are open, the other axes are one click away."""
    shown: list[Html] = []
    more: list[Html] = []
    for drawing in drawings(groups):
        (more if drawing.name.endswith(("_by_env_steps", "_by_seconds")) else shown).append(_figure(drawing))
    parts = [element("div", *shown, class_="figures")]
    if more:
        summary = element("summary", "The same against environment steps and wall time")
        parts.append(element("details", summary, element("div", *more, class_="figures")))
    return together(parts)


def _figure(drawing: Drawing) -> Html:
    stream = io.BytesIO()
    with matplotlib.rc_context(style.SETTINGS):
        drawing.figure.savefig(stream, format="svg", metadata={"Date": None})
    source = "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode()
    image = element("img", src=source, alt=drawing.caption, loading="lazy")
    return element("figure", image, element("figcaption", drawing.caption))


def safety_cards(groups: Sequence[Group]) -> Html:
    """One card per run that has an evaluation.json."""
    cards = [_card(group, run) for group in groups for run in group.runs if _protocols(run)]
    return element("div", *cards, class_="cards") if cards else Html("")


def _protocols(run: Run) -> dict[str, Any]:
    protocols = (run.evaluation or {}).get("protocols")
    return protocols if isinstance(protocols, dict) else {}


def _card(group: Group, run: Run) -> Html:
    protocols = _protocols(run)
    rows = []
    for name, label, kind in rows_of(next(iter(protocols.values()))):
        figures = [_mapping(card, "figures", name) for card in protocols.values()]
        if any(figure.get("mean") is not None for figure in figures):
            rows.append([label, *(_interval(figure, kind) for figure in figures)])
    verdicts = []
    for name, constraint in _mapping(protocols.get("full"), "constraints").items():
        verdict = str(_mapping(constraint).get("verdict"))
        text = f"{name}: {verdict} (limit {_mapping(constraint).get('limit')}, cost "
        text += _interval(_mapping(constraint, "cost"), "number") + ")"
        verdicts.append(element("p", text, class_=f"verdict {VERDICTS.get(verdict, 'unsure')}"))
    titles = {"first": "until the first failure", "full": "to the end"}
    headings = ["Shares are of lives", *(titles.get(protocol, protocol) for protocol in protocols)]
    episodes = ", ".join(str(_mapping(card).get("episodes")) for card in protocols.values())
    heading = element("h3", f"{group.label}, {group.scenario}, seed {run.seed}")
    caption = element("p", f"Episodes: {episodes}. In brackets: 95 % intervals over episodes.", class_="note")
    return element("article", heading, *verdicts, table(headings, rows), caption)


def _mapping(value: Any, *keys: str) -> Mapping[str, Any]:
    """value[key][key]... as a mapping; an evaluation.json of another make has gaps, not errors."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _interval(figure: Mapping[str, Any], kind: str) -> str:
    try:
        mean, low, high = (float(figure[key]) for key in ("mean", "low", "high"))
    except (KeyError, TypeError, ValueError):
        return "-"
    if kind == "share":
        return f"{100 * mean:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    digits = 0 if abs(mean) >= 100 else 2
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def films(runs: Sequence[Run]) -> tuple[Html, list[dict[str, Any]]]:
    """Videos and places for replays, with the replays' data."""
    parts = []
    for video in videos(runs):
        title = f"{video.run.algo}, {video.run.scenario}, seed {video.run.seed}: {video.title}"
        if video.source is None:
            shown = element("p", f"Too large for this page: {video.path.name}", class_="note")
        else:
            shown = element("video", src=video.source, controls=True, preload="metadata")
        parts.append(element("figure", shown, element("figcaption", title)))
    episodes: list[dict[str, Any]] = []
    for run, data in replays(runs):
        title = f"{run.algo}, {run.scenario}, seed {run.seed}: {data.get('label', 'replay')}"
        button = element("button", "Play the replay", type="button", data_replay=str(len(episodes)))
        place = element("div", button, class_="replay-place")
        parts.append(element("figure", place, element("figcaption", title), class_="whole"))
        episodes.append(data)
    return (element("div", *parts, class_="films") if parts else Html("")), episodes


def throughput(groups: Sequence[Group]) -> Html:
    headings = ["Run", "Steps per second", "Episodes", "Steps", "Hours", "Simulate", "Infer", "Update", "State"]
    rows = []
    for group in groups:
        for run in group.runs:
            parts = [_sum(run, f"speed/{part}_seconds") for part in ("simulate", "infer", "update")]
            rows.append(
                [
                    f"{group.label}, {group.scenario}, seed {run.seed}",
                    _number(_mean(run, "speed/env_steps_per_second")),
                    _number(run.total("episodes")),
                    _number(run.total("env_steps")),
                    f"{run.total('seconds') / 3600:.2f}",
                    *(f"{_number(part)} s" for part in parts),
                    str(run.status.get("state", "unknown")),
                ]
            )
    text = "Simulate and infer are seconds of all workers together, update is that of the learner."
    return together([table(headings, rows), element("p", text, class_="note")])


def _mean(run: Run, key: str) -> float:
    _, values = run.series(key)
    return float(values.mean()) if len(values) else math.nan


def _sum(run: Run, key: str) -> float:
    _, values = run.series(key)
    return float(values.sum()) if len(values) else math.nan


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"


def _other_versions(run: Run) -> list[Any]:
    """What earlier sessions of the run were made with, if it was something else than the last."""
    sessions = [run.versions, *(old for old in run.versions.get("earlier") or [] if isinstance(old, dict))]
    made = [{k: v for k, v in session.items() if k not in ("command", "earlier")} for session in sessions]
    return [other for other in made[1:] if other != made[0]]


def versions(runs: Sequence[Run]) -> Html:
    """What the runs were made with: one column per distinct set."""
    columns: dict[str, tuple[dict[str, str], list[str]]] = {}
    for run in runs:
        known = {**run.versions, **_mapping(run.versions, "packages"), "earlier": _other_versions(run)}
        facts = {k: _value(v) for k, v in known.items() if k not in ("packages", "command")}
        columns.setdefault(repr(sorted(facts.items())), (facts, []))[1].append(
            f"{run.scenario}/{run.algo}/seed{run.seed}"
        )
    keys = list(dict.fromkeys(key for facts, _ in columns.values() for key in facts))
    headings = ["", *(f"{len(names)} run(s), e.g. {names[0]}" for _, names in columns.values())]
    rows = [[key, *(facts.get(key, "-") for facts, _ in columns.values())] for key in keys]
    return table(headings, rows, numbers_from=len(headings))
