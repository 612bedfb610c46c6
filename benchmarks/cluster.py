"""Fits on Dask clusters of one and of many workers, as ratios within one run; each worker is a process of one thread.

    python benchmarks/cluster.py                     # one worker, then as many as there are cores, up to 16
    python benchmarks/cluster.py --workers 1 2 --rows 200_000 --partitions 16

Rows are made on the workers, so that no disk is measured. The floor is the hidden layer and HᵀH of each partition in
plain NumPy, spread over the same workers: what the machine itself gives. "Work" is the workers' processor time over
that of the floor, on which other programs weigh less than on the clock.

A machine without Dask needs only NumPy, SciPy and scikit-learn of its own: `make carry` collects the rest in `.carry`,
and `PYTHONPATH=src:.carry python benchmarks/cluster.py` runs there.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import dask.array as da
import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster

import ocrep
from ocrep import PinvRegressor

N_INPUTS = 20
CHUNK = 1024
PLAIN, KFOLD = "ocrep", "kfold"
ONE_THREAD = {f"{blas}_NUM_THREADS": "1" for blas in ("OPENBLAS", "OMP", "MKL", "BLIS")}


@dataclass(frozen=True, slots=True)
class Timing:
    wall: float
    work: float
    """Processor seconds of all workers."""


def rows(n_rows: int, n_partitions: int) -> tuple[da.Array, da.Array]:
    """Rows that every pass makes anew."""
    height = n_rows // n_partitions
    X = da.random.default_rng(0).uniform(-1, 1, size=(n_rows, N_INPUTS), chunks=(height, N_INPUTS))
    noise = da.random.default_rng(1).standard_normal(n_rows, chunks=height)
    return X, da.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 + 0.1 * noise


def gram(X: np.ndarray, y: np.ndarray, n_hidden: int) -> np.ndarray:
    """The hidden layer and HᵀH of one partition."""
    C = 0.5 * np.random.default_rng(0).uniform(-1, 1, size=(N_INPUTS + 1, n_hidden))
    G = np.zeros((n_hidden + 1, n_hidden + 1))
    for start in range(0, len(X), CHUNK):
        x = X[start : start + CHUNK]
        A = np.empty((len(x), n_hidden + 1))
        Z = A[:, :n_hidden]
        np.matmul(np.hstack([x, np.ones((len(x), 1))]), C, out=Z)
        np.tanh(Z, out=Z)
        Z *= 0.5
        Z += 0.5
        A[:, n_hidden] = y[start : start + CHUNK]
        G += A.T @ A
    return G


def floor(X: da.Array, y: da.Array, n_hidden: int) -> None:
    parts = zip(X.to_delayed()[:, 0], y.to_delayed(), strict=True)
    delayed(sum)([delayed(gram)(x, t, n_hidden) for x, t in parts]).compute()


def timed(client: Client, call: Callable[[], object]) -> Timing:
    worked, start = sum(client.run(time.process_time).values()), time.perf_counter()
    call()
    wall = time.perf_counter() - start
    return Timing(wall, sum(client.run(time.process_time).values()) - worked)


def on_workers(n_workers: int, options: argparse.Namespace) -> dict[str, Timing]:
    """Median times of each fit on so many workers."""
    quiet = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    common = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1", "scheduler_kwargs": quiet}
    repeats = options.repeats if n_workers > 1 else 1
    with LocalCluster(n_workers=n_workers, env=ONE_THREAD, **common) as cluster, Client(cluster) as client:

        def fit(gamma: str, X: da.Array, y: da.Array) -> None:
            PinvRegressor(options.units, gamma=gamma, random_state=0).fit(X, y)

        few = rows(20_000 * n_workers, 2 * n_workers)
        for warm_up in (lambda: fit(PLAIN, *few), lambda: floor(*few, options.units)):  # imports on the workers
            warm_up()
        many = rows(options.rows, options.partitions)
        calls = {"floor": lambda: floor(*many, options.units)}
        calls |= {gamma: lambda gamma=gamma: fit(gamma, *many) for gamma in (PLAIN, KFOLD)}
        found: dict[str, list[Timing]] = {name: [] for name in calls}
        for _ in range(repeats):
            for name, call in calls.items():
                found[name].append(timed(client, call))
    return {
        name: Timing(median(t.wall for t in timings), median(t.work for t in timings))
        for name, timings in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, min(16, os.cpu_count() or 1)])
    parser.add_argument("--rows", type=int, default=3_200_000)
    parser.add_argument("--units", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"ocrep {ocrep.__version__}, numpy {np.__version__}, {platform.machine()}, {os.cpu_count()} cores")
    print(f"{options.rows:,} rows, {options.units} units, {options.partitions} partitions; ", end="")
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} (0 is quiet)", flush=True)
    one: dict[str, Timing] = {}
    for n_workers in options.workers:
        found = on_workers(n_workers, options)
        one = one or found
        plain, kfold, least = (found[name] for name in (PLAIN, KFOLD, "floor"))
        print(
            f"{n_workers:2d} workers, speed-up over {options.workers[0]}: plain {one[PLAIN].wall / plain.wall:.2f}, "
            f"kfold {one[KFOLD].wall / kfold.wall:.2f}, floor {one['floor'].wall / least.wall:.2f}; "
            f"kfold over plain {kfold.wall / plain.wall:.2f} (work {kfold.work / plain.work:.2f}); "
            f"plain over the floor {plain.wall / least.wall:.2f} (work {plain.work / least.work:.2f}); "
            f"plain fit {plain.wall:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
