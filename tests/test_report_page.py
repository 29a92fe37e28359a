"""The report page: what it shows, that it needs no network, that names stay names, and that it works in a browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from eval_footage import make_footage
from synthetic_runs import write_evaluation, write_run
from test_eval_replay import in_browser

from maip3o.report.__main__ import report
from maip3o.report.groups import group_runs
from maip3o.report.page import report_page
from maip3o.report.reading import read_runs
from maip3o.video.replay import replay_page

NASTY = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">&$"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms with two seeds; one run evaluated, with a video and a replay; one broken directory."""
    root = tmp_path_factory.mktemp("runs")
    for algo in ("maip3o", "mappo"):
        for seed in (0, 1):
            write_run(root / algo / str(seed), algo=algo, seed=seed, episodes=100, scenario=NASTY.replace("/", "|"))
    whole = root / "maip3o" / "0"
    write_evaluation(whole, episodes=100)
    (whole / "replay.html").write_text(replay_page([("shown", make_footage(policy=NASTY))], NASTY))
    (whole / "clip.mp4").write_bytes(b"not really a film")
    (root / "broken").mkdir()
    return root


@pytest.fixture(scope="module")
def page(runs: Path) -> str:
    found, remarks = read_runs([runs])
    return report_page(group_runs(found), remarks, NASTY, runs)


class Reader(HTMLParser):
    """Tags and text as a browser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_sessions_that_differ_in_their_command_alone_are_made_with_the_same(tmp_path: Path) -> None:
    from maip3o.report.page import _other_versions
    from maip3o.report.runs import Run

    same, other = {"commit": "a", "command": "resume"}, {"commit": "b", "command": "train"}
    versions = {"commit": "a", "command": "train", "earlier": [same, other, "nonsense"]}
    assert _other_versions(Run(tmp_path, "toy", "maip3o", 0, {}, [], versions)) == [{"commit": "b"}]


def test_every_section_is_there_and_says_what_it_should(page: str) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "Results",
        "Figures",
        "Safety cards",
        "Films",
        "Differences in configuration",
        "Throughput",
        "Versions",
        "Left out",
    ]
    text = " ".join(Reader(page).words)
    assert "termination: violated (limit 0.1, cost 0.30 [0.27, 0.33])" in text
    assert "broken: left out: empty" in text
    assert "01234567" in text
    assert page.count("data:image/svg+xml;base64,") == 5


def test_names_stay_text(page: str) -> None:
    reader = Reader(page)
    scripts = [attributes for tag, attributes in reader.tags if tag == "script"]
    assert scripts == []
    images = [attributes["src"] or "" for tag, attributes in reader.tags if tag == "img"]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in images)
    assert not any(key.startswith("on") for _, attributes in reader.tags for key in attributes)
    assert NASTY in reader.words


def test_the_page_asks_for_nothing_from_a_network(page: str) -> None:
    sources = [a.get("src") or a.get("href") or "" for _, a in Reader(page).tags if "src" in a or "href" in a]
    assert sources
    assert all(source.startswith(("data:", "#", "maip3o/0/")) for source in sources)
    visible = re.sub(r'"data:[^"]*"', "", page)
    assert not re.findall(r"https?://|@import|url\(|fetch\(|XMLHttpRequest", visible)


def test_films_and_replays_are_linked_and_the_page_stays_small(page: str) -> None:
    links = [attributes.get("href") or "" for tag, attributes in Reader(page).tags if tag == "a"]
    assert {"maip3o/0/clip.mp4", "maip3o/0/replay.html"} <= set(links)
    (film,) = [attributes for tag, attributes in Reader(page).tags if tag == "video"]
    assert (film["src"], film["preload"]) == ("maip3o/0/clip.mp4", "none")


def test_a_page_of_ten_runs_is_below_three_megabytes(tmp_path: Path) -> None:
    for algo in ("maip3o", "mappo"):
        for seed in range(5):
            write_run(tmp_path / algo / str(seed), algo=algo, seed=seed, episodes=400)
            write_evaluation(tmp_path / algo / str(seed), episodes=400)
    page = report_page(group_runs(read_runs([tmp_path])[0]), [], "title", tmp_path)
    assert len(page) < 3 * 2**20


def test_a_damaged_evaluation_or_replay_costs_its_section_only(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", episodes=20)
    (directory / "evaluation.json").write_text(json.dumps({"protocols": {"full": {"figures": 3, "constraints": []}}}))
    (directory / "replay.html").write_text('<script type="application/json" id="data">[{"arrays":')
    (directory / "versions.json").write_text("[1")
    page = report_page(group_runs(read_runs([tmp_path])[0]), [], "title", tmp_path)
    assert "<h2>Results</h2>" in page
    assert page.count("<td") > 10


def test_differences_name_the_settings_that_differ_and_no_other(tmp_path: Path) -> None:
    write_run(tmp_path / "a", episodes=20, alpha=0.1)
    write_run(tmp_path / "b", episodes=20, alpha=0.5)
    page = report_page(group_runs(read_runs([tmp_path])[0]), [], "title", tmp_path)
    section = page[page.index('id="differences-in-configuration"') : page.index("All settings of")]
    assert re.findall(r'<tr><td class="name">(.*?)</td>', section) == ["algo.penalty.alpha"]
    assert yaml.safe_dump({"algo.penalty.alpha": 0.5}).strip() in page


def test_the_command_writes_the_page_or_says_why_not(tmp_path: Path, runs: Path) -> None:
    write_run(tmp_path / "runs" / "one", episodes=20)
    (tmp_path / "runs" / "empty").mkdir()
    command = [sys.executable, "-m", "maip3o.report"]
    done = subprocess.run([*command, "runs", "out=page.html"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["runs/empty: left out: empty"]
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    done = subprocess.run([*command, "runs/empty", "out=none.html"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "none.html").exists()
    with pytest.raises(ValueError, match="must be the name of an"):
        report([str(runs), f"out={tmp_path}"])


LOOK = """
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  await wait(500);
  const images = [...document.images];
  images.forEach((image) => { image.loading = "eager"; });
  await Promise.all(images.map((image) => image.decode().catch(() => null)));
  const wide = [...document.querySelectorAll("section")].filter((s) => s.scrollWidth > s.clientWidth + 1);
  const small = [...document.querySelectorAll("figure img")].filter((image) => image.clientWidth < 250);
  return { title: document.title, drawn: images.filter((image) => image.naturalWidth > 100).length,
    images: images.length, wide: wide.length, small: small.length, page: document.body.scrollWidth,
    links: [...document.querySelectorAll("nav a")].every((a) => document.querySelector(a.getAttribute("href"))) };
"""


@pytest.mark.parametrize("width", [1280, 390], ids=["screen", "phone"])
def test_the_page_works_in_a_browser(page: str, width: int, tmp_path: Path) -> None:
    narrow = f"<head><style>html {{ width: {width}px }}</style>"  # a headless window is never below 500 pixels
    result = in_browser(page.replace("<head>", narrow), LOOK, tmp_path, width)
    assert result.get("failed") is None, result
    assert result["errors"] == []
    assert result["title"] == NASTY
    assert result["drawn"] == result["images"] == 5
    assert result["links"]
    assert (result["wide"], result["small"]) == (0, 0)
    assert result["page"] <= width
