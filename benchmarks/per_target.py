"""Many targets: a γ for each beside one for all, and beside himalaya's RidgeCV, as ratios within one run.

`python benchmarks/per_target.py` takes 2,000 rows × 1,000 features × 10,000 targets; `--targets` sets another number.
himalaya (`pip install himalaya`) is compared if it is installed, on the host, with the same γ and the same folds; both
must choose the same γ. Time is processor time, which other work on the machine does not lengthen.
"""

import argparse
import statistics
from collections.abc import Callable
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from side_by_side import machine, row
from sklearn.model_selection import PredefinedSplit

from ocrep import TikhonovRegressor, rules

N, M = 2_000, 1_000
FOLDS, GAMMAS = 3, 20
LINEAR = (20_000, 100, (1_000, 2_000))


def problem(n_rows: int, n_features: int, n_targets: int) -> tuple[np.ndarray, np.ndarray]:
    """Targets of very different noise, as in encoding models."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    W = rng.standard_normal((n_features, n_targets)) * rng.uniform(0.0, 0.3, n_targets)
    return X, X @ W + 3.0 * rng.standard_normal((n_rows, n_targets))


def himalaya(X: np.ndarray, rule: rules.KFold) -> Any:
    """Its estimator with the γ and the folds of the rule."""
    from himalaya.backend import set_backend
    from himalaya.ridge import RidgeCV

    set_backend("numpy")
    # In batches, since all predictions of all targets would need much memory; larger batches were no faster.
    batches = {"n_targets_batch": 1_000, "n_alphas_batch": 5}
    return RidgeCV(
        np.asarray(rule.grid), fit_intercept=True, cv=PredefinedSplit(rule.folds.of(X)), solver_params=batches
    )


def medians(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median processor time of each call, in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = process_time()
            call()
            times[name].append(process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(machine(), end="\n\n| what | ratio | goal |\n|---|---|---|\n", flush=True)
    n_rows, n_features, numbers = LINEAR
    rows = {str(number): problem(n_rows, n_features, number) for number in numbers}
    fits = {name: lambda name=name: TikhonovRegressor("gcv").fit(*rows[name]) for name in rows}
    few, many = medians(fits, options.rounds).values()
    row(f"{numbers[1]:,} targets over {numbers[0]:,}, {n_rows:,} × {n_features}, `gcv`", many / few, "about 2")
    X, Y = problem(N, M, options.targets)
    grid = tuple(np.linalg.norm(X, 2) ** 2 * np.geomspace(1e-5, 10.0, GAMMAS))
    rule = rules.KFold(n_folds=FOLDS, grid=grid)
    models = {
        "one": TikhonovRegressor(),
        "each": TikhonovRegressor(gamma_per_target=True),
        "grid": TikhonovRegressor(rule, gamma_per_target=True),
    }
    if find_spec("himalaya"):
        models["himalaya"] = himalaya(X, rule)
    time = medians({name: lambda model=model: model.fit(X, Y) for name, model in models.items()}, options.rounds)
    shape = f"{N:,} × {M:,} × {options.targets:,}"
    row(f"`kfold`, a γ for each target over one for all, {shape}", time["each"] / time["one"], "≤ 3")
    if "himalaya" in models:
        same = np.mean(np.isclose(models["grid"].gamma_, models["himalaya"].best_alphas_, rtol=1e-6))
        told = f"himalaya's `RidgeCV` over ours, {GAMMAS} γ, {FOLDS} folds, {shape}; the same γ for {100 * same:.4g} %"
        row(told, time["himalaya"] / time["grid"], "> 1")


if __name__ == "__main__":
    main()
