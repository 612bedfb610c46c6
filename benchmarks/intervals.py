"""Intervals: how often they hold the target, and their width and time beside MAPIE's jackknife+.

Run as `python benchmarks/intervals.py`; the results are in RESULTS.md. Coverage: 20 splits 70/30 of the paper's
regression sets (OCREP_DATA names the folder of Delta Ailerons), 90 % asked for. MAPIE (`pip install mapie`) refits the
same estimator without each row; without it that part is left out.
"""

from importlib.util import find_spec
from time import perf_counter

import numpy as np
from side_by_side import machine
from sklearn.model_selection import LeaveOneOut, train_test_split

from ocrep import PinvRegressor, TikhonovRegressor
from ocrep.datasets import load

SETS = ("abalone", "machine_cpu", "delta_ailerons", "housing")
COVERAGE = 0.9


def network(seed: int) -> PinvRegressor:
    return PinvRegressor(random_state=seed, calibrate="loo")


def ridge(seed: int) -> TikhonovRegressor:
    return TikhonovRegressor(calibrate="loo")


def split(name: str, seed: int) -> list[np.ndarray]:
    X, y = load(name, return_X_y=True)
    return train_test_split(np.asarray(X), y, test_size=0.3, random_state=seed)


def held(ends: np.ndarray, y: np.ndarray) -> float:
    """The share of targets between the ends."""
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))


def coverage() -> None:
    print("| set | estimator | mean coverage | lowest and highest of 20 splits |\n|---|---|---|---|")
    for name in SETS:
        for make in (network, ridge):
            shares = []
            for seed in range(20):
                X, X_test, y, y_test = split(name, seed)
                shares.append(held(make(seed).fit(X, y).predict_interval(X_test, COVERAGE), y_test))
            told = f"{100 * np.mean(shares):.1f} % | {100 * min(shares):.1f} %, {100 * max(shares):.1f} %"
            print(f"| {name} | {type(make(0)).__name__} | {told} |", flush=True)


def beside_mapie() -> None:
    from mapie.regression import CrossConformalRegressor

    print("\n| set | width over jackknife+ | time over jackknife+ | coverage | coverage of jackknife+ |")
    print("|---|---|---|---|---|")
    for name in ("machine_cpu", "housing"):
        found = []
        for seed in range(3):
            X, X_test, y, y_test = split(name, seed)
            start = perf_counter()
            ours = network(seed).fit(X, y).predict_interval(X_test, COVERAGE)
            middle = perf_counter()
            plain = PinvRegressor(random_state=seed)
            plus = CrossConformalRegressor(plain, confidence_level=COVERAGE, method="plus", cv=LeaveOneOut())
            theirs = plus.fit_conformalize(X, y).predict_interval(X_test)[1][:, :, 0]
            widths = [np.mean(ends[:, 1] - ends[:, 0]) for ends in (ours, theirs)]
            seconds = middle - start, perf_counter() - middle
            found.append((widths[0] / widths[1], seconds[0] / seconds[1], held(ours, y_test), held(theirs, y_test)))
        width, time, mine, other = np.mean(found, axis=0)
        print(f"| {name} | {width:.2f} | 1/{1 / time:.0f} | {100 * mine:.1f} % | {100 * other:.1f} % |", flush=True)


if __name__ == "__main__":
    print(machine())
    coverage()
    if find_spec("mapie"):
        beside_mapie()
