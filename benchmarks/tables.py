"""Tables as people have them, with text, dates and gaps: our table models beside skrub, LightGBM and CatBoost.

    python benchmarks/tables.py --data FOLDER         # results/tables.csv; continues where it was interrupted
    python benchmarks/tabular.py render               # docs/benchmark.md, from all results

FOLDER holds bike_sharing.csv, employee_salaries.csv and midwest_survey.csv, as skrub's `fetch_bike_sharing`,
`fetch_employee_salaries` and `fetch_midwest_survey` give them. Penguins come with ocrep. A table that is not in the
folder is left out, and so is a method whose library is not installed (`pip install skrub lightgbm catboost`).

Each method gets the same frame and does with it what its users do. "Boosting, our coder" is scikit-learn's histogram
boosting in `TableRegressor(…)` or `TableClassifier(…)`: what the coding of text and dates gives without our networks.
skrub is `tabular_pipeline("regressor")` or `("classifier")`, which ends in scikit-learn's boosting. LightGBM gets text
as pandas categories, CatBoost as `cat_features`; for both, a date becomes year, month, day, weekday and
hour. Nothing is tuned.

Intervals are asked to hold 90 % of the targets. Ours come with the model. For the others, two more models are fitted to
the quantiles 5 % and 95 %, whose time is not counted.
"""

import argparse
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fits
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from tabular_methods import threads

from ocrep import PinvClassifierCV, PinvRegressorCV, TableClassifier, TableRegressor
from ocrep.datasets import load_penguins

COVERAGE = 0.9
N_BINS = 15  # of the calibration error
SPLITS = (0, 1, 2)
REFERENCE = "CatBoost"
METHODS = ("ocrep Table", "ocrep Table quick", "boosting, our coder", "skrub", "LightGBM", "CatBoost")
LIBRARY = {"skrub": "skrub", "LightGBM": "lightgbm", "CatBoost": "catboost"}
NUMBERS = ("error", "log_loss", "ece", "coverage", "width", "fit_seconds", "predict_seconds", "bytes")
RESULTS = fits.Results(fits.FOLDER / "tables.csv", ["task", "table", "split"], NUMBERS, METHODS)


@dataclass(frozen=True)
class TableOf:
    """What is to be predicted in which file."""

    task: str
    target: str
    file: str | None = None
    drop: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    """Texts to be read as numbers first; what is none becomes a gap."""


TABLES = {
    "bike_sharing": TableOf("regression", "cnt", "bike_sharing.csv", ("casual", "registered", "instant"), ("date",)),
    "employee_salaries": TableOf(
        "regression", "current_annual_salary", "employee_salaries.csv", dates=("date_first_hired",)
    ),
    "penguins_mass": TableOf("regression", "Body Mass (g)", dates=("Date Egg",)),
    "midwest_survey": TableOf("classification", "Census_Region", "midwest_survey.csv", ("RespondentID",)),
    "midwest_survey, ZIP as number": TableOf(
        "classification",
        "Census_Region",
        "midwest_survey.csv",
        ("RespondentID",),
        numbers=("In_what_ZIP_code_is_your_home_located",),
    ),
    "penguins_sex": TableOf("classification", "Sex", dates=("Date Egg",)),
}


def read(name: str, folder: Path) -> pd.DataFrame:
    """The rows with a target, without columns that nobody would use."""
    table = TABLES[name]
    frame = pd.read_csv(folder / table.file) if table.file else load_penguins()
    for column in table.numbers:
        frame[column] = pd.to_numeric(frame[column], errors="coerce")
    return frame.drop(columns=list(table.drop)).dropna(subset=[table.target]).reset_index(drop=True)


