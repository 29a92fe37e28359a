"""The command python -m maip3o.train."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from maip3o.config.overrides import FOLDER, add_plus
from maip3o.config.schema import Config
from maip3o.config.usage import usage
from maip3o.envs.registry import find_world
from maip3o.errors import UserError, exit_on_user_error
from maip3o.runners.compose import compose, compose_tree, register, to_config
from maip3o.runners.directory import require_free, require_writable
from maip3o.runners.launchers import register_launchers
from maip3o.runners.prerequisites import check_init_observation
from maip3o.runners.sweep import command_lines, report_ends


def run(config: Config, directory: Path, prolong: bool = False) -> float:
    """Train in `directory`, from its checkpoint if it has one; returns the figure that sweepers optimise."""
    from maip3o.runners.run import run  # torch takes a second to load: a typing mistake is answered sooner

    return run(config, directory, prolong)


@hydra.main(version_base="1.3", config_path=str(FOLDER), config_name="config")
def job(composed: DictConfig) -> float:
    """One run, in the directory that Hydra has made for it."""
    return exit_on_user_error(lambda: run(to_config(composed), Path(HydraConfig.get().runtime.output_dir)))


def main() -> None:
    """Check everything that can be checked, then start: resume a run, or hand over to Hydra."""
    arguments = exit_on_user_error(read_command_line)
    if arguments.help:
        print(usage())
        return
    try:
        if any(map(_is_resume, arguments.overrides)):
            exit_on_user_error(lambda: resume(arguments.overrides, arguments.config_dir, arguments.multirun))
        else:
            exit_on_user_error(lambda: check(arguments.overrides, arguments.config_dir, arguments.multirun))
            register()
            register_launchers()
            launch()
    except KeyboardInterrupt:  # the run has said how to go on
        sys.exit(1)


def launch() -> None:
    """Hand over to Hydra; after a sweep, say what happened to each of its jobs."""
    try:
        job()
    finally:
        code = report_ends()
    if code:
        sys.exit(code)


class _Parser(ArgumentParser):
    """Those of Hydra's flags that make sense here."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("--help", "-h", action="store_true")
        self.add_argument("--multirun", "-m", action="store_true")
        self.add_argument("--config-dir", "-cd")
        self.add_argument("--cfg", "-c", choices=["job", "hydra", "all"])
        self.add_argument("--package", "-p")
        self.add_argument("--resolve", action="store_true")
        self.add_argument("--info", "-i", nargs="?")
        self.add_argument("overrides", nargs="*")

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")


def read_command_line() -> Namespace:
    """Hydra's own flags and the overrides, in any order; sys.argv is left as Hydra wants to read it."""

    arguments = _Parser().parse_intermixed_args()
    flags = [text for text in sys.argv[1:] if text not in arguments.overrides]
    arguments.overrides = add_plus(arguments.overrides)
    sys.argv[1:] = flags + arguments.overrides
    return arguments


def check(overrides: list[str], config_dir: str | None, multirun: bool) -> None:
    """Refuse what cannot run, before Hydra makes a directory for it."""
    lines = command_lines(overrides, config_dir, multirun)
    for command_line in lines:
        config, directory = compose(command_line, config_dir)
        find_world(config.scenario).inspect(config.scenario)
        check_init_observation(config)
        if not multirun:
            require_free(directory)
        if (directory / "checkpoints" / "last.pt").exists():
            from maip3o.runners.resume import find_start

            find_start(config, directory)
    if multirun:  # the directories of the jobs below it are looked at when their turn comes
        require_writable(Path(compose_tree(lines[0], config_dir).hydra.sweep.dir))


def resume(overrides: list[str], config_dir: str | None, multirun: bool) -> None:
    """Go on in the run's own directory. Hydra would make a new one, so it only reads the overrides here."""
    from maip3o.runners.resume import continued_config

    runs = [text.partition("=")[2] for text in overrides if _is_resume(text)]
    others = [text for text in overrides if not _is_resume(text)]
    if multirun:
        raise UserError("resume= with -m: a sweep goes on when it is started again with the same command")
    if len(runs) > 1:
        raise UserError(f"resume={runs[1]}: one run goes on at a time, and resume={runs[0]} is given as well")
    for text in others:
        if text.lstrip("+~").startswith(("hydra.", "hydra/", "experiment=")):
            raise UserError(f"{text}: not with resume=, a run goes on alone and in its own directory")
    directory = Path(runs[0])
    config = continued_config(directory, others, config_dir)
    run(config, directory, prolong=True)


def _is_resume(override: str) -> bool:
    return override.lstrip("+").startswith("resume=")
