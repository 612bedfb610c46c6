"""Print how many functions and files of the package one fit enters: `python tools/trace_fit.py`.

`--list "PinvRegressor()"` also names them, file by file, for every fit whose name holds the text. For a reader to look
at; no test depends on the figures. scikit-learn's RidgeCV is counted by the same rules.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

# One worker, so that every function is entered in the thread that is traced. To be set before NumPy is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np


def traced(call: Callable[[], object], package: str) -> tuple[set[tuple[str, str]], int]:
    """The functions of a package that a call enters, as (file, name), and how deep its calls nest there."""
    entered: set[tuple[str, str]] = set()
    depth = deepest = 0
    mark = f"{package}/"

    def profile(frame: object, event: str, _: object) -> None:
        nonlocal depth, deepest
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if mark not in code.co_filename:
            return
        if event == "return":
            depth -= 1
            return
        depth += 1
        deepest = max(deepest, depth)
        if not code.co_name.startswith("<"):
            entered.add((code.co_filename.split(mark)[-1], code.co_qualname))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered, deepest


def main() -> None:
    parser = argparse.ArgumentParser(description="Print how many functions and files of the package one fit enters.")
    parser.add_argument("--list", metavar="FIT", help="name the functions of the fits whose name holds this text")
    listed = parser.parse_args().list
    from sklearn.linear_model import RidgeCV

    from ocrep import PinvRegressor, PinvRegressorCV, TikhonovRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 8))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=1000)
    fits = {
        "PinvRegressor().fit": (PinvRegressor(random_state=0), "ocrep"),
        "PinvRegressor(gamma='ocrep').fit": (PinvRegressor(gamma="ocrep", random_state=0), "ocrep"),
        "TikhonovRegressor().fit": (TikhonovRegressor(), "ocrep"),
        "PinvRegressorCV().fit": (PinvRegressorCV(random_state=0), "ocrep"),
        "RidgeCV(cv=3).fit": (RidgeCV(cv=3), "sklearn"),
    }
    for name, (model, package) in fits.items():
        model.fit(X, y)  # imports are not part of a fit
        entered, deepest = traced(lambda model=model: model.fit(X, y), package)
        files = {file for file, _ in entered}
        print(f"{name:36} {len(entered):4} functions in {len(files):3} files, {deepest:3} deep")
        if listed is not None and listed in name:
            for file in sorted(files):
                print(f"  {Path(file)}: {', '.join(sorted(n for f, n in entered if f == file))}")


if __name__ == "__main__":
    main()
