"""The methods that `tabular.py` compares: ours, scikit-learn's, and those of other libraries where installed.

Parameters are the defaults, but for what makes methods comparable: models that depend on the scale of their inputs get
standardised ones, and regressors of that kind standardised targets, in the entries of the main tables. The same models
on data as they are have the suffix "unscaled".
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from sklearn.base import is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import ocrep

Factory = Callable[[int], Any]  # of a seed

REFERENCE = "HistGradientBoosting"
UNSCALED = " unscaled"


def scaled(*steps: Any) -> Any:
    """The last step after the others on standardised inputs, and standardised targets if it is a regressor."""
    pipeline = make_pipeline(StandardScaler(), *steps)
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler()) if is_regressor(pipeline) else pipeline


def ours(network: type, search: type) -> dict[str, Factory]:
    """Our networks with their defaults."""
    return {
        "ocrep": lambda seed: network(random_state=seed),
        "ocrep CV quick": lambda seed: search("quick", random_state=seed),
        "ocrep CV": lambda seed: search(random_state=seed),
        "ocrep CV thorough": lambda seed: search("thorough", random_state=seed),
    }


def peers(boosting: type, forest: type, svm: type, mlp: type, ridge: type) -> dict[str, Factory]:
    """scikit-learn's models; two jobs do not change a forest, only its time."""
    return {
        REFERENCE: lambda seed: boosting(random_state=seed),
        "RandomForest": lambda seed: forest(n_jobs=2, random_state=seed),
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
    """Random networks of other libraries, where they are installed."""
    if not find_spec("skelm"):
        return {}
    import skelm

    return {"scikit-elm": lambda seed: scaled(getattr(skelm, f"ELM{kind}")(random_state=seed))}


METHODS: dict[str, dict[str, Factory]] = {
    "regression": {
        **ours(ocrep.PinvRegressor, ocrep.PinvRegressorCV),
        **peers(HistGradientBoostingRegressor, RandomForestRegressor, SVR, MLPRegressor, RidgeCV),
        **others("Regressor"),
    },
    "classification": {
        **ours(ocrep.PinvClassifier, ocrep.PinvClassifierCV),
        **peers(HistGradientBoostingClassifier, RandomForestClassifier, SVC, MLPClassifier, RidgeClassifierCV),
        **others("Classifier"),
    },
}
