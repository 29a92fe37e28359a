"""Search for hyper-parameters with Optuna.

python -m maip3o.tune +scenario=<name> [key=value ...] [key=<what to search> ...]

  'algo.lr=tag(log,interval(1e-4,1e-3))'   a number from an interval, here on a logarithmic scale
  'algo.epochs=range(2,13)'                a whole number from 2 to 12
  algo.penalty.alpha=0.05,0.1,0.5          one of these
  without any: learning rates, weight and scale of the penalty, epochs and the KL limit, except what is set

  trials=40            until the study has this many that were finished or pruned
  jobs=1               trials at once; the cores are shared among them
  metric=evaluation/full/return   what counts, a key of metrics.jsonl, measured along training
  direction=maximize   or minimize
  prune=true           stop a trial that is below the median of the others
  out=runs/tune/<scenario>_<algo>   the study (study.journal), its trials, trials.csv, best.json

The same command goes on with the same study; several may run at once. Every trial is a run directory:
`python -m maip3o.plot <out>/trials` draws them.
"""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maip3o.config import options
from maip3o.config.overrides import add_plus
from maip3o.errors import UserError, exit_on_user_error
from maip3o.runners.compose import compose
from maip3o.runners.directory import require_writable
from maip3o.runners.search import SearchSpace, TrialFailed, parse_space, run_trial, training_command
from maip3o.runners.sweep import cores_per_job

DEFAULT_SPACE = (
    "algo.lr=tag(log,interval(1e-4,1e-3))",
    "algo.critic_lr=tag(log,interval(1e-4,2e-3))",
    "algo.penalty.eta=tag(log,interval(0.1,10.0))",
    "algo.penalty.alpha=tag(log,interval(0.02,1.0))",
    "algo.epochs=range(3,13)",
    "algo.kl_max=tag(log,interval(0.005,0.05))",
)
READERS: dict[str, options.Reader] = {
    "trials": options.integer(1, 1_000_000),
    "jobs": options.integer(1, 1024),
    "metric": options.text,
    "direction": options.choice("maximize", "minimize"),
    "prune": options.boolean,
    "out": options.text,
}


@dataclass(frozen=True)
class Search:
    """What to search, how long, and where it is kept."""

    space: SearchSpace
    folder: Path
    total_episodes: int
    trials: int = 40
    jobs: int = 1
    metric: str = "evaluation/full/return"
    direction: str = "maximize"
    prune: bool = True


def read_command_line(arguments: Sequence[str]) -> Search:
    arguments = list(arguments)
    config_dir = None
    if "--config-dir" in arguments[:-1]:
        place = arguments.index("--config-dir")
        _, config_dir = arguments.pop(place), arguments.pop(place)
    own = [text for text in arguments if text.partition("=")[0] in READERS or text in ("-h", "--help")]
    values = options.read_options(own, READERS, __doc__ or "")
    overrides = add_plus([text for text in arguments if text not in own])
    space = parse_space(overrides, config_dir)
    if not space.drawn:
        space = parse_space([*overrides, *_default_space(overrides, config_dir)], config_dir)
    config, _ = compose(space.example(), config_dir)
    if values.get("metric", Search.metric).startswith("evaluation/") and config.evaluation.every_episodes == 0:
        raise UserError("evaluation.every_episodes=0: the metric of the search comes from evaluations")
    folder = Path(values.pop("out", f"runs/tune/{config.scenario.name}_{config.algo.name}"))
    return Search(space, folder, config.total_episodes, **values)


def _default_space(overrides: Sequence[str], config_dir: str | None) -> list[str]:
    """What is searched without being named: nothing that the user fixed, and nothing that has no effect."""
    config, _ = compose(overrides, config_dir)
    fixed = {text.lstrip("+").partition("=")[0] for text in overrides}
    if config.algo.method not in ("ip3o", "p3o", "ipo"):
        fixed |= {"algo.penalty.eta", "algo.penalty.alpha"}
    return [text for text in DEFAULT_SPACE if text.partition("=")[0] not in fixed]


