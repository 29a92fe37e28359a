"""python -m maip3o.train +scenario=intersection [key=value ...]: train a policy. --help explains."""

from __future__ import annotations

import sys
from pathlib import Path

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from maip3o.compose import FOLDER, compose, register, to_config
from maip3o.errors import exit_on_user_error


@hydra.main(version_base="1.3", config_path=str(FOLDER), config_name="config")
def job(composed: DictConfig) -> float:
    """One run, in the directory that Hydra has made for it. The float is what a sweeper optimises."""
    from maip3o.runners.run import run

    return exit_on_user_error(lambda: run(to_config(composed), Path(HydraConfig.get().runtime.output_dir)))


def main() -> None:
    arguments = get_args_parser().parse_args()
    register()
    if not arguments.multirun:
        exit_on_user_error(lambda: compose(arguments.overrides, arguments.config_dir))
    job()


if __name__ == "__main__":
    sys.exit(main())
