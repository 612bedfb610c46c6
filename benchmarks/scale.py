"""A fit on 20 million rows of Parquet: its peak memory, and whether its rows per second hold up to 2 million rows.

Run `python benchmarks/scale.py`; it writes about 1.6 GB to a temporary folder and removes them again. Every fit runs in
a process of its own, small and large ones by turns, and medians are compared. `docs/out-of-core.md` keeps the last
recorded run.
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_INPUTS = 10
FILE_ROWS = 1_000_000


def write_rows(folder: Path, n_rows: int) -> None:
    """Files of a million rows, in row groups as Arrow makes them."""
    import pyarrow
    import pyarrow.parquet

    for number in range(n_rows // FILE_ROWS):
        rng = np.random.default_rng(number)
        X = rng.uniform(-1, 1, (N_INPUTS, FILE_ROWS))
        y = np.sin(2 * X[0]) + X[1] * X[2] + 0.5 * X[3] ** 2 + 0.1 * rng.standard_normal(FILE_ROWS)
        table = pyarrow.table({**{f"x{j}": X[j] for j in range(N_INPUTS)}, "y": y})
        pyarrow.parquet.write_table(table, folder / f"part{number:03}.parquet")


def fit(paths: list[str], n_hidden: int, checkpoint: str | None) -> None:
    """Fit, and print what it took."""
    from ocrep import PinvRegressor, scan

    rows = []
    source = scan(paths, target="y", progress=lambda done, total: rows.append(done), checkpoint=checkpoint)
    wall, processor = time.perf_counter(), time.process_time()
    model = PinvRegressor(n_hidden, random_state=0).fit(source)
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - wall,
                "processor": time.process_time() - processor,
                "passes": rows.count(max(rows)),
                "condition": model.condition_number_,
                "gamma": model.gamma_,
                "peak_megabytes": peak_megabytes(),
            }
        )
    )


def peak_megabytes() -> float:
    """The most memory this process had; `getrusage` would count its parent's, of which it is a copy at first."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def measured(paths: list[Path], n_hidden: int, checkpoint: Path | None = None) -> dict[str, float]:
    """The same in a fresh process."""
    job = json.dumps([[str(path) for path in paths], n_hidden, checkpoint and str(checkpoint)])
    done = subprocess.run([sys.executable, __file__, "--job", job], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    found["rows_per_second"] = len(paths) * FILE_ROWS / found["seconds"]
    found["rows_per_processor_second"] = len(paths) * FILE_ROWS / found["processor"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=20)
    parser.add_argument("--small", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--job")
    options = parser.parse_args()
    if options.job:
        fit(*json.loads(options.job))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), options.millions * FILE_ROWS)
        paths = sorted(Path(folder).glob("*.parquet"))
        size = sum(path.stat().st_size for path in paths) / 1e9
        print(f"{platform.machine()}, {len(paths)} files, {size:.2f} GB, M = {options.hidden}")
        runs: dict[str, list[dict[str, float]]] = {"small": [], "large": []}
        for _ in range(options.repeats):
            for name, part in (("small", paths[: options.small]), ("large", paths)):
                runs[name].append(measured(part, options.hidden))
                print(name, {key: float(f"{value:.4g}") for key, value in runs[name][-1].items()}, flush=True)
        for what in ("rows_per_second", "rows_per_processor_second"):
            small, large = (statistics.median(run[what] for run in runs[name]) for name in ("small", "large"))
            print(f"{what}: {large:.3g} at {options.millions} million over {small:.3g}: {large / small:.2f}")
        print(f"peak memory: {max(run['peak_megabytes'] for run in runs['large']):.0f} MB")
        saved = measured(paths[: options.small], options.hidden, Path(folder) / "fit.ckpt")
        plain = statistics.median(run["processor"] for run in runs["small"])
        print(f"with checkpoints every minute: {saved['processor'] / plain:.2f} of the processor time without")


if __name__ == "__main__":
    main()
