"""Fits of the methods of `tabular_methods.py` on splits, and the CSV files that keep what they gave.

One job is one split: it fits all its methods in turn on its own cores, CatBoost first, so that times can be compared.
Fits of less than two seconds are repeated, and the median counts. On one core, times are processor seconds, which other
processes on the machine do not change; on several they are seconds of the clock.
"""

import csv
import os
import platform
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from tabular_data import Split
from tabular_methods import MEMBER_OF, METHODS, OURS, PACKAGES, REFERENCE, installed, threads

import ocrep

Record = dict[str, Any]

FOLDER = Path(__file__).resolve().parent / "results"
REPEATS, LONG = 3, 2.0  # fits are repeated unless the first takes so many seconds
SECONDS = ["fit_seconds", "predict_seconds", "reference_fit_seconds", "reference_predict_seconds"]
NUMBERS = ["error", "log_loss", *SECONDS]


@dataclass(frozen=True)
class Job:
    """Methods to fit on one split."""

    key: dict[str, Any]
    """The columns that name the split in the file."""
    task: str
    seed: int
    data: Callable[[], Split]
    methods: list[str]


@dataclass(frozen=True)
class Results:
    """A CSV file of one row for each split and method, and beside it one that says when and where each run measured."""

    path: Path
    key: list[str]
    """The first columns: they name a split; the next is the method."""
    numbers: Sequence[str] = tuple(NUMBERS)
    methods: Sequence[str] = tuple(METHODS["regression"])
    """In this order."""

    @property
    def runs_path(self) -> Path:
        return self.path.with_name(f"{self.path.stem}_runs.csv")

    @property
    def columns(self) -> list[str]:
        return [*self.key, "method", *self.numbers, "run", "chosen", "failed"]

    def name_of(self, row: Record) -> tuple[str, ...]:
        """What a row is about."""
        return tuple(str(row[column]) for column in [*self.key, "method"])

    def read(self) -> list[Record]:
        """The rows; numbers as such, and None where there is none."""
        rows = _read(self.path)
        return [row | {column: float(row[column]) if row[column] else None for column in self.numbers} for row in rows]

    def runs(self) -> list[str]:
        """When and where each run measured, the first first."""
        return [row["measured"] for row in _read(self.runs_path)]

    def start(self, measured: str) -> int:
        """The number of the run that is described so."""
        runs = list(dict.fromkeys([*self.runs(), measured]))
        _write(self.runs_path, ["run", "measured"], [{"run": n, "measured": m} for n, m in enumerate(runs, 1)])
        return runs.index(measured) + 1

    def add(self, records: Iterable[Record]) -> None:
        """Put rows in place of those on the same split and method."""
        rows = {self.name_of(row): row for row in [*self.read(), *records]}
        _write(self.path, self.columns, [rows[name] for name in sorted(rows, key=self._natural)])

    def _natural(self, name: tuple[str, ...]) -> tuple[Any, ...]:
        """For sorting: numbers by size, methods as they are listed."""
        return (*(int(part) if part.isdigit() else part for part in name[:-1]), self.methods.index(name[-1]))


def _read(path: Path) -> list[Record]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, columns: list[str], rows: Iterable[Record]) -> None:
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    new.replace(path)  # whole, also when interrupted


def timed(call: Any) -> tuple[Any, float]:
    """What the call returns, and its seconds: the median of several unless it is long."""
    clock = time.process_time if threads() == 1 else time.perf_counter
    seconds: list[float] = []
    while len(seconds) < REPEATS and (not seconds or seconds[0] < LONG):
        start = clock()
        result = call()
        seconds.append(clock() - start)
    return result, median(seconds)


def error_of(task: str, predicted: np.ndarray, y_test: np.ndarray) -> float:
    """RMSE over the standard deviation of the test targets, or the share of wrong labels."""
    if task == "classification":
        return float(np.mean(predicted != y_test))
    return float(np.sqrt(np.mean((predicted - y_test) ** 2)) / np.std(y_test))


def judge(task: str, model: Any, data: Split) -> Record:
    """Errors on the test rows and the time to predict them."""
    predicted, seconds = timed(lambda: np.ravel(model.predict(data.X_test)))
    judged = {"error": error_of(task, predicted, data.y_test), "predict_seconds": seconds}
    if task == "classification" and hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(data.X_test), dtype=float)
        shares /= shares.sum(axis=1, keepdims=True)  # of 32-bit libraries
        judged["log_loss"] = float(log_loss(data.y_test, shares, labels=np.unique(data.y)))
    return judged


def attempt(call: Callable[[], Record]) -> Record:
    """What the call returns, or why it failed: a peer that fails is a result."""
    try:
        return call()
    except Exception as exc:
        return {"failed": f"{type(exc).__name__}: {exc}"}


