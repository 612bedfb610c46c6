"""What choosing costs: fits with each rule for γ, and of the stacks, over a plain fit with a given γ.

    python benchmarks/prices.py        # results/prices.csv, about five minutes

Calls take turns on one thread; each figure is the ratio of median processor seconds. A plain fit is
`PinvRegressor(gamma=1.0)`: the same 500 units, one γ, no cross-validation.
"""

import csv
import time
from datetime import date

import fits
import numpy as np
import sizes
from side_by_side import machine, medians
from threadpoolctl import threadpool_limits

from ocrep import PinvRegressor, PinvRegressorCV
from ocrep.datasets import load

RULES = ("ocrep", "gcv", "evidence", "loo", "kfold", "ocrep_cv")
PATH = fits.FOLDER / "prices.csv"
PLAIN = "plain"
ROUNDS = 7


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A bundled set, or 20,000 generated rows."""
    if name == "20,000 rows":
        rows = sizes.generate("smooth", 20_000)
        return rows.X, rows.y
    X, y = load(name, return_X_y=True)
    return np.asarray(X), y


def prices(name: str) -> dict[str, float]:
    """Seconds of each fit over those of the plain one."""
    X, y = data(name)
    calls = {PLAIN: lambda: PinvRegressor(gamma=1.0, random_state=0).fit(X, y)}
    calls |= {rule: lambda r=rule: PinvRegressor(gamma=r, random_state=0).fit(X, y) for rule in RULES}
    found = medians(calls, ROUNDS, time.process_time)
    stacks = {PLAIN: calls[PLAIN]} | {
        f"stack {kind}": lambda k=kind: PinvRegressorCV(k, random_state=0).fit(X, y) for kind in ("quick", "default")
    }
    again = medians(stacks, 3, time.process_time)
    ratios = {what: found[what] / found[PLAIN] for what in RULES}
    return ratios | {what: again[what] / again[PLAIN] for what in stacks if what != PLAIN}


def main() -> None:
    """Measure all, and write the file."""
    measured = f"{date.today()}, {machine()}"
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "fit", "plain_fits", "measured"])
        for name in ("abalone", "housing", "20,000 rows"):
            for what, ratio in prices(name).items():
                writer.writerow([name, what, f"{ratio:.3g}", measured])
                print(name, what, f"{ratio:.3g}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
