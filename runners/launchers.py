"""Hydra launchers: the same jobs as processes of this machine, through submitit (local or SLURM), or as Ray tasks.

They differ in one method. Hydra's own launchers lose the sweep with one dead job, and know nothing of finished ones.
"""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import Popen
from types import ModuleType
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

from maip3o.errors import UserError
from maip3o.runners import sweep
from maip3o.runners.job import Ending, execute
from maip3o.runners.sweep import Job

log = logging.getLogger(__name__)
HYDRA_MODULE = "hydra_plugins.maip3o"  # Hydra takes plugins from this package only: an alias of this module


class SweepLauncher(Launcher):
    """Prepares the jobs, hands the unfinished ones to `start`, and keeps the books."""

    __module__ = HYDRA_MODULE

    def __init__(self, jobs: int | str = "auto", **settings: Any) -> None:
        self.jobs = jobs
        plain = {key: OmegaConf.to_container(v) if OmegaConf.is_config(v) else v for key, v in settings.items()}
        self.settings: dict[str, Any] = plain

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context, self.config = hydra_context, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        setup_globals()
        directory = Path(str(self.config.hydra.sweep.dir))
        directory.mkdir(parents=True, exist_ok=True)
        jobs = [self._prepare(initial_job_idx + i, overrides, directory) for i, overrides in enumerate(job_overrides)]
        pending = [job for job in jobs if not job.state]
        log.info("%d of %d jobs to run in %s", len(pending), len(jobs), directory)
        ends: dict[int, Job] = {}
        try:
            with terminate_like_interrupt():
                for job, end in self.start(pending, directory) if pending else ():
                    ends[job.number] = sweep.with_progress(replace(job, state=end.state, message=end.message))
                    log.info("%s: %s %s", job.name, end.state, end.message)
        finally:
            jobs = [job if job.state else ends.get(job.number) or sweep.stopped(job) for job in jobs]
            sweep.DONE.extend(jobs)
            sweep.save_table(sweep.DONE, directory)
        return [_job_return(job) for job in jobs]

    @abstractmethod
    def start(self, jobs: Sequence[Job], sweep_directory: Path) -> Iterator[tuple[Job, Ending]]:
        """Run them all; yield each when it has ended, however it has ended."""

    def _prepare(self, number: int, overrides: Sequence[str], sweep_directory: Path) -> Job:
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = number
        HydraConfig.instance().set_config(config)  # the directory's name asks it for the choices
        return sweep.prepare(number, overrides, config, sweep_directory, str(config.hydra.sweep.subdir))


def _job_return(job: Job) -> JobReturn:
    """A job that failed returns NaN: an exception here would end the whole sweep."""
    value = JobReturn(overrides=list(job.overrides), cfg=job.config, working_dir=str(job.directory))
    value.status, value.return_value = JobStatus.COMPLETED, job.result
    return value


class ProcessLauncher(SweepLauncher):
    """Processes of this machine, `jobs` at once, which share its cores."""

    __module__ = HYDRA_MODULE

    def start(self, jobs: Sequence[Job], sweep_directory: Path) -> Iterator[tuple[Job, Ending]]:
        at_once, cores = sweep.cores_per_job(self.jobs, len(jobs))
        started: list[Popen[bytes]] = []

        def stop() -> None:
            for process in started:
                if process.poll() is None:
                    process.terminate()  # the run saves itself, and says that it was interrupted

        run = partial(_run_here, cores=cores, started=started)
        yield from _few_at_once(jobs, at_once, run, stop)


def _run_here(job: Job, cores: int, started: list[Popen[bytes]]) -> Ending:
    return Ending(**execute(str(job.directory), cores, started))


