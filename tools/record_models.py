"""Write a small model file of each estimator as this version writes it, with what it predicts, into tests/data.

`python tools/record_models.py` is run once for each release; the files of earlier releases stay as they are, and
tests/serialization/test_old_files.py loads them all.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ocrep
from ocrep import literature, rules

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
FEW = {"random_state": 0}
LAYERS = [{"n_hidden": 4}, {"n_hidden": 6, "weight_init": "pairs", "activation": "relu"}]
ROWS = 60


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, numbers and labels that every version makes in the same way."""
    t = np.arange(ROWS)
    X = np.column_stack([np.cos(k * t + k) for k in (1.0, 1.7, 2.3)])
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, y, np.where(y < -0.5, "low", np.where(y < 0.5, "middle", "high"))


def frame(X: np.ndarray) -> pd.DataFrame:
    """The inputs as a table with gaps and texts."""
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table.loc[::7, "b"] = np.nan
    return table.assign(d=np.where(X[:, 2] > 0.0, "up", "down"))


def table(X: np.ndarray) -> pd.DataFrame:
    """The inputs twice, as a table with gaps, dates, few texts and many."""
    twice = pd.concat([frame(X), frame(X)], ignore_index=True)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * np.arange(len(twice)), unit="h")
    return twice.assign(day=days, town=[f"town {7 * k % 45} of the north" for k in range(len(twice))])


def pipeline() -> Any:
    """What the program trains: columns first, then a network."""
    numbers = ("numbers", SimpleImputer(), ["a", "b", "c"])
    columns = ColumnTransformer([numbers, ("texts", OneHotEncoder(sparse_output=False), ["d"])])
    return make_pipeline(columns, ocrep.PinvRegressor(5, **FEW))


def models() -> dict[str, Any]:
    """Every estimator, fitted, by the name of its file."""
    X, y, labels = rows()
    both = np.column_stack([y, X[:, 0]])
    kfold = rules.KFold(n_folds=4)
    return {
        "PinvRegressor": ocrep.PinvRegressor(6, calibrate="loo", **FEW).fit(X, y),
        "PinvRegressor-float32": ocrep.PinvRegressor(6, **FEW).fit(X, y).as_float32(),
        "PinvRegressor-targets": ocrep.PinvRegressor(6, gamma=kfold, store_folds=True, **FEW).fit(X, both),
        "PinvClassifier": ocrep.PinvClassifier(6, calibrate="loo", activation="gaussian", **FEW).fit(X, labels),
        "PinvRegressorCV": ocrep.PinvRegressorCV(LAYERS, **FEW).fit(X, y),
        "PinvClassifierCV": ocrep.PinvClassifierCV(LAYERS, **FEW).fit(X, labels),
        "TikhonovRegressor": ocrep.TikhonovRegressor(gamma_per_target=True).fit(X, both),
        "TikhonovClassifier": make_pipeline(StandardScaler(), ocrep.TikhonovClassifier()).fit(X, labels),
        "RandomLayer": make_pipeline(ocrep.RandomLayer(6, weight_init="orthogonal", **FEW), StandardScaler()).fit(X),
        "ELMRegressor": literature.ELMRegressor(8, **FEW).fit(X, y),
        "ELMClassifier": literature.ELMClassifier(8, **FEW).fit(X, labels),
        "RELMRegressor": literature.RELMRegressor(max_hidden=10, **FEW).fit(X, y),
        "RELMClassifier": literature.RELMClassifier(max_hidden=10, **FEW).fit(X, labels),
        "OPELMRegressor": literature.OPELMRegressor(6, **FEW).fit(X, y),
        "TROPELMRegressor": literature.TROPELMRegressor(6, **FEW).fit(X, y),
        "PrunedELMRegressor": literature.PrunedELMRegressor(6, **FEW).fit(X, y),
        "Pipeline": pipeline().fit(frame(X), y),
        "TableRegressor": ocrep.TableRegressor(ocrep.PinvRegressor(5, **FEW), **FEW).fit(table(X), np.tile(y, 2)),
        "TableClassifier": ocrep.TableClassifier(ocrep.PinvClassifier(5, calibrate="loo", **FEW), **FEW).fit(
            table(X), np.tile(labels, 2)
        ),
        "Pipeline-fit_table": ocrep.fit_table(frame(X).assign(y=y), "y", test=0.0, n_hidden=5),
    }


def outputs(model: Any, name: str) -> np.ndarray:
    """What a model gives for the rows: features, probabilities, outputs of a classifier, or numbers."""
    X: Any = rows()[0]
    X = frame(X) if name.startswith("Pipeline") else table(X) if name.startswith("Table") else X
    last = model[-1] if isinstance(model, Pipeline) else model
    # Models that were recorded first have no probabilities unless they were asked to calibrate.
    asked = getattr(last, "calibrate", "loo") is not None
    for method in (*(("predict_proba",) if asked else ()), "decision_function", "predict", "transform"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(X))
    raise TypeError(f"{name} predicts nothing.")


def main(folder: Path) -> None:
    """Write the files of this version; those of a version that was recorded before are not written again."""
    folder.mkdir(parents=True)
    recorded = {}
    for name, model in models().items():
        ocrep.save_model(model, folder / f"{name}.skops")
        recorded[name] = outputs(model, name)
    np.savez_compressed(folder / "outputs.npz", **recorded)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / ocrep.__version__)
