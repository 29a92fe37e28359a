"""What `python -m maip3o.train --help` prints: made from the comments in conf/, which are the documentation."""

from __future__ import annotations

from maip3o.config.overrides import FOLDER, GROUPS, options

HEAD = """\
Train a safe policy: one that several cars share, or one of a robot.

  python -m maip3o.train +scenario=<name> [group=<name> ...] [key=value ...]

Examples
  python -m maip3o.train +scenario=intersection
  python -m maip3o.train +scenario=parking_lot algo=mappo seed=1 total_episodes=500
  python -m maip3o.train +scenario=intersection constraints.termination.limit=0.05 +constraints.crash.limit=0.1
  python -m maip3o.train +scenario=intersection runner=ray num_workers=16 episodes_per_iteration=16
  python -m maip3o.train -m +scenario=intersection algo=maip3o,map3o,mappo seed=0,1,2     every combination
  python -m maip3o.train resume=runs/intersection/maip3o/default/seed0 total_episodes=4000

The same command goes on where it stopped: a run has one directory, runs/<scenario>/<algo>/<what you changed>/seed<n>
(hydra.run.dir=<path> names another). It holds metrics.jsonl, TensorBoard events, checkpoints, messages and the config.
Exit codes: 0 done, 2 bad input (nothing is written), 1 anything else.
"""

TAIL = """\
Flags
  -m                  run every combination of comma-separated values
  --config-dir <dir>  a directory with config groups of your own (<dir>/scenario/mine.yaml: +scenario=mine)
  --cfg job           print the whole config that the command line gives, and stop; what the keys of a group mean is
                      told by the comments in the package's conf/<group>/*.yaml
"""


def usage() -> str:
    """The whole text."""
    groups = "\n".join(_group(name) for name in GROUPS if options(name))
    return f"{HEAD}\nGroups\n{groups}\n\nKeys (--cfg job shows those of the groups as well)\n{_keys()}\n\n{TAIL}"


def _group(name: str) -> str:
    rows = [f"  {name}=" if name not in ("scenario", "experiment") else f"  +{name}="]
    return "\n".join(rows + [f"    {option:<22}{_first_comment(name, option)}".rstrip() for option in options(name)])


def _first_comment(group: str, option: str) -> str:
    """What the file says about itself; Hydra wants its own `# @package` on the line before."""
    lines = (FOLDER / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines()
    first = next(line for line in lines if not line.startswith("# @"))
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def _keys() -> str:
    """config.yaml from the first key to Hydra's own, each line as it stands: `key: default # meaning`."""
    text = (FOLDER / "config.yaml").read_text(encoding="utf-8")
    body = text[text.index("\nseed:") + 1 : text.index("\nhydra:")]
    return "\n".join(f"  {line}".rstrip() for line in body.strip().splitlines() if line.strip())