class SubmititLauncher(SweepLauncher):
    """submitit: `cluster` is local or slurm; the other keys are those of submitit (partition, timeout_min, ...)."""

    __module__ = HYDRA_MODULE

    def start(self, jobs: Sequence[Job], sweep_directory: Path) -> Iterator[tuple[Job, Ending]]:
        submitit = _import("submitit", "slurm")
        settings = dict(self.settings)
        cluster = settings.pop("cluster")
        cores = int(settings.pop("cores_per_job"))
        executor = submitit.AutoExecutor(folder=sweep_directory / ".submitit" / "%j", cluster=cluster)
        own = {k if k in SUBMITIT_SHARED else f"{cluster}_{k}": v for k, v in settings.items() if v is not None}
        executor.update_parameters(cpus_per_task=cores, **own)
        at_once = len(jobs) if self.jobs == "auto" else int(self.jobs)
        if cluster == "local":
            at_once, cores = sweep.cores_per_job(self.jobs, len(jobs))
        yield from _few_at_once(jobs, at_once, lambda job: _submit(executor, job, cores))


SUBMITIT_SHARED = ("timeout_min", "mem_gb", "nodes", "gpus_per_node", "name", "stderr_to_stdout")


class Requeued:
    """A job that SLURM stops for its time limit or for others is queued again, and goes on where it was."""

    def __call__(self, directory: str, cores: int) -> dict[str, Any]:
        return execute(directory, cores)

    def checkpoint(self, directory: str, cores: int) -> Any:
        import submitit

        return submitit.helpers.DelayedSubmission(self, directory, cores)


def _submit(executor: Any, job: Job, cores: int) -> Ending:
    return Ending(**executor.submit(Requeued(), str(job.directory), cores).result())


class RayLauncher(SweepLauncher):
    """Ray tasks, on this machine or on the cluster at `address`; the directories must be shared with its nodes."""

    __module__ = HYDRA_MODULE

    def start(self, jobs: Sequence[Job], sweep_directory: Path) -> Iterator[tuple[Job, Ending]]:
        ray = _import("ray", "ray")
        _, cores = sweep.cores_per_job(self.jobs, len(jobs))
        cores = int(self.settings["cores_per_job"] or cores)
        ray.init(address=self.settings["address"], include_dashboard=False, log_to_driver=False)
        try:
            # No retries by Ray: the next launch of the sweep goes on where the job was.
            task = ray.remote(num_cpus=cores, max_retries=0)(execute)
            references = {task.remote(str(job.directory), cores): job for job in jobs}
            while references:
                (ready, *_), _ = ray.wait(list(references), num_returns=1)
                yield references.pop(ready), _ending(lambda done: Ending(**ray.get(done)), ready)
        finally:
            ray.shutdown()


def _few_at_once(
    jobs: Sequence[Job], at_once: int, run: Callable[[Job], Ending], stop: Callable[[], None] = lambda: None
) -> Iterator[tuple[Job, Ending]]:
    """Call `run` for all jobs in threads that only wait, `at_once` of them; yield each end as it comes.

    `stop` ends what is running when the sweep itself is being stopped.
    """
    with ThreadPoolExecutor(at_once) as threads:
        futures = {threads.submit(_ending, run, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            for future in futures:
                future.cancel()
            stop()


@contextmanager
def terminate_like_interrupt() -> Iterator[None]:
    """SIGTERM stops a sweep as Ctrl-C does: running jobs save themselves, the table is written."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ending(call: Callable[..., Ending], *arguments: Any) -> Ending:
    """How it ended; an error of the machinery around a job is that job's own end, not the sweep's."""
    try:
        return call(*arguments)
    except Exception as error:
        return Ending("lost", " ".join(str(error).split())[:200])


def _import(package: str, extra: str) -> Any:
    try:
        return __import__(package)
    except ImportError:
        raise UserError(f"{package} is not installed: pip install 'maip3o[{extra}]'") from None


def register_launchers() -> None:
    """Make Hydra know the launchers."""
    try:
        importlib.import_module("hydra_plugins")
    except ImportError:  # no other plugin is installed
        package = ModuleType("hydra_plugins")
        package.__path__ = []  # Hydra looks for plugins below it
        sys.modules["hydra_plugins"] = package
    sys.modules[HYDRA_MODULE] = sys.modules[__name__]
    for launcher in (ProcessLauncher, SubmititLauncher, RayLauncher):
        Plugins.instance().register(launcher)
