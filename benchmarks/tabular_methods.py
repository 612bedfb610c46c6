"""The methods of `tabular.py` and `sizes.py`: ours, scikit-learn's, and those of other libraries where installed.

Parameters are the defaults, but for what makes methods comparable: models that depend on the scale of their inputs get
standardised ones, and regressors of that kind standardised targets, in the entries of the main tables. The same models
on data as they are have the suffix "unscaled". Nothing is tuned.
"""

import logging
import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import ocrep

Factory = Callable[[int], Any]  # of a seed

REFERENCE = "CatBoost"
UNSCALED = " unscaled"
MEMBER_OF = {"ocrep CV best member": "ocrep CV"}  # its `best_estimator_`, from the same fit
# What has to be installed, as imported and as distributed; the others come with scikit-learn.
PACKAGES = {
    "LightGBM": ("lightgbm", "lightgbm"),
    "XGBoost": ("xgboost", "xgboost"),
    "CatBoost": ("catboost", "catboost"),
    "xRFM": ("xrfm", "xrfm"),
    "RealMLP": ("pytabkit", "pytabkit"),
    "scikit-elm": ("skelm", "scikit-elm"),
}


def installed(method: str) -> bool:
    """Whether the library of a method is there."""
    return method not in PACKAGES or find_spec(PACKAGES[method][0]) is not None


def threads() -> int:
    """How many a method may use: those that BLAS has."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def scaled(*steps: Any) -> Any:
    """The last step after the others on standardised inputs, and standardised targets if it is a regressor."""
    pipeline = make_pipeline(StandardScaler(), *steps)
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler()) if is_regressor(pipeline) else pipeline


def ours(network: type, search: type) -> dict[str, Factory]:
    """Our networks with their defaults."""
    return {
        "ocrep": lambda seed: network(random_state=seed),
        "ocrep CV quick": lambda seed: search("quick", random_state=seed),
        "ocrep CV best member": lambda seed: search(random_state=seed),
        "ocrep CV": lambda seed: search(random_state=seed),
    }


def sklearns(boosting: type, forest: type, svm: type, mlp: type, ridge: type) -> dict[str, Factory]:
    """scikit-learn's models."""
    return {
        "HistGradientBoosting": lambda seed: boosting(random_state=seed),
        "RandomForest": lambda seed: forest(n_jobs=threads(), random_state=seed),
        "SVM": lambda seed: scaled(svm()),
        "MLP": lambda seed: scaled(mlp(random_state=seed)),
        "RidgeCV": lambda seed: scaled(ridge()),
        "Nystroem + RidgeCV": lambda seed: scaled(Nystroem(n_components=300, random_state=seed), ridge()),
        "RBFSampler + RidgeCV": lambda seed: scaled(RBFSampler(n_components=300, random_state=seed), ridge()),
        "SVM" + UNSCALED: lambda seed: svm(),
        "MLP" + UNSCALED: lambda seed: mlp(random_state=seed),
        "Nystroem + RidgeCV" + UNSCALED: lambda seed: make_pipeline(
            Nystroem(n_components=300, random_state=seed), ridge()
        ),
    }


def others(kind: str) -> dict[str, Factory]:
    """Models of other libraries, which are imported when one is made."""

    def imported(method: str, name: str) -> Any:
        return getattr(import_module(PACKAGES[method][0]), name + kind)

    def catboost(seed: int) -> Any:
        quiet = {"verbose": False, "allow_writing_files": False}
        return imported("CatBoost", "CatBoost")(thread_count=threads(), random_state=seed, **quiet)

    def xrfm(seed: int) -> Any:
        model = XRFM(seed)
        return TransformedTargetRegressor(model, transformer=StandardScaler()) if kind == "Regressor" else model

    def realmlp(seed: int) -> Any:
        model = imported("RealMLP", "RealMLP_TD_")(n_threads=threads(), random_state=seed)
        for name in ("pytorch_lightning", "lightning.pytorch"):  # they tell of every fit
            logging.getLogger(name).setLevel(logging.ERROR)
        return model

    return {
        "LightGBM": lambda seed: imported("LightGBM", "LGBM")(n_jobs=threads(), verbose=-1, random_state=seed),
        "XGBoost": lambda seed: imported("XGBoost", "XGB")(n_jobs=threads(), random_state=seed),
        "CatBoost": catboost,
        "xRFM": xrfm,
        "RealMLP": realmlp,
        "scikit-elm": lambda seed: scaled(imported("scikit-elm", "ELM")(random_state=seed)),
    }


class XRFM(BaseEstimator):
    """`xrfm.xRFM()` used as its README says: a fifth of the rows validates, and all inputs but 0/1 are standardised."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> "XRFM":
        """Fit; whole numbers are classes."""
        from xrfm import xRFM

        classes = y if y.dtype.kind == "i" else None
        X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.2, random_state=self.seed, stratify=classes)
        coded = np.all((X == 0) | (X == 1), axis=0)
        scaler = StandardScaler().fit(X)
        self.mean_, self.scale_ = np.where(coded, 0.0, scaler.mean_), np.where(coded, 1.0, scaler.scale_)
        self.model_ = xRFM(random_state=self.seed, n_threads=threads(), verbose=False)
        self.model_.fit(self._scaled(X), y, self._scaled(X_valid), y_valid)
        if classes is not None:
            self.predict_proba = lambda X: self.model_.predict_proba(self._scaled(X))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Numbers or classes."""
        return np.ravel(self.model_.predict(self._scaled(X)))

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) / self.scale_


METHODS: dict[str, dict[str, Factory]] = {
    "regression": {
        **ours(ocrep.PinvRegressor, ocrep.PinvRegressorCV),
        **sklearns(HistGradientBoostingRegressor, RandomForestRegressor, SVR, MLPRegressor, RidgeCV),
        **others("Regressor"),
    },
    "classification": {
        **ours(ocrep.PinvClassifier, ocrep.PinvClassifierCV),
        **sklearns(HistGradientBoostingClassifier, RandomForestClassifier, SVC, MLPClassifier, RidgeClassifierCV),
        **others("Classifier"),
    },
}
OURS = [method for method in METHODS["regression"] if method.startswith("ocrep")]
