"""Run a protocol into a folder: in parallel, resumable, with the same results for any number of workers."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from ocrep._errors import pick
from ocrep.datasets import load
from ocrep.study.experiments import Job, run_job
from ocrep.study.protocol import PROTOCOLS, Protocol
from ocrep.study.results import Results, Row
from ocrep.study.schedule import stages
from ocrep.study.store import Lines, alone, collected, describe, read_lines

REMEDY = "not bundled: set OCREP_DATA to a folder that holds delta_ailerons.csv, or install ocrep[data] and be online."
DISPATCHED = 1.25  # jobs handed out at a time, per worker: few, so that a run that must end soon can


def run(
    protocol: str | Protocol,
    folder: str | Path,
    *,
    n_jobs: int = 2,
    seconds: float | None = None,
    progress: bool | None = None,
) -> Results:
    """Run all jobs whose results are not yet in the folder, and return all results.

    A run that was interrupted or killed continues where it stopped. A folder with results of another protocol or
    version raises a ValueError, and a second run in the same folder at the same time raises a RuntimeError.

    Parameters
    ----------
    protocol : "quick", "full" or Protocol
        What to run.
    folder : path
        Where results are stored; created if it does not exist.
    n_jobs : int, default=2
        Worker processes, each with one BLAS thread. Results do not depend on it.
    seconds : float or None, default=None
        After so many seconds no further job is begun; the next run continues. None runs all.
    progress : bool or None, default=None
        Whether to show a progress line; None shows it if the error stream is a terminal.

    Returns
    -------
    Results
        The rows of all jobs, new and old.

    See Also
    --------
    report : Judges the results.

    Examples
    --------
    >>> from ocrep import study
    >>> results = study.run("quick", "results", seconds=0, progress=False)  # begins no job; the next run goes on
    """
    if isinstance(protocol, str):
        protocol = pick("protocol", protocol, PROTOCOLS)
    folder, end = Path(folder), time.monotonic() + (float("inf") if seconds is None else seconds)
    with alone(folder):
        sets, missing = _load(protocol)
        describe(folder, protocol, missing)
        known = read_lines(folder)
        done, results, lines = set(known), collected(known), Lines(folder)
        shown = Progress(sys.stderr.isatty() if progress is None else progress)
        try:
            for number, stage in enumerate(stages(protocol, sets, results), 1):
                todo = list({job.key: job for job in stage if job.key not in done}.values())
                for job, spent, rows in shown.over(_work_all(todo, sets, protocol, n_jobs, end), len(todo), number):
                    lines.write(job.key, spent, rows)
                    results.add(job.key, (Row(*row.packed()) for row in rows))
                    done.add(job.key)
                if time.monotonic() >= end:
                    break
        finally:
            lines.close()
    return collected(read_lines(folder))


def _work_all(
    jobs: list[Job], sets: dict[str, Any], protocol: Protocol, n_jobs: int, end: float
) -> Iterator[tuple[Job, float, list[Row]]]:
    """The results of jobs as they come; none is begun after `end`."""
    begun = (delayed(_work)(job, sets[job.data], protocol) for job in jobs if time.monotonic() < end)
    options: dict[str, Any] = {"batch_size": 1, "pre_dispatch": f"{DISPATCHED}*n_jobs"}
    yield from Parallel(n_jobs, return_as="generator_unordered", **options)(begun)


def _work(job: Job, data: Any, protocol: Protocol) -> tuple[Job, float, list[Row]]:
    start = time.perf_counter()
    # One BLAS thread, also for reproducibility: with several, sums are rounded in another order.
    with threadpool_limits(limits=1):
        rows = run_job(job, data, protocol)
    return job, time.perf_counter() - start, rows


def _load(protocol: Protocol) -> tuple[dict[str, Any], dict[str, str]]:
    """The available data sets, and for each missing one a sentence on how to get it."""
    sets, missing = {}, {}
    for name in protocol.data_sets:
        try:
            sets[name] = load(name)
        except FileNotFoundError:
            missing[name] = REMEDY
    return sets, missing


class Progress:
    """A line on the error stream: the stage, its jobs, and the time that is left for them."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def over(self, work: Iterable[Any], total: int, stage: int) -> Iterator[Any]:
        """Give the work on, telling how far it is, at most once a second."""
        start = told = time.monotonic()
        for done, item in enumerate(work, 1):
            yield item
            now = time.monotonic()
            if self._shown and (done == total or now - told > 1.0):
                told, left = now, (now - start) / done * (total - done)
                bar, end = "█" * (30 * done // total), "\n" if done == total else ""
                text = f"\rstage {stage} {bar:░<30} {done}/{total} jobs, {left / 60:.1f} min left "
                print(text, end=end, file=sys.stderr, flush=True)
