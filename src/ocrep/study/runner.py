"""Run a protocol into a folder: in parallel, resumable, with the same results for any number of workers."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import ocrep
from ocrep._errors import pick
from ocrep._files.atomic import replacing
from ocrep.datasets import load
from ocrep.study.experiments import Job, Record, run_job
from ocrep.study.protocol import PEAK_SETS, PROTOCOLS, REFERENCE_SPLIT, Protocol

RESULTS, ABOUT, LOCK = "results.jsonl", "about.json", "run.lock"
REMEDY = "not bundled: set OCREP_DATA to a folder that holds delta_ailerons.csv, or install ocrep[data] and be online."
LEAST_FREE_BYTES = 50_000_000


def run(protocol: str | Protocol, folder: str | Path, *, n_jobs: int = 2, progress: bool | None = None) -> list[Record]:
    """Run all jobs whose results are not yet in the folder, and return all records.

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
    progress : bool or None, default=None
        Whether to show a progress line with the remaining time; None shows it if the error stream is a terminal.

    Returns
    -------
    list of dict
        The records of all jobs, new and old.
    """
    if isinstance(protocol, str):
        protocol = pick("protocol", protocol, PROTOCOLS)
    folder = Path(folder)
    with _alone(folder):
        sets, missing = _load(protocol)
        _describe(folder, protocol, missing)
        done = set(_lines(folder))
        todo = [job for job in jobs(protocol, tuple(sets)) if job.key not in done]
        calls = [delayed(_work)(job, sets[job.data], protocol) for job in todo]
        work = Parallel(n_jobs, batch_size=1, return_as="generator_unordered")(calls)
        shown = sys.stderr.isatty() if progress is None else progress
        with (folder / RESULTS).open("a", encoding="utf-8") as file:
            for line in _with_progress(work, len(todo)) if shown else work:
                file.write(json.dumps(line) + "\n")
                file.flush()
    return read(folder)


def jobs(protocol: Protocol, data_sets: tuple[str, ...]) -> list[Job]:
    """Return all jobs, those of the reference split first."""
    work = []
    for data in data_sets:
        # Segment's path takes as long as all others together: it is run on the reference split only.
        path_draws, further_paths = (protocol.segment_draws, 0) if data == "segment" else (protocol.path_draws, 1)
        for split in range(1 + protocol.further_splits):
            reference = split == REFERENCE_SPLIT
            draws = protocol.reference_draws if reference else protocol.further_draws
            work += [Job(split, draw, data, kind) for draw in range(draws) for kind in ("fixed", "literature")]
            work += [Job(split, draw, data, "path") for draw in range(path_draws if reference else further_paths)]
            if data in PEAK_SETS:
                work += [Job(split, draw, data, "peak") for draw in range(min(draws, 3))]
    return sorted(work)


def read(folder: str | Path) -> list[Record]:
    """Return the records of a folder, sorted by job."""
    lines = _lines(Path(folder))
    return [record for key in sorted(lines) for record in lines[key]["records"]]


def about(folder: str | Path) -> dict[str, Any]:
    """Return the description of a folder's results: protocol, versions, machine, missing data sets."""
    path = Path(folder) / ABOUT
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no study: run one with ocrep.study.run(...) first.")
    return json.loads(path.read_text(encoding="utf-8"))


def _work(job: Job, data: Any, protocol: Protocol) -> dict[str, Any]:
    start = time.perf_counter()
    # One BLAS thread, also for reproducibility: with several, sums are rounded in another order.
    with threadpool_limits(limits=1):
        records = run_job(job, data, protocol)
    return {"key": job.key, "seed": job.seed, "seconds": round(time.perf_counter() - start, 3), "records": records}


def _lines(folder: Path) -> dict[str, Any]:
    """Results by key; a last line that an interruption cut off is removed."""
    path = folder / RESULTS
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return {line["key"]: line for line in map(json.loads, whole.splitlines())}


def _load(protocol: Protocol) -> tuple[dict[str, Any], dict[str, str]]:
    """The available data sets, and for each missing one a sentence on how to get it."""
    sets, missing = {}, {}
    for name in protocol.data_sets:
        try:
            sets[name] = load(name)
        except FileNotFoundError:
            missing[name] = REMEDY
    return sets, missing


def _describe(folder: Path, protocol: Protocol, missing: dict[str, str]) -> None:
    """Write the description of the results; raise if the folder holds those of another protocol or version."""
    now = {
        "protocol": json.loads(json.dumps(protocol.as_dict())),
        "versions": {library.__name__: library.__version__ for library in (ocrep, np, scipy, sklearn)},
        "machine": f"{platform.machine()}, {platform.system()}, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} cores",
        "missing": missing,
    }
    path = folder / ABOUT
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        differences = [
            f"{part}.{name} is {now[part].get(name)!r} now and was {before[part].get(name)!r} then"
            for part in ("protocol", "versions")
            for name in sorted({*now[part], *before[part]})
            if now[part].get(name) != before[part].get(name)
        ]
        if differences:
            raise ValueError(f"{folder} holds another study ({'; '.join(differences)}): use another folder.")
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make the folder, and exclude a second run by a lock that ends with the process, even if it is killed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("w")
    except OSError as reason:
        raise OSError(f"Cannot write to {folder} ({reason}): choose another folder for the study.") from reason
    with lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"Another run is writing to {folder}: wait for it, or choose another folder.") from None
        except ImportError:  # pragma: no cover - fcntl exists on POSIX only
            pass
        if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
            least = f"{LEAST_FREE_BYTES // 10**6} MB"
            raise OSError(f"Less than {least} are free in {folder}: free some space, or choose another folder.")
        yield


def _with_progress(work: Iterator[Any], total: int) -> Iterator[Any]:
    start = time.monotonic()
    for done, line in enumerate(work, 1):
        yield line
        left = (time.monotonic() - start) / done * (total - done)
        bar, end = "█" * (30 * done // total), "\n" if done == total else ""
        print(f"\r{bar:░<30} {done}/{total}, {left / 60:.1f} min left ", end=end, file=sys.stderr, flush=True)