def measure(job: Job) -> list[Record]:
    """Fit the methods on one split; the reference is always timed with them, if it is there."""
    warnings.simplefilter("ignore")  # peers that have not converged say so at every fit
    data, methods = job.data(), METHODS[job.task]
    reference: Record = {}
    records: list[Record] = []
    if installed(REFERENCE):
        methods[REFERENCE](job.seed).fit(data.X[:200], data.y[:200])  # a warm-up: libraries load, threads start
    for method in [REFERENCE] * installed(REFERENCE) + [m for m in job.methods if m != REFERENCE]:
        model = methods[method](job.seed)
        fitted = attempt(lambda model=model: {"fit_seconds": timed(lambda: model.fit(data.X, data.y))[1]})
        if method in OURS and hasattr(model, "best_params_"):
            fitted["chosen"] = repr(model.best_params_)
        for name in [method, *(member for member, of in MEMBER_OF.items() if of == method)]:
            record = {**job.key, "method": name, **fitted}
            if "failed" not in fitted:
                part = "best_estimator_" if name in MEMBER_OF else None
                record |= attempt(lambda m=model, p=part: judge(job.task, getattr(m, p) if p else m, data))
            if method == REFERENCE and "failed" not in record:
                reference = {f"reference_{column}": record[column] for column in ("fit_seconds", "predict_seconds")}
            records.append(record | reference)
    return [record for record in records if record["method"] != REFERENCE or REFERENCE in job.methods]


def pin(cores: Any) -> None:
    """Give this worker cores of its own, which no other worker of this run uses."""
    os.sched_setaffinity(0, cores.get())


def machine(jobs: int, cores: int, libraries: Sequence[str] = ()) -> str:
    """What the times depend on, in one line."""
    if not libraries:
        libraries = [PACKAGES[m][1] for m in PACKAGES if installed(m)]
        libraries += ["torch"] * (installed("xRFM") or installed("RealMLP"))
    libraries = ["numpy", "scipy", "scikit-learn", *libraries]
    return (
        f"{date.today()}, {platform.machine()}, {os.cpu_count()} cores, {jobs} job(s) at a time on {cores} each, "
        f"{'processor' if cores == 1 else 'clock'} seconds, CPython {platform.python_version()}, "
        f"ocrep {ocrep.__version__}, " + ", ".join(f"{name} {version(name)}" for name in libraries)
    )


def arguments(parser: ArgumentParser) -> ArgumentParser:
    """The options of a run."""
    parser.add_argument("--jobs", type=int, default=1, help="splits at a time; jobs × cores should be there")
    parser.add_argument("--cores", type=int, default=1, help="of each job")
    parser.add_argument("--methods", nargs="+", default=[], metavar="METHOD", choices=list(METHODS["regression"]))
    parser.add_argument("--again", action="store_true", help="also what is in the file; what is new takes its place")
    return parser


def missing(job: Job, results: Results, args: Namespace) -> list[str]:
    """The methods of a job that are asked for, installed, and not in the file."""
    done = set() if args.again else {results.name_of(row) for row in results.read()}
    wanted = [m for m in job.methods if (not args.methods or m in args.methods) and installed(m)]
    wanted = [m for m in wanted if results.name_of({**job.key, "method": m}) not in done]
    return list(dict.fromkeys(MEMBER_OF.get(m, m) for m in wanted))


def run(jobs: list[Job], results: Results, args: Namespace) -> None:
    """Fit what is missing in the file."""
    for method in [m for m in PACKAGES if not installed(m) and (not args.methods or m in args.methods)]:
        print(f"{method} is left out: {PACKAGES[method][1]} is not installed.")
    todo = [Job(job.key, job.task, job.seed, job.data, missing(job, results, args)) for job in jobs]
    todo = [job for job in todo if job.methods]
    if not todo:
        return
    # Set before the workers start, because libraries read it when they are loaded.
    os.environ |= dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], str(args.cores))
    context = get_context("spawn")
    cores, mine = context.Queue(), sorted(os.sched_getaffinity(0))
    for worker in range(args.jobs):
        cores.put({mine[(args.cores * worker + core) % len(mine)] for core in range(args.cores)})
    number = results.start(machine(args.jobs, args.cores))
    with ProcessPoolExecutor(args.jobs, context, initializer=pin, initargs=(cores,)) as pool:
        futures = {pool.submit(measure, job): job for job in todo}
        for count, future in enumerate(as_completed(futures), 1):
            results.add({**record, "run": number} for record in future.result())
            print(f"{count}/{len(todo)}: {', '.join(str(v) for v in futures[future].key.values())}", flush=True)
