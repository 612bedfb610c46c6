"""Our networks beside scikit-learn's models on tables: test error, and fit and predict time over those of boosting.

    python benchmarks/tabular_data.py               # once: collect the data sets in benchmarks/tabular.npz
    python benchmarks/tabular.py run --jobs 8       # two cores per job; continues where it was interrupted
    python benchmarks/tabular.py render             # docs/benchmark.md and its picture

A run needs NumPy, SciPy and scikit-learn only; scikit-elm takes part where it is installed. Results are JSON lines.
One job is one split of one data set: it fits all methods in turn on its own two cores, so that their times can be
compared. Fits of less than two seconds are repeated, and the median counts.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from tabular_data import NAMES, SPLITS, Split, load, task_of
from tabular_methods import METHODS, REFERENCE

RESULTS = Path(__file__).resolve().parent / "tabular.jsonl"
REPEATS, LONG = 3, 2.0  # fits are repeated unless the first takes so many seconds
SYNTHETIC = {f"synthetic {n}": n for n in (1_000, 10_000, 100_000, 400_000)}
# On so many rows only those that are meant for them.
LARGE = [REFERENCE, "ocrep", "ocrep CV quick", "ocrep CV"]


def synthetic(n_rows: int, seed: int) -> Split:
    """Ten inputs, four of which count: a sine, a product and an exponential, with noise of 0.1; 10,000 test rows."""
    rng = check_random_state(seed)
    X = rng.uniform(-1.0, 1.0, size=(n_rows + 10_000, 10))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + np.exp(X[:, 3]) + 0.1 * rng.standard_normal(len(X))
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def timed(call: Any) -> tuple[Any, float]:
    """What the call returns, and its seconds: the median of several unless it is long."""
    seconds: list[float] = []
    while len(seconds) < REPEATS and (not seconds or seconds[0] < LONG):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, median(seconds)


def error_of(task: str, predicted: np.ndarray, y_test: np.ndarray) -> float:
    """RMSE over the standard deviation of the test targets, or the share of wrong labels."""
    if task == "classification":
        return float(np.mean(predicted != y_test))
    return float(np.sqrt(np.mean((predicted - y_test) ** 2)) / np.std(y_test))


def hindsight(model: Any, data: Split) -> dict[str, float]:
    """The least test error of the fitted layer under any γ, for our networks."""
    if not hasattr(model, "with_gamma"):
        return {}
    network = getattr(model, "best_estimator_", model)
    others = (network.with_gamma(float(network.gamma_ * factor)) for factor in np.logspace(-5.0, 5.0, 41))
    return {"hindsight": min(error_of("regression", other.predict(data.X_test), data.y_test) for other in others)}


def measure(name: str, seed: int, methods: list[str]) -> list[dict[str, Any]]:
    """Fit the methods on one split; the reference is always timed with them."""
    large = name in SYNTHETIC
    task, data = ("regression", synthetic(SYNTHETIC[name], seed)) if large else (task_of(name), load(name, seed))
    key = {"data": name, "split": seed, "n_rows": len(data.y), "n_inputs": data.X.shape[1]}
    warnings.simplefilter("ignore")  # peers that have not converged say so at every fit
    METHODS[task][REFERENCE](seed).fit(data.X[:200], data.y[:200])  # a warm-up: libraries load, threads start
    records: list[dict[str, Any]] = []
    for method in [REFERENCE, *(m for m in methods if m != REFERENCE)]:
        model = METHODS[task][method](seed)
        try:
            model, fit_s = timed(lambda model=model: model.fit(data.X, data.y))
            predicted, predict_s = timed(lambda model=model: model.predict(data.X_test))
        except Exception as exc:  # a peer that fails is a result
            records.append({**key, "method": method, "failed": f"{type(exc).__name__}: {exc}"})
            continue
        seconds = {"fit_s": fit_s, "predict_s": predict_s}
        if method == REFERENCE:
            reference = {f"reference_{k}": v for k, v in seconds.items()}
        chosen = {"chosen": repr(model.best_params_)} if hasattr(model, "best_params_") else {}
        best = hindsight(model, data) if large else {}
        error = error_of(task, predicted, data.y_test)
        records.append({**key, "method": method, "error": error, **seconds, **reference, **chosen, **best})
    return records


def read(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The results, the last of each method on each split, and the lines that say when and where they were measured."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    records = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    results = {(r["data"], r["split"], r["method"]): r for r in records if "method" in r}
    return list(results.values()), list(dict.fromkeys(r["measured"] for r in records if "measured" in r))


def pin(cores: Any) -> None:
    """Give this worker cores of its own, which no other worker of this run uses."""
    os.sched_setaffinity(0, cores.get())


def machine(jobs: int, cores: int) -> str:
    """What the times depend on, in one line."""
    from side_by_side import machine as libraries

    return f"{date.today()}, {jobs} jobs at a time on {cores} core(s) each, {libraries()}"


def run(args: argparse.Namespace) -> None:
    """Measure what is not yet in the file."""
    done = {(r["data"], r["split"], r["method"]) for r in read(args.results)[0]}
    jobs = []
    for name, seed in cells(args.only):
        methods = LARGE if name in SYNTHETIC else list(METHODS[task_of(name)])
        todo = [m for m in methods if (name, seed, m) not in done and (not args.methods or m in args.methods)]
        jobs += [(name, seed, todo)] if todo else []
    # Set before the workers start, because libraries read it when they are loaded.
    os.environ |= dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], str(args.cores))
    context = get_context("spawn")
    cores, mine = context.Queue(), sorted(os.sched_getaffinity(0))
    for worker in range(args.jobs):
        cores.put({mine[(args.cores * worker + core) % len(mine)] for core in range(args.cores)})
    with (
        args.results.open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(args.jobs, context, initializer=pin, initargs=(cores,)) as pool,
    ):
        file.write(json.dumps({"measured": machine(args.jobs, args.cores)}) + "\n")
        for number, future in enumerate(as_completed([pool.submit(measure, *job) for job in jobs]), 1):
            records = future.result()
            file.write("".join(json.dumps(record) + "\n" for record in records))
            file.flush()
            print(f"{number}/{len(jobs)}: {records[0]['data']}, split {records[0]['split']}", flush=True)


def cells(only: Iterable[str]) -> list[tuple[str, int]]:
    """Data sets and splits, the longest first, so that the last jobs are short."""
    large = [(name, 0) for name in sorted(SYNTHETIC, key=SYNTHETIC.__getitem__, reverse=True)]
    tables = [(name, seed) for task in ("classification", "regression") for name in NAMES[task] for seed in SPLITS]
    return [cell for cell in large + tables if not only or cell[0] in only]


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--jobs", type=int, default=1, help="data sets at a time; jobs × cores should be there")
    parser.add_argument("--cores", type=int, default=2, help="of each job")
    parser.add_argument("--only", nargs="+", default=[], metavar="SET")
    parser.add_argument("--methods", nargs="+", default=[], metavar="METHOD")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.command == "run":
        run(args)
    else:
        import tabular_page

        tabular_page.write(*read(args.results))


if __name__ == "__main__":
    sys.exit(main())
