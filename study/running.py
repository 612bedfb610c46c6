"""Run a protocol into a folder, and read and publish its results.

A protocol is run as jobs in stages: what later stages run depends on the results of earlier ones. Jobs run in any
number of processes, each with one BLAS thread, and every number depends only on its job, so the number of workers
changes no result. A folder holds

- about.json: the protocol, the versions of libraries, the machine, and which data sets are missing;
- results.jsonl: a line for each finished job, appended as it ends, so an interrupted run continues where it stopped;
- run.lock: held by the run that writes to the folder.

A published study is one Parquet file: a row per number, and about.json, without the machine, in its metadata.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy
import sklearn
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import ocrep
from ocrep.datasets import load
from study.experiments import PATH_METHODS, Job, run_job
from study.judgement import Study, decide
from study.protocol import BIASES, PEAK_SETS, REFERENCE_SPLIT, REGRESSION, REVISION, Protocol, Variant
from study.results import NAMES_OF_CASE, NUMBERS, Results, Row, frame_of

LINES, ABOUT, LOCK = "results.jsonl", "about.json", "run.lock"
METADATA = b"ocrep.study"
LEAST_FREE_BYTES = 50_000_000
REMEDY = "not bundled: set OCREP_DATA to a folder that holds delta_ailerons.csv, or install ocrep[data] and be online."
DISPATCHED = 1.25  # jobs handed out at a time, per worker: few, so that a run that must end soon can
# The jobs that take longest come first within a stage, so that none runs alone at its end.
SLOWEST_FIRST = ("segment", "delta_ailerons", "abalone", "diabetes", "housing", "wine", "machine_cpu", "iris")
PEAK_DRAWS = 3


# ------------------------------------------------------------------------------
# Which jobs a protocol consists of.


def stages(protocol: Protocol, data_sets: Iterable[str], results: Callable[[], Results]) -> Iterator[list[Job]]:
    """Yield the jobs of one stage after the other, the most important first; `results` gives those known by then.

    The first two stages decide how the paper is to be read. All paths and sizes follow that reading.
    """
    sets = sorted(data_sets, key=lambda name: SLOWEST_FIRST.index(name) if name in SLOWEST_FIRST else -1)
    others = [name for name in sets if name != "segment"]
    yield [job for name in others for biases in BIASES for job in _reference(protocol, name, biases)]
    chosen = decide(results()).variant.biases
    yield [job for name in ("delta_ailerons", "housing") if name in sets for job in _further(protocol, name, chosen)]
    variant = decide(results()).variant
    segment = [name for name in sets if name == "segment"]
    first = [job for name in segment for job in _reference(protocol, name, chosen)]
    first += [job for name in sets for job in _paths(protocol, name, variant, [REFERENCE_SPLIT])]
    yield first + [job for name in sets for job in _further(protocol, name, chosen)]
    yield _chosen(protocol, sets, variant, results())
    further = range(1, 1 + protocol.path_splits)
    yield [job for name in others for job in (*_paths(protocol, name, variant, further), *_extras(protocol, name))]
    yield _chosen(protocol, sets, variant, results())
    yield [job for name in segment for job in _extras(protocol, name)]
    rest = [biases for biases in BIASES if biases != chosen]
    yield [job for name in others for biases in rest for job in _further(protocol, name, biases)]
    yield [job for name in segment for biases in rest for job in _reference(protocol, name, biases)]
    yield [job for name in segment for job in _paths(protocol, name, variant, further)]
    yield _chosen(protocol, sets, variant, results())
    yield [job for name in segment for biases in rest for job in _further(protocol, name, biases)]


def _reference(protocol: Protocol, data: str, biases: str) -> list[Job]:
    return [Job("fixed", data, REFERENCE_SPLIT, draw, biases) for draw in range(protocol.reference_draws)]


def _further(protocol: Protocol, data: str, biases: str) -> list[Job]:
    counts = protocol.splits_of(data)
    splits = range(1, 1 + counts.splits)
    return [Job("fixed", data, split, draw, biases) for split in splits for draw in range(counts.draws)]


def _paths(protocol: Protocol, data: str, variant: Variant, splits: Iterable[int]) -> list[Job]:
    """All parts of the paths on some splits."""
    n_parts = protocol.segment_parts if data == "segment" else 1
    return [
        Job("path", data, split, draw, variant.biases, _scale(data, variant), part)
        for split in splits
        for draw in range(_path_draws(protocol, data, split))
        for part in range(n_parts)
    ]


def _path_draws(protocol: Protocol, data: str, split: int) -> int:
    if split != REFERENCE_SPLIT:
        return 1
    return protocol.segment_draws if data == "segment" else protocol.path_draws


def _scale(data: str, variant: Variant) -> str:
    """The scale of the targets: classes have only one."""
    return variant.targets if data in REGRESSION else "raw"


def _chosen(protocol: Protocol, data_sets: Iterable[str], variant: Variant, results: Results) -> list[Job]:
    """Draws at the sizes that the paths chose, on each split whose paths are complete."""
    work = []
    for data in data_sets:
        scale = _scale(data, variant)
        for split in range(1 + protocol.path_splits):
            n_rows = _path_draws(protocol, data, split) * len(protocol.path_sizes(data))
            sizes = chosen_sizes(results, data, variant, split, n_rows)
            draws = range(protocol.chosen_draws if split == REFERENCE_SPLIT else protocol.path_draws)
            if sizes:
                work += [Job("chosen", data, split, draw, variant.biases, scale, 0, sizes) for draw in draws]
    return work


def chosen_sizes(results: Results, data: str, variant: Variant, split: int, n_rows: int) -> tuple[tuple[str, int], ...]:
    """Return each method's size of least cross-validation error, in the mean over draws; none before all is run.

    Of sizes with the same error the smallest is chosen.
    """
    sizes = []
    for method in PATH_METHODS:
        rows = results.rows("path", data, variant, 0, method)
        rows = rows[rows.index.get_level_values("split") == split]
        if len(rows) < n_rows:
            return ()
        sizes.append((method, int(rows.groupby("n_hidden")["cv_error"].mean().idxmin())))
    return tuple(sizes)


def _extras(protocol: Protocol, data: str) -> list[Job]:
    """The experiments that are not the paper's own, with the library's own biases."""
    work = []
    for split in range(1 + protocol.beyond_splits):
        draws = range(protocol.beyond_draws if split == REFERENCE_SPLIT else 1)
        kinds = ["beyond", "literature"] if protocol.literature else ["beyond"]
        work += [Job(kind, data, split, draw) for kind in kinds for draw in draws]
        if data in PEAK_SETS:
            work += [Job("peak", data, split, draw) for draw in range(min(len(draws), PEAK_DRAWS))]
    return work + [Job("stability", data, REFERENCE_SPLIT, draw) for draw in range(protocol.stability_draws)]


# ------------------------------------------------------------------------------
# Running them.


def run(
    protocol: Protocol,
    folder: str | Path,
    *,
    n_jobs: int = 2,
    seconds: float | None = None,
    progress: bool | None = None,
) -> Study:
    """Run all jobs whose results are not yet in the folder, and return the study.

    A run that was interrupted or killed continues where it stopped. A folder with results of another protocol or
    version raises a ValueError, and a second run in the same folder at the same time raises a RuntimeError.

    Parameters
    ----------
    protocol : Protocol
        What to run.
    folder : path
        Where results are stored; created if it does not exist.
    n_jobs : int, default=2
        Worker processes, each with one BLAS thread. Results do not depend on it.
    seconds : float or None, default=None
        After this many seconds no further job is begun; the next run continues. None runs all.
    progress : bool or None, default=None
        Whether to show a progress line; None shows it if the error stream is a terminal.

    Returns
    -------
    Study
        The results of all jobs, new and old.
    """
    folder = Path(folder)
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    shown = sys.stderr.isatty() if progress is None else progress
    with _alone(folder):
        sets: dict[str, Any] = {}
        missing: dict[str, str] = {}
        for name in protocol.data_sets:
            try:
                sets[name] = load(name)
            except FileNotFoundError:
                missing[name] = REMEDY
        _describe(folder, protocol, missing)
        known = read_lines(folder)
        with (folder / LINES).open("a", encoding="utf-8") as lines:
            for number, stage in enumerate(stages(protocol, sets, lambda: _collected(known)), 1):
                todo = list({job.key: job for job in stage if job.key not in known}.values())
                work = _work_all(todo, sets, protocol, n_jobs, end)
                for key, spent, rows in _with_progress(work, len(todo), number) if shown else work:
                    known[key] = [row.packed() for row in rows]
                    line = {"key": key, "seconds": round(spent, 3), "rows": known[key]}
                    lines.write(json.dumps(line, separators=(",", ":")) + "\n")
                    lines.flush()
                if time.monotonic() >= end:
                    break
    return load_study(folder)


def _work_all(
    jobs: list[Job], sets: dict[str, Any], protocol: Protocol, n_jobs: int, end: float
) -> Iterator[tuple[str, float, list[Row]]]:
    """The results of jobs as they come, with the seconds that they took; none is begun after `end`."""
    begun = (delayed(_work)(job, sets[job.data], protocol) for job in jobs if time.monotonic() < end)
    options: dict[str, Any] = {"batch_size": 1, "pre_dispatch": f"{DISPATCHED}*n_jobs"}
    yield from Parallel(n_jobs, return_as="generator_unordered", **options)(begun)


def _work(job: Job, data: Any, protocol: Protocol) -> tuple[str, float, list[Row]]:
    start = time.perf_counter()
    # One BLAS thread, also for reproducibility: with several, sums are rounded in another order.
    with threadpool_limits(limits=1):
        rows = run_job(job, data, protocol)
    return job.key, time.perf_counter() - start, rows


def _with_progress(work: Iterable[Any], total: int, stage: int) -> Iterator[Any]:
    """The work, with a line on the error stream about how far it is, at most once a second."""
    start = shown = time.monotonic()
    for done, item in enumerate(work, 1):
        yield item
        now = time.monotonic()
        if done == total or now - shown > 1.0:
            shown = now
            left = (now - start) / done * (total - done)
            bar = "█" * (30 * done // total)
            text = f"\rstage {stage} {bar:░<30} {done}/{total} jobs, {left / 60:.1f} min left "
            print(text, end="\n" if done == total else "", file=sys.stderr, flush=True)


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
        except ImportError:  # fcntl exists on POSIX only
            pass
        if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
            least = f"{LEAST_FREE_BYTES // 10**6} MB"
            raise OSError(f"Less than {least} are free in {folder}: free some space, or choose another folder.")
        yield


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
    with _replacing(path) as temporary:
        temporary.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when all is written."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# ------------------------------------------------------------------------------
# Reading and publishing the results.


def read_lines(folder: Path) -> dict[str, list[list[Any]]]:
    """Return the rows of each finished job by its key; a last line that an interruption cut off is removed."""
    path = folder / LINES
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    known: dict[str, Any] = {}
    for line in map(json.loads, whole.splitlines()):
        if known.setdefault(line["key"], line["rows"]) != line["rows"]:
            raise ValueError(f"{folder} holds two different results of {line['key']}: start again in an empty folder.")
    return known


def _collected(known: dict[str, list[list[Any]]]) -> Results:
    """The rows of all jobs as one table."""
    records = []
    for key, rows in known.items():
        kind, data, split, draw, biases, *_ = key.split("/")
        records += [(kind, data, biases, int(split), int(draw), Row(*row)) for row in rows]
    # Published files hold float32, and must give the same report.
    return Results.of(frame_of(records).astype(dict.fromkeys(NUMBERS, "float32")))


def load_study(source: str | Path) -> Study:
    """Read the results of a folder or of a published file.

    Parameters
    ----------
    source : path
        A folder in which `run` stored results, or a file that `publish` wrote; another revision raises a ValueError.

    Returns
    -------
    Study
        Results and description.
    """
    source = Path(source)
    if source.suffix == ".parquet":
        table = pq.read_table(source)
        metadata = table.schema.metadata or {}
        if METADATA not in metadata:
            raise ValueError(f"{source} holds no results of a study: give a folder, or a file that was published.")
        about = json.loads(metadata[METADATA])
        results = Results.of(table.to_pandas())
    elif (source / ABOUT).is_file():
        about = json.loads((source / ABOUT).read_text(encoding="utf-8"))
        results = _collected(read_lines(source))
    else:
        raise FileNotFoundError(f"{source} holds no study: run one with `python -m study quick --out FOLDER` first.")
    found = about["protocol"].get("revision")
    if found != REVISION:
        raise ValueError(
            f"{source} holds results of revision {found} of the experiments, and this is revision {REVISION}: run the "
            "study again, or use the version of the study that made them."
        )
    return Study(results, about)


def publish(folder: str | Path, path: str | Path) -> Path:
    """Write the results of a folder as one compressed Parquet file.

    Parameters
    ----------
    folder : path
        Where `run` stored results.
    path : path
        The file to write.

    Returns
    -------
    Path
        The file.
    """
    study = load_study(folder)
    about = {name: value for name, value in study.about.items() if name != "machine"}
    types = {name: pa.dictionary(pa.int32(), pa.string()) for name in NAMES_OF_CASE}
    types |= dict.fromkeys(("split", "draw", "n_hidden"), pa.int16()) | dict.fromkeys(NUMBERS, pa.float32())
    schema = pa.schema(types, metadata={METADATA: json.dumps(about)})
    table = pa.Table.from_pandas(study.results.frame, schema=schema, preserve_index=False)
    table = table.replace_schema_metadata(schema.metadata)  # pandas adds its own
    with _replacing(Path(path)) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=19)
    return Path(path)
