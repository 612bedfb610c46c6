"""Run a protocol into a folder: in parallel, resumable, the same bytes whatever the number of workers."""

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
from typing import Any, TextIO

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import ocrep
from ocrep._choices import pick
from ocrep.datasets import load
from ocrep.study.experiments import Job, Record, run_job
from ocrep.study.protocol import PEAK_SETS, PROTOCOLS, REFERENCE_SPLIT, Protocol

RESULTS, ABOUT, LOCK = "results.jsonl", "about.json", "run.lock"
HOW_TO_GET = (
    "not bundled: set OCREP_DATA to a folder that holds delta_ailerons.csv, or install ocrep[data] and be online."
)
LEAST_FREE_BYTES = 50_000_000


def run(protocol: str | Protocol, folder: str | Path, *, n_jobs: int = 2, progress: bool | None = None) -> list[Record]:
    """Run what the folder does not have yet, and give all records.

    Interrupted, even by a kill, and started again, it goes on where it stopped. A folder that holds results of another
    protocol or version is refused, and so is a second run beside one that is still going on.

    Parameters
    ----------
    protocol : "quick", "full" or Protocol
        What to run.
    folder : path
        Where results are kept; made if it is not there.
    n_jobs : int, default=2
        Worker processes, each with one BLAS thread. Results do not depend on it.
    progress : bool or None, default=None
        Whether to show a progress line with the time left; by default if the error stream is a terminal.
    """
    if isinstance(protocol, str):
        protocol = pick("protocol", protocol, PROTOCOLS)
    folder = _usable(Path(folder))
    with _alone(folder):
        sets, missing = _load(protocol)
        _describe(folder, protocol, missing)
        done = set(_lines(folder))
        todo = [job for job in jobs(protocol, tuple(sets)) if job.key not in done]
        shown = sys.stderr if progress or (progress is None and sys.stderr.isatty()) else None
        work = Parallel(n_jobs, batch_size=1, return_as="generator_unordered")(
            delayed(_work)(job, sets[job.data], protocol) for job in todo
        )
        with (folder / RESULTS).open("a", encoding="utf-8") as file:
            for line in _with_progress(work, len(todo), shown):
                file.write(json.dumps(line) + "\n")
                file.flush()
    return read(folder)


def jobs(protocol: Protocol, data_sets: tuple[str, ...]) -> list[Job]:
    """All units of work, those of the reference split first."""
    work = []
    for data in data_sets:
        # Segment's path is as long as all others together: it stays on the reference split.
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
    """The records of a folder, in an order that does not depend on how they came."""
    lines = _lines(Path(folder))
    return [record for key in sorted(lines) for record in lines[key]["records"]]


def about(folder: str | Path) -> dict[str, Any]:
    """What a folder's results are: protocol, versions, machine, missing data sets."""
    path = Path(folder) / ABOUT
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no study: run one with ocrep.study.run(...) first.")
    return json.loads(path.read_text(encoding="utf-8"))


def _work(job: Job, data: Any, protocol: Protocol) -> dict[str, Any]:
    start = time.perf_counter()
    # One BLAS thread, not only for speed: sums in another order would be other bytes.
    with threadpool_limits(limits=1):
        records = run_job(job, data, protocol)
    return {"key": job.key, "seed": job.seed, "seconds": round(time.perf_counter() - start, 3), "records": records}


def _lines(folder: Path) -> dict[str, Any]:
    """Results by key; a last line that an interruption cut off is taken away."""
    path = folder / RESULTS
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return {line["key"]: line for line in map(json.loads, whole.splitlines())}


def _load(protocol: Protocol) -> tuple[dict[str, Any], dict[str, str]]:
    """The data sets that can be had, and for the others a sentence that says how to get them."""
    sets, missing = {}, {}
    for name in protocol.data_sets:
        try:
            sets[name] = load(name)
        except FileNotFoundError:
            missing[name] = HOW_TO_GET
    return sets, missing


def _describe(folder: Path, protocol: Protocol, missing: dict[str, str]) -> None:
    """Say what the folder holds, or refuse to mix it with something else."""
    versions = {library.__name__: library.__version__ for library in (ocrep, np, scipy, sklearn)}
    now = {
        "protocol": json.loads(json.dumps(protocol.as_dict())),
        "versions": versions,
        "machine": f"{platform.machine()}, {platform.system()}, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} cores",
        "missing": missing,
    }
    path = folder / ABOUT
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        differences = [
            f"{part}.{name} is {now[part].get(name)!r} here and {before[part].get(name)!r} there"
            for part in ("protocol", "versions")
            for name in sorted({*now[part], *before[part]})
            if now[part].get(name) != before[part].get(name)
        ]
        if differences:
            raise ValueError(f"{folder} holds another study ({'; '.join(differences)}): use another folder.")
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def _usable(folder: Path) -> Path:
    """Find out now, not after an hour, whether the folder can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as reason:
        raise OSError(f"{folder} cannot be written to ({reason}): choose another folder for the study.") from reason
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        raise OSError(
            f"Less than {LEAST_FREE_BYTES // 10**6} MB are free in {folder}: make room or choose another folder."
        )
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second run out; the lock goes with the process, so a killed run leaves none behind."""
    with (folder / LOCK).open("w") as lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"Another run is writing to {folder}: wait for it, or choose another folder.") from None
        except ImportError:  # pragma: no cover - no such locks outside POSIX
            pass
        yield


def _with_progress(work: Iterator[Any], total: int, shown: TextIO | None) -> Iterator[Any]:
    start = time.monotonic()
    for done, line in enumerate(work, 1):
        yield line
        if shown is not None:
            left = (time.monotonic() - start) / done * (total - done)
            filled = "█" * (30 * done // total)
            shown.write(f"\r{filled:░<30} {done}/{total}, {left / 60:.1f} min left ")
            shown.flush()
    if shown is not None and total:
        shown.write("\n")
