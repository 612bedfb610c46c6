"""What rules, sizes and selection cost, as ratios measured side by side in one run on Abalone.

Run `make bench`; BLAS threads are pinned to one, so that nothing depends on how pools share the cores. Each
figure is the median of repeats after a warm-up. `benchmarks/RESULTS.md` keeps the last recorded run.
"""

import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

import ocrep
from ocrep import PinvRegressor, RandomLayer, hidden_size_path, rules
from ocrep.datasets import load
from ocrep.literature import TROPELMRegressor

N_HIDDEN = 300
GAMMAS = tuple(np.logspace(-8, 4, 50))


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Median time of a call, after a warm-up when it is repeated."""
    if repeats > 1:
        call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def choose_by_all_rules(model: PinvRegressor, X: np.ndarray, y: np.ndarray) -> None:
    """Every rule once, from the folds and the spectrum that the model keeps."""
    rows = model.rows(X, y)
    for name in rules.names():
        rule = rules.Discrepancy(noise=2.0) if name == "discrepancy" else rules.resolve(name)
        rule.choose(model.spectrum_, folds=model.folds_, rows=rows)


def main() -> None:
    X, y = load("abalone", return_X_y=True)
    H = RandomLayer(N_HIDDEN, random_state=0).fit_transform(X)
    grid = rules.KFold(grid=GAMMAS, floor=0.0)

    def network(gamma: object = "ocrep", **options: object) -> PinvRegressor:
        return PinvRegressor(N_HIDDEN, gamma=gamma, solver="qr", random_state=0, **options)

    def all_rules() -> None:
        choose_by_all_rules(network("none", store_folds=True).fit(X, y), X, y)

    fit = seconds(lambda: network().fit(X, y), 9)
    kfold = seconds(lambda: network(grid).fit(X, y), 9)
    every = seconds(all_rules, 5)
    path = seconds(lambda: hidden_size_path(X, y, sizes=range(1, N_HIDDEN + 1), random_state=0), 1)
    search = GridSearchCV(Ridge(solver="svd", fit_intercept=False), {"alpha": GAMMAS}, cv=3)
    sklearn_search = seconds(lambda: search.fit(H, y), 1)

    small = seconds(lambda: PinvRegressor(100, random_state=0).fit(X, y), 9)
    trop = seconds(lambda: TROPELMRegressor(100, random_state=0).fit(X, y), 3)

    blas = ", ".join(sorted({f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info()}))
    lines = (
        (
            "GridSearchCV(Ridge(svd), 50 γ, cv=3) on the same H, over a `kfold` fit",
            f"{sklearn_search / kfold:.0f}",
            "≥ 50",
        ),
        (f"all {len(rules.names())} rules with folds and leave-one-out, over one fit", f"{every / fit:.1f}", "< 5"),
        ("sizes 1, 2, …, 300 with 3-fold CV, over one fit", f"{path / fit:.0f}", "< 100"),
        ("TROP-ELM with 100 candidate units, over one fit of 100 units", f"{trop / small:.0f}", "< 100"),
    )
    print(
        f"{platform.machine()}, CPython {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__},"
    )
    print(f"scikit-learn {sklearn.__version__}, {blas}, 1 thread, ocrep {ocrep.__version__}\n")
    print("| what | ratio | goal |\n|---|---|---|")
    for line in lines:
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
