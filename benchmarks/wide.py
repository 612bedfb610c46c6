"""More features than rows: fit and choice of γ over `RidgeCV` with as many γ, in processor seconds of one run.

Run as `python benchmarks/wide.py`; the last recorded run is in benchmarks/RESULTS.md. By turns, medians of three.
"""

from statistics import median
from time import process_time
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV, RidgeCV

from ocrep import TikhonovClassifier, TikhonovRegressor

SHAPES, REPEATS = ((600, 4_000), (600, 20_000), (2_000, 20_000)), 3


def seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    start = process_time()
    model.fit(X, y)
    return process_time() - start


def compare(name: str, theirs: Any, ours: Any, X: np.ndarray, y: np.ndarray) -> None:
    n_gammas = len(ours("loo").fit(X, y).choice_.curve.gammas)
    models = {"loo": ours("loo"), "kfold": ours("kfold"), name: theirs(np.geomspace(1e-4, 1e8, n_gammas))}
    runs = [{rule: seconds(model, X, y) for rule, model in models.items()} for _ in range(REPEATS)]
    middle = {rule: median(run[rule] for run in runs) for rule in models}
    ratios = ", ".join(f"{rule} {middle[rule] / middle[name]:.2f}" for rule in ("loo", "kfold"))
    print(f"{len(X)} × {X.shape[1]}, {n_gammas} γ, over {name}: {ratios}", flush=True)


def main() -> None:
    for n_rows, n_features in SHAPES:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, n_features))
        y = X[:, :50].sum(axis=1) + rng.standard_normal(n_rows)
        compare("RidgeCV", RidgeCV, TikhonovRegressor, X, y)
        compare("RidgeClassifierCV", RidgeClassifierCV, TikhonovClassifier, X, (y > 0).astype(int))


if __name__ == "__main__":
    main()
