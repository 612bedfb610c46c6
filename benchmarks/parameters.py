"""What each parameter of the hidden layer does: test errors as one of them leaves its default, for docs/network.md.

RMSE over the standard deviation of the test targets, or percent of wrong labels: means over five splits 70/30, with γ
by the default rule. `python benchmarks/parameters.py` prints the table (about two minutes on one core).
"""

import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import PinvClassifier, PinvRegressor
from ocrep.datasets import load

SETS = ("abalone", "housing", "machine_cpu", "diabetes", "iris", "wine", "segment")
SETTINGS = (
    {},
    {"n_hidden": 50},
    {"n_hidden": 200},
    {"n_hidden": 1000},
    {"weight_init": "normal"},
    {"weight_init": "pairs"},
    {"weight_scale": 0.25},
    {"weight_scale": 4.0},
    {"units_see": 2},
    {"activation": "tanh"},
    {"activation": "relu"},
    {"activation": "gaussian"},
    {"direct_link": False},
    {"fit_intercept": False},
    {"direct_link": False, "fit_intercept": False, "gamma": "ocrep"},
)
N_SPLITS = 5


def error(name: str, setting: dict[str, object]) -> float:
    """The mean test error of a setting on a data set."""
    data, found = load(name), []
    labels = data.task == "classification"
    for seed in range(N_SPLITS):
        stratify = data.target if labels else None
        split = train_test_split(data.data, data.target, test_size=0.3, random_state=seed, stratify=stratify)
        X, X_test, y, y_test = split
        model = (PinvClassifier if labels else PinvRegressor)(**setting, random_state=seed).fit(X, y)
        predicted = model.predict(X_test)
        found.append(
            100 * np.mean(predicted != y_test)
            if labels
            else np.sqrt(np.mean((predicted - y_test) ** 2)) / np.std(y_test)
        )
    return float(np.mean(found))


def told(setting: dict[str, object]) -> str:
    """A setting as the page writes it."""
    return ", ".join(f"`{name}={value!r}`".replace("'", '"') for name, value in setting.items()) or "the defaults"


if __name__ == "__main__":
    print("| | " + " | ".join(SETS) + " |\n|" + "---|" * (len(SETS) + 1))
    for setting in SETTINGS:
        print(f"| {told(setting)} | " + " | ".join(f"{error(name, setting):.3g}" for name in SETS) + " |", flush=True)
