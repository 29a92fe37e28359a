"""Figures and tables from run directories: `python -m maip3o.plot runs/... [out=plots] [all=true]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from maip3o.config.arguments import paths_and_options
from maip3o.config.options import boolean
from maip3o.errors import exit_on_user_error
from maip3o.runners.directory import require_writable

USAGE = """\
Figures and tables from run directories and records.

python -m maip3o.plot <run directory | record>... [key=value ...]

  out=plots   the folder for figures (PNG, SVG, and their numbers as CSV) and tables (Markdown, LaTeX, CSV)
  all=false   true: besides return, constraints, outcomes, speed, comparison and time also every other curve, axis,
              performance profiles and ablations
"""


def plot(arguments: Sequence[str]) -> None:
    paths, options = paths_and_options(arguments, {"out": "plots", "all": "false"}, USAGE)
    everything = boolean("all", options["all"])
    out = Path(options["out"])
    require_writable(out, "out")
    # Late: matplotlib takes a second to load, and a typing mistake is answered sooner.
    from maip3o.report.gallery import drawings, save_drawing
    from maip3o.report.groups import group_runs
    from maip3o.report.reading import require_runs
    from maip3o.report.tables import comma_separated, latex, markdown

    runs, remarks = require_runs(paths)
    for remark in remarks:
        print(remark, file=sys.stderr)
    groups = group_runs(runs)
    names = []
    for drawing in drawings(groups, everything):
        save_drawing(drawing, out)
        names.append(drawing.name)
    tables = {"results.md": markdown, "results.tex": latex, "results.csv": comma_separated}
    for name, table in tables.items():
        (out / name).write_text(table(groups), encoding="utf-8")
    for group in groups:
        print(f"{group.scenario}: {group.label}: {len(group.runs)} seed(s)")
    print(f"{len(names)} figures (PNG, SVG, CSV) and {', '.join(tables)} in {out}: {', '.join(names)}")


if __name__ == "__main__":
    exit_on_user_error(lambda: plot(sys.argv[1:]))
