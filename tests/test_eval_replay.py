"""The replay page: what is in it, that names cannot break out of it, and that it plays in a browser."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from eval_footage import CRASH, RAYS, STEPS, make_footage

from maip3o.video.replay import embedded_json, replay_data, replay_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
]
NASTY = '</script><script>document.title="broken"</script><img src=x onerror=\'document.title="broken"\'>&"$x'


def test_data_survives_the_packing() -> None:
    footage = make_footage()
    data = json.loads(embedded_json(replay_data(footage)))
    x = np.frombuffer(base64.b64decode(data["arrays"]["x"]["base64"]), "<f4").reshape(STEPS + 1, 3)
    assert x == pytest.approx(footage.tracks.position[..., 0])
    lidar = np.frombuffer(base64.b64decode(data["arrays"]["lidar"]["base64"]), np.uint8)
    assert lidar.reshape(STEPS, 3, RAYS)[0, 0, 0] == 127
    assert data["limit"] == 0.1
    assert (data["steps"], data["slots"], data["rays"]) == (STEPS, 3, RAYS)


def test_names_cannot_close_a_tag() -> None:
    page = replay_page([("x", make_footage(policy=NASTY, scenario=NASTY))], NASTY)
    assert "<img" not in page
    assert page.count("</script>") == 2  # the data and the player
    assert 'document.title="broken"' not in page


def test_the_page_asks_for_nothing_from_a_network() -> None:
    page = replay_page([("", make_footage())], "page")
    assert not re.findall(r"(?:src|href)\s*=|https?://|@import|url\(|fetch\(|XMLHttpRequest", page)


def in_browser(page: str, script: str, folder: Path, width: int = 1280) -> dict[str, Any]:
    """Run `script` (an async function body that returns an object) on the page in headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: install Debian's package `chromium` to test the replay in a browser")
    probe = f"""<script>
    const errors = [];
    const tell = (result) => {{
      const place = document.createElement("pre");
      place.id = "result";
      place.textContent = JSON.stringify(result);
      document.body.append(place);
    }};
    window.addEventListener("error", (event) => errors.push(event.message));
    (async () => {{ {script} }})().then(
      (result) => tell({{...result, errors}}),
      (error) => tell({{failed: String(error)}}));
    </script></body>"""
    file = folder / "page.html"
    # Chromium's virtual clock paints hardly any frames: a timer calls what would draw them.
    clock = "<script>window.requestAnimationFrame = (call) => setTimeout(() => call(performance.now()), 16);</script>"
    file.write_text(page.replace("<head>", f"<head>{clock}").replace("</body>", probe), encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom"]
    command.append(f"--window-size={width},900")
    environment = {**os.environ, "HOME": str(folder)}
    answer = subprocess.run(
        [*command, file.as_uri()], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    found = re.search(r'<pre id="result">(.*?)</pre>', answer.stdout, re.DOTALL)
    assert found, f"no result from the browser: {answer.stderr[-800:]}"
    text = found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return dict(json.loads(text))


PLAY = f"""
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const player = () => document.getElementById("player").replay;
  const replay = player(), root = document.getElementById("player"), button = root.querySelector("button");
  const result = {{}};
  button.click();
  await wait(1000);
  result.played = replay.time;
  result.label = button.getAttribute("aria-label");
  button.click();
  const paused = replay.time;
  await wait(500);
  result.still = replay.time === paused;
  replay.select.value = "4";
  replay.select.dispatchEvent(new Event("change"));
  replay.seek(0);
  replay.play(true);
  await wait(500);
  replay.play(false);
  result.fast = replay.time;
  replay.slider.value = "10";
  replay.slider.dispatchEvent(new Event("input"));
  result.scrubbed = replay.time;
  const click = (slot) => {{
    const car = replay.cars().find((c) => c.slot === slot), box = replay.canvas.getBoundingClientRect();
    const clientX = box.left + (car.x - replay.view.left) * replay.view.scale;
    const clientY = box.top + (replay.view.top - car.y) * replay.view.scale;
    replay.canvas.dispatchEvent(new MouseEvent("click", {{ clientX, clientY, bubbles: true }}));
  }};
  const canvas = replay.canvas;
  const pixels = () => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const before = pixels();
  click(1);
  result.chosen = replay.chosen;
  result.facts = root.querySelector("dl").textContent;
  const after = pixels();
  result.lidar = after.some((value, i) => value !== before[i]);
  root.dispatchEvent(new KeyboardEvent("keydown", {{ key: "ArrowRight" }}));
  result.stepped = replay.time;
  replay.seek({CRASH + 1});
  result.rows = [...root.querySelectorAll("tbody tr")].map((row) => row.cells[1].textContent);
  result.summary = root.querySelector(".replay-summary").textContent;
  result.title = document.title;
  result.heading = document.querySelector("h1").textContent;
  const chooser = document.getElementById("episodes");
  chooser.value = "1";
  chooser.dispatchEvent(new Event("change"));
  result.other = player().data.seed;
  result.images = document.images.length;
  return result;
"""


def test_the_player_plays_in_a_browser(tmp_path: Path) -> None:
    page = replay_page([("one", make_footage(policy=NASTY)), ("two", make_footage(seed=8))], NASTY)
    result = in_browser(page, PLAY, tmp_path)
    assert result.get("failed") is None, result
    assert result["errors"] == []
    assert 5.0 < result["played"] < 15.0  # one second of ten steps
    assert result["label"] == "pause"
    assert result["still"]
    assert 12.0 < result["fast"] < 28.0  # half a second at four times the speed
    assert (result["scrubbed"], result["stepped"]) == (10, 11)
    assert result["chosen"] == 1
    assert result["lidar"]
    assert "predicted termination cost0.500" in result["facts"]
    assert "value10.0" in result["facts"]
    assert result["rows"] == ["72 km/h", "hit a car", "0 km/h"]
    assert "0 arrived · 1 eliminated · termination cost per car 0.33 (limit 0.10)" in result["summary"]
    assert result["heading"] == result["title"] == NASTY
    assert (result["other"], result["images"]) == (8, 0)
