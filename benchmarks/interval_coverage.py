"""Do intervals hold what they promise, also where noise is large? The table of docs/probabilities.md.

Run as `python benchmarks/interval_coverage.py`; OCREP_DATA names the folder of Delta Ailerons and of `tables`. Six
tables are made here, four are real. Each is cut at random into training rows, 30, 150 or 1,000, and test rows, at most
4,000, for several seeds; 90 % are asked for. `fifths` orders the test rows by the width of their intervals, and by
their predictions where widths are equal: the least and the largest coverage of the five parts, means over the seeds.
`--single` judges one network with `calibrate="loo"` in place of the stack.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

from ocrep import PinvRegressor, TableRegressor
from ocrep.datasets import load

COVERAGE = 0.9
SIZES = (30, 150, 1000)


def planted(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Six inputs, a smooth function of two of them, and noise of some kind."""
    X = rng.uniform(-1.0, 1.0, (n, 6))
    f = np.sin(3.0 * X[:, 0]) + X[:, 1]
    noise = rng.standard_normal(n)
    if kind == "constant noise":
        return X, f + 0.3 * noise
    if kind == "noise grows with an input":
        return X, f + np.exp(1.2 * X[:, 2] - 1.5) * noise
    if kind == "noise at both ends":
        return X, f + (0.05 + 0.6 * X[:, 2] ** 2) * noise
    if kind == "noise of two kinds":
        return X, f + np.where(X[:, 3] > 0.3, 0.8, 0.1) * noise
    if kind == "prices (log-normal)":
        return X, np.exp(f + 0.35 * noise)
    return X, f + 0.3 * rng.standard_t(3, n)  # "heavy tails"


PLANTED = (
    "constant noise",
    "noise grows with an input",
    "noise at both ends",
    "noise of two kinds",
    "prices (log-normal)",
    "heavy tails",
)


def tables() -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    found = {}
    for name in ("abalone", "housing", "delta_ailerons"):
        X, y = load(name, return_X_y=True)
        found[name] = pd.DataFrame(np.asarray(X)), np.asarray(y)
    bikes = pd.read_csv(Path(os.environ["OCREP_DATA"]) / "tables" / "bike_sharing.csv")
    # Casual and registered riders add up to the target.
    found["bike_sharing"] = bikes.drop(columns=["instant", "casual", "registered", "cnt"]), bikes["cnt"].to_numpy(float)
    return found


def rows(name: str, real: dict, n: int, seed: int) -> tuple:
    """Training and test rows."""
    rng = np.random.default_rng(seed)
    if name in real:
        X, y = real[name]
        order = rng.permutation(len(y))[: n + 4000]
        X, y = X.iloc[order].reset_index(drop=True), y[order]
    else:
        X, y = planted(name, n + 4000, rng)
        X = pd.DataFrame(X)
    return X[:n], y[:n], X[n:], y[n:]


def judged(model, X, y) -> tuple[np.ndarray, np.ndarray]:
    """Of each test row, whether its target is inside, ordered by width; and how wide the interval is."""
    low, high = model.predict_interval(X, COVERAGE).T
    # Rounding must not order intervals of equal widths.
    order = np.lexsort((model.predict(X), np.round((high - low) / np.median(high - low), 6)))
    return ((low <= y) & (y <= high))[order], low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--tables", nargs="*")
    asked = parser.parse_args()
    real = tables()
    print("| table | rows | coverage | fifths | with weights | lower ends < 0 |\n|---|---|---|---|---|---|")
    for name in asked.tables or (*PLANTED, *real):
        for n in asked.sizes:
            if name in real and len(real[name][1]) < n + 200:
                continue
            inside, weighted, negative = [], [], []
            for seed in range(asked.seeds if n < 1000 else max(2, asked.seeds // 2)):
                X, y, X_test, y_test = rows(name, real, n, seed)
                network = PinvRegressor(gamma="kfold", calibrate="loo", random_state=seed) if asked.single else None
                model = TableRegressor(network, random_state=seed)
                own, low = judged(model.fit(X, y), X_test, y_test)
                inside.append([part.mean() for part in np.array_split(own, 5)])
                negative.append(np.mean(low < 0))
                weight = np.exp(0.7 * np.random.default_rng(seed).standard_normal(n))
                weighted.append(judged(model.fit(X, y, sample_weight=weight), X_test, y_test)[0].mean())
            fifths = np.mean(inside, axis=0)
            shown = f"{np.mean(inside):.3f} | {fifths.min():.2f}–{fifths.max():.2f} | {np.mean(weighted):.3f}"
            print(f"| {name} | {n} | {shown} | {np.mean(negative):.2f} |", flush=True)


if __name__ == "__main__":
    main()
