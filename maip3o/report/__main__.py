"""One page about many runs: `python -m maip3o.report runs/... [out=report.html] [title=...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from maip3o.config.arguments import paths_and_options
from maip3o.errors import UserError, exit_on_user_error

USAGE = "usage: python -m maip3o.report RUN_DIRECTORY... [out=report.html] [title=...]"


def report(arguments: Sequence[str]) -> None:
    paths, options = paths_and_options(arguments, {"out": "report.html", "title": ""}, USAGE)
    out = Path(options["out"])
    if out.is_dir() or out.suffix not in (".html", ".htm"):
        raise UserError(f"out={out}: must be the name of an .html file")
    # Late: matplotlib and torch take seconds to load, and a typing mistake is answered sooner.
    from maip3o.report.groups import group_runs
    from maip3o.report.page import report_page
    from maip3o.report.reading import require_runs

    runs, remarks = require_runs(paths)
    for remark in remarks:
        print(remark, file=sys.stderr)
    title = options["title"] or f"Runs in {', '.join(str(path) for path in paths)}"
    page = report_page(group_runs(runs), remarks, title, out.parent)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"out={out}: cannot write there ({error.strerror})") from None
    print(f"written: {out} ({len(runs)} runs, {len(page) / 2**20:.1f} MB)")


if __name__ == "__main__":
    exit_on_user_error(lambda: report(sys.argv[1:]))
