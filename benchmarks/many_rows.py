"""Error and time of our stacks and of boosting on 40,000 to 1,000,000 rows, all cores, on the problems of sizes.py.

    python benchmarks/many_rows.py                                   # results/many_rows.csv
    PYTHONPATH=src:.carry:benchmarks python benchmarks/many_rows.py  # where `make carry` has put the libraries

Methods take turns on the same rows. A method that is not installed is left out, and said so.
"""

import argparse
import csv
import os
import time
from importlib.util import find_spec
from pathlib import Path

import fits
import numpy as np
from sizes import PROBLEMS
from sklearn.ensemble import HistGradientBoostingRegressor

from ocrep import PinvRegressorCV

OUT = fits.FOLDER / "many_rows.csv"
N_TEST = 10_000


def methods() -> dict[str, object]:
    found = {
        "ocrep CV": lambda: PinvRegressorCV(random_state=0),
        "ocrep CV quick": lambda: PinvRegressorCV("quick", random_state=0),
        "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
    }
    if find_spec("lightgbm"):
        from lightgbm import LGBMRegressor

        found["LightGBM"] = lambda: LGBMRegressor(random_state=0, verbose=-1)
    else:
        print("LightGBM is not installed and is left out.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[40_000, 100_000, 1_000_000])
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    measured = fits.machine(1, os.cpu_count() or 1, ["lightgbm"] * bool(find_spec("lightgbm")))
    with args.out.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["problem", "rows", "method", "error", "fit_seconds", "predict_seconds", "measured"])
        for n_rows in args.rows:
            for name, problem in PROBLEMS.items():
                rng = np.random.default_rng(0)
                X = rng.uniform(-1.0, 1.0, (n_rows + N_TEST, problem.n_inputs))
                y = problem.target(X) + problem.noise * rng.uniform(-1.0, 1.0, len(X)) * 3.0**0.5
                for method, make in methods().items():
                    start = time.perf_counter()
                    model = make().fit(X[N_TEST:], y[N_TEST:])
                    fitted = time.perf_counter()
                    wrong = model.predict(X[:N_TEST]) - y[:N_TEST]
                    done = time.perf_counter()
                    error = np.sqrt(np.mean(wrong**2)) / y[:N_TEST].std()
                    cells = [f"{error:.4f}", f"{fitted - start:.2f}", f"{done - fitted:.3f}"]
                    rows.writerow([name, n_rows, method, *cells, measured])
                    file.flush()
                    print(f"{name}, {n_rows:,} rows, {method}: error {error:.4f}, {fitted - start:.2f} s", flush=True)


if __name__ == "__main__":
    main()
