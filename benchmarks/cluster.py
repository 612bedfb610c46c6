"""One Dask worker against two, and the cost model of docs/scaling.md against both, side by side in one run.

Run on a machine that does nothing else:

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/cluster.py

With two cores for two workers, anything else that runs shows as a lost speed-up. The comparison with the model counts
the workers' processor time, on which others weigh much less. Rows are made on the workers, so that no disk is measured;
fits on one and on two workers alternate. `--quick` leaves out the large points.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import ocrep
from ocrep import PinvRegressor
from ocrep._features.hidden_map import ACTIVATIONS

N_INPUTS = 10
RANGE = (0.0, 1.0)
# Rows × units; 10 inputs each.
POINTS = ((100_000, 100), (1_000_000, 100), (4_000_000, 100), (100_000, 400), (1_000_000, 400))
QUICK = ((100_000, 100), (1_000_000, 100), (100_000, 400))
PARTITION = 50_000
BLOCK = 10_000


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Least processor time of a call: what others on the machine do only adds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def speeds(n_hidden: int) -> dict[str, float]:
    """Seconds per row of each step, for one core and blocks of this width."""
    rng = np.random.default_rng(0)
    X, C = rng.uniform(size=(BLOCK, N_INPUTS)), rng.uniform(size=(N_INPUTS, n_hidden))
    H = X @ C
    phi = ACTIVATIONS["sigmoid"].function
    return {
        "rows": seconds(lambda: rng.uniform(size=(BLOCK, N_INPUTS))) / BLOCK,
        "XC": seconds(lambda: X @ C) / BLOCK,
        "φ": seconds(lambda: phi(H)) / BLOCK,
        "HᵀH": seconds(lambda: H.T @ H) / BLOCK,
        "QR": seconds(lambda: np.linalg.qr(H, mode="r"), 3) / BLOCK,
    }


@dataclass(frozen=True, slots=True)
class Timing:
    wall: float
    work: float
    """Processor seconds of all workers."""
    condition: float


def fit(client: Client, n_rows: int, n_hidden: int, route: str) -> Timing:
    """Train once on this cluster."""
    with client.as_current():
        X = da.random.default_rng(0).uniform(*RANGE, size=(n_rows, N_INPUTS), chunks=(PARTITION, N_INPUTS))
        y = da.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * X[:, 3]
        # Wide weights keep κ(H) below 5·10⁴, so that the Gram matrix proves itself and each partition is mapped once.
        model = PinvRegressor(n_hidden, input_scaling=RANGE, weight_scale=4.0, solver=route, random_state=0)
        worked, start = sum(client.run(time.process_time).values()), time.perf_counter()
        model.fit(X, y)
        wall = time.perf_counter() - start
        return Timing(wall, sum(client.run(time.process_time).values()) - worked, model.condition_number_)


def measure(one: Client, two: Client, n_rows: int, n_hidden: int, route: str, repeats: int) -> str:
    """One line of the table."""
    step = speeds(n_hidden)
    last = "QR" if route == "qr" else "HᵀH"
    model = n_rows * sum(step[name] for name in ("rows", "XC", "φ", last))
    pairs = [[fit(client, n_rows, n_hidden, route) for client in (one, two)] for _ in range(repeats)]
    single, double = zip(*pairs, strict=True)
    work = min(timing.work for timing in single)
    walls = [[timing.wall for timing in timings] for timings in (single, double)]
    cells = (
        *(f"{n_rows:,}", n_hidden, route, f"{single[0].condition:.0e}"),
        *(f"{model:.2f}", f"{work:.2f}", f"{work / model:.2f}"),
        *(f"{min(walls[0]):.2f}", f"{min(walls[1]):.2f}", f"{min(walls[0]) / min(walls[1]):.2f}"),
        f"{max(max(wall) / min(wall) for wall in walls):.2f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1 and OMP_NUM_THREADS=1: two workers must not share four threads")
    quiet = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    common = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1", "scheduler_kwargs": quiet}
    print(f"ocrep {ocrep.__version__}, numpy {np.__version__}, {platform.machine()}, {os.cpu_count()} cores")
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} (0 is quiet)\n")
    columns = ("rows", "units", "route", "κ(H)", "model, s", "work, s", "work over model")
    columns += ("one worker, s", "two workers, s", "speed-up", "spread")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    with (
        LocalCluster(n_workers=1, **common) as single,
        LocalCluster(n_workers=2, **common) as double,
        Client(single) as one,
        Client(double) as two,
    ):
        for client in (one, two):  # imports on the workers
            fit(client, 4 * PARTITION, 50, "auto")
        for n_rows, n_hidden in QUICK if options.quick else POINTS:
            for route in ("auto", "qr"):
                print(measure(one, two, n_rows, n_hidden, route, options.repeats), flush=True)
    print(f"\nspread: slowest over fastest of {options.repeats} repeats; above 1.2 the speed-up says little")
    print(f"load of the machine after: {os.getloadavg()[0]:.1f} (two, if nothing else ran)")


if __name__ == "__main__":
    main()