def tune(search: Search) -> None:
    """Go on with the study until it has `trials` results."""
    optuna = _import_optuna()
    study = open_study(search)
    requeue_interrupted(study)
    states = optuna.trial.TrialState
    done = len(study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED)))
    remaining = search.trials - done
    if remaining > 0:
        at_once, cores = cores_per_job(search.jobs, remaining)

        def objective(trial: Any) -> float:
            return run_trial(trial, search.space, search.folder, search.metric, cores)

        study.optimize(objective, n_trials=remaining, n_jobs=at_once, catch=(TrialFailed,))
    write_results(study, search)


def open_study(search: Search) -> Any:
    """The study in the folder, a new one if there is none."""
    optuna = _import_optuna()
    require_writable(search.folder, "out")
    search.folder.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(search.folder / "study.journal"))
    )
    study = optuna.create_study(storage=storage, study_name="maip3o", direction=search.direction, load_if_exists=True)
    if study.direction.name.lower() != search.direction:
        raise UserError(
            f"direction={search.direction}: the study in {search.folder} is to {study.direction.name.lower()}"
        )
    previous = study.user_attrs.get("metric", search.metric)
    if previous != search.metric and any(trial.intermediate_values for trial in study.trials):
        raise UserError(f"metric={search.metric}: the study in {search.folder} has metric={previous}")
    study.set_user_attr("metric", search.metric)
    # Going on with the seed of the beginning would propose its first points again.
    study.sampler = optuna.samplers.TPESampler(seed=len(study.trials), multivariate=True, constant_liar=True)
    warm_up = search.total_episodes // 4
    study.pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=warm_up)
    if not search.prune:
        study.pruner = optuna.pruners.NopPruner()
    return study


def requeue_interrupted(study: Any) -> None:
    """Trials that a killed search left behind are tried again with their own values, from their checkpoints."""
    optuna = _import_optuna()
    from maip3o.runners.directory import only_one_trainer

    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        directory = trial.user_attrs.get("directory")
        try:
            if directory is not None:
                with only_one_trainer(Path(directory)):
                    pass
        except UserError:
            continue  # another search is training it now
        study.enqueue_trial(trial.params)
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)


def write_results(study: Any, search: Search) -> None:
    """trials.csv, best.json, and the command that trains the best again."""
    optuna = _import_optuna()
    keys = sorted({key for trial in study.trials for key in trial.params})
    with (search.folder / "trials.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["number", "state", search.metric, "episodes", *keys, "directory"])
        for trial in study.trials:
            row = [trial.number, trial.state.name.lower(), trial.value, max(trial.intermediate_values, default=0)]
            writer.writerow([*row, *(trial.params.get(key, "") for key in keys), trial.user_attrs.get("directory", "")])
    complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    counts = {
        state: sum(trial.state.name == state for trial in study.trials) for state in ("COMPLETE", "PRUNED", "FAIL")
    }
    print(", ".join(f"{number} {state.lower()}" for state, number in counts.items()), f"trials in {search.folder}")
    if not complete:
        print("no trial was finished: see output.log in the directories of trials.csv", file=sys.stderr)
        raise SystemExit(1)
    best = study.best_trial
    content = {"metric": search.metric, "value": best.value, "overrides": best.user_attrs["overrides"]}
    content |= {"params": best.params, "directory": best.user_attrs["directory"]}
    (search.folder / "best.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"best {search.metric}: {best.value:.4g} (one seed of many trials: train it again with other seeds)")
    print(shlex.join(["python", *training_command(best.user_attrs["overrides"], search.space.config_dir)]))


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UserError("optuna is not installed: pip install 'maip3o[tune]'") from None
    return optuna


def main() -> None:
    try:
        exit_on_user_error(lambda: tune(read_command_line(sys.argv[1:])))
    except KeyboardInterrupt:
        print("interrupted: the same command goes on", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