def with_parts_of_dates(frame: pd.DataFrame, dates: tuple[str, ...]) -> pd.DataFrame:
    """Dates as LightGBM's and CatBoost's users give them: year, month, day, weekday and hour."""
    parts = {}
    for name in dates:
        moment = pd.to_datetime(frame[name]).dt
        parts |= {f"{name} {part}": getattr(moment, part) for part in ("year", "month", "day", "day_of_week", "hour")}
    return pd.concat([frame.drop(columns=list(dates)), pd.DataFrame(parts, index=frame.index)], axis=1)


class Boosting(BaseEstimator):
    """LightGBM or CatBoost behind what their users do with text and dates first."""

    def __init__(self, library: str, task: str, dates: tuple[str, ...], options: dict[str, Any]) -> None:
        self.library = library
        self.task = task
        self.dates = dates
        self.options = options

    def fit(self, X: pd.DataFrame, y: pd.Series) -> "Boosting":
        """Learn the categories of the texts, and fit."""
        X = with_parts_of_dates(X, self.dates)
        self.texts_ = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
        kind = "Classifier" if self.task == "classification" else "Regressor"
        if self.library == "LightGBM":
            import lightgbm

            self.kinds_ = {name: pd.CategoricalDtype(sorted(X[name].dropna().unique())) for name in self.texts_}
            self.model_ = getattr(lightgbm, f"LGBM{kind}")(n_jobs=threads(), verbose=-1, **self.options)
        else:
            import catboost

            quiet = {"verbose": False, "allow_writing_files": False, "cat_features": self.texts_}
            self.model_ = getattr(catboost, f"CatBoost{kind}")(thread_count=threads(), **quiet, **self.options)
        self.model_.fit(self._prepared(X), y)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Numbers or labels."""
        return self.model_.predict(self._prepared(with_parts_of_dates(X, self.dates)))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """One column for each class."""
        return self.model_.predict_proba(self._prepared(with_parts_of_dates(X, self.dates)))

    def _prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        if self.library == "LightGBM":
            return X.astype(self.kinds_)  # what training has not seen becomes a gap
        return X.fillna(dict.fromkeys(self.texts_, "missing")).astype(dict.fromkeys(self.texts_, str))


def histogram_boosting(quantile: float | None, seed: int) -> HistGradientBoostingRegressor:
    """Scikit-learn's boosting for the mean of the target, or for a quantile."""
    loss = {} if quantile is None else {"loss": "quantile", "quantile": quantile}
    return HistGradientBoostingRegressor(**loss, random_state=seed)


def model_of(method: str, table: TableOf, seed: int, quantile: float | None = None) -> Any:
    """A model as it is by default, or one for a quantile of the target."""
    classes = table.task == "classification"
    if method == "ocrep Table":
        return (TableClassifier if classes else TableRegressor)(random_state=seed)
    if method == "ocrep Table quick":
        network = (PinvClassifierCV if classes else PinvRegressorCV)("quick", random_state=seed)
        return (TableClassifier if classes else TableRegressor)(network, random_state=seed)
    if method == "boosting, our coder":
        if classes:
            return TableClassifier(HistGradientBoostingClassifier(random_state=seed), random_state=seed)
        return TableRegressor(histogram_boosting(quantile, seed), random_state=seed)
    if method == "skrub":
        from skrub import tabular_pipeline

        if quantile is not None:
            return tabular_pipeline(histogram_boosting(quantile, seed))
        pipeline = tabular_pipeline("classifier" if classes else "regressor")
        pipeline[-1].set_params(random_state=seed)
        return pipeline
    options: dict[str, Any] = {"random_state": seed}
    if quantile is not None and method == "LightGBM":
        options |= {"objective": "quantile", "alpha": quantile}
    elif quantile is not None:
        options |= {"loss_function": f"Quantile:alpha={quantile}"}
    return Boosting(method, table.task, table.dates, options)


def calibration_error(shares: np.ndarray, is_right: np.ndarray) -> float:
    """How far the largest probability is from the share of right labels, the mean over bins of equal width (ECE)."""
    sure = shares.max(axis=1)
    bins = np.minimum((sure * N_BINS).astype(int), N_BINS - 1)
    gaps = np.abs([np.sum((is_right - sure)[bins == number]) for number in range(N_BINS)])
    return float(np.sum(gaps) / len(sure))


