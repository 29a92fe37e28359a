"""The report as one HTML file: style, figures, films and player are in it, nothing comes from a network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from maip3o.report import page_sections as sections
from maip3o.report.groups import Group
from maip3o.report.markup import Html, element, together
from maip3o.video.replay import embedded_json, player_script, player_style


def report_page(groups: Sequence[Group], remarks: Sequence[str], title: str) -> str:
    """The whole page. `remarks` name the directories that were left out."""
    runs = [run for group in groups for run in group.runs]
    films, episodes = sections.films(runs)
    content = {
        "Results": sections.results(groups),
        "Curves": sections.curves(groups),
        "Safety cards": sections.safety_cards(groups),
        "Films": films,
        "Differences in configuration": sections.differences(groups),
        "Throughput": sections.throughput(groups),
        "Versions": sections.versions(runs),
    }
    if remarks:
        content["Left out"] = element("ul", *(element("li", remark) for remark in remarks))
    shown = {heading: body for heading, body in content.items() if body}
    links = [element("a", heading, href=f"#{_anchor(heading)}") for heading in shown]
    summary = f"{len(runs)} runs of {len(groups)} experiments on {', '.join(dict.fromkeys(r.scenario for r in runs))}"
    body = element(
        "main",
        element("h1", title),
        element("p", summary, class_="note"),
        element("nav", *links),
        *(element("section", element("h2", name), part, id=_anchor(name)) for name, part in shown.items()),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(_asset("page.css") + (player_style() if episodes else ""))),
    )
    page = element("html", head, element("body", body, _player(episodes)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _player(episodes: Sequence[object]) -> Html:
    """The replay player, only where there is something to play."""
    if not episodes:
        return Html("")
    data = element("script", Html(embedded_json(episodes)), type="application/json", id="data")
    return together([data, element("script", Html(player_script() + _asset("page.js")))])


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _asset(name: str) -> str:
    return resources.files("maip3o.report").joinpath(name).read_text(encoding="utf-8")