def judge_labels(model: Any, X: pd.DataFrame, y: pd.Series, labels: np.ndarray) -> fits.Record:
    """Wrong labels, log-loss and calibration."""
    predicted, seconds = fits.timed(lambda: np.ravel(model.predict(X)))
    shares = np.asarray(model.predict_proba(X), dtype=float)
    shares /= shares.sum(axis=1, keepdims=True)
    is_right = predicted == y.to_numpy()
    return {
        "error": float(np.mean(~is_right)),
        "log_loss": float(log_loss(y, shares, labels=labels)),
        "ece": calibration_error(shares, is_right),
        "predict_seconds": seconds,
    }


def judge_numbers(model: Any, X: pd.DataFrame, y: pd.Series, ends: Callable[[], np.ndarray]) -> fits.Record:
    """RMSE and width of intervals over the standard deviation of the targets, and how many of these intervals hold."""
    predicted, seconds = fits.timed(lambda: np.ravel(model.predict(X)))
    low, high = ends().T
    return {
        "error": fits.error_of("regression", predicted, y.to_numpy()),
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low) / np.std(y)),
        "predict_seconds": seconds,
    }


def measure(name: str, split: int, method: str, frame: pd.DataFrame) -> fits.Record:
    """One method on one split."""
    table = TABLES[name]
    X, y = frame.drop(columns=table.target), frame[table.target]
    classes = y if table.task == "classification" else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=split, stratify=classes)
    model = model_of(method, table, split)
    _, seconds = fits.timed(lambda: model.fit(X, y))

    def ends() -> np.ndarray:
        if hasattr(model, "predict_interval"):
            return model.predict_interval(X_test, COVERAGE)
        quantiles = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
        return np.sort([model_of(method, table, split, q).fit(X, y).predict(X_test) for q in quantiles], axis=0).T

    if classes is None:
        judged = judge_numbers(model, X_test, y_test, ends)
    else:
        judged = judge_labels(model, X_test, y_test, np.unique(y))
    return judged | {"fit_seconds": seconds, "bytes": float(len(pickle.dumps(model)))}


def run(folder: Path | None, only: list[str], methods: list[str], again: bool) -> None:
    """Fit what is missing in the file."""
    warnings.simplefilter("ignore")
    present = [m for m in methods if m not in LIBRARY or find_spec(LIBRARY[m])]
    for method in set(methods) - set(present):
        print(f"{method} is left out: {LIBRARY[method]} is not installed.")
    print("TabPFN is left out: its weights are downloaded at the first fit, and we could not get them.")
    number = RESULTS.start(fits.machine(1, threads(), [LIBRARY[m] for m in present if m in LIBRARY] + ["pandas"]))
    done = set() if again else {RESULTS.name_of(row) for row in RESULTS.read()}
    for name in only or TABLES:
        table = TABLES[name]
        if table.file and not (folder and (folder / table.file).exists()):
            print(f"{name} is left out: give --data, a folder that holds {table.file}.")
            continue
        frame = read(name, folder or Path())
        for split in SPLITS:
            for method in present:
                record = {"task": table.task, "table": name, "split": split, "method": method, "run": number}
                if RESULTS.name_of(record) not in done:
                    record |= fits.attempt(lambda s=split, m=method, n=name, f=frame: measure(n, s, m, f))
                    RESULTS.add([record])
                    print(", ".join(f"{key} {value}" for key, value in record.items()), flush=True)


def main() -> None:
    """Read the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder of the tables that do not come with ocrep")
    parser.add_argument("--only", nargs="+", default=[], choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--again", action="store_true", help="also what is in the file; what is new takes its place")
    args = parser.parse_args()
    run(args.data, args.only, args.methods, args.again)


if __name__ == "__main__":
    main()
