"""What the precision floor does to the rules that cross-validate: test errors with √ε and with ε, side by side.

Run as `python benchmarks/floor.py`; the table is in docs/rules.md. Ten splits 70/30 per case, medians; the same layers.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.model_selection import train_test_split

from ocrep import PinvClassifier, PinvRegressor, datasets, rules

EPS = float(np.finfo(np.float64).eps)
RULES = {"kfold": rules.KFold, "loo": rules.LOO, "ocrep_cv": rules.OCRePCV}
SPLITS = range(10)


def cases() -> Iterator[tuple[str, np.ndarray, np.ndarray, int, float, bool]]:
    """Name, rows, hidden units, weight scale and whether labels are learned."""
    for name, n_hidden in (("machine_cpu", 146), ("housing", 300), ("abalone", 300)):
        X, y = datasets.load(name, return_X_y=True)
        yield f"{name}, {n_hidden} units", X, y, n_hidden, 1.0, False
    for name, n_hidden in (("iris", 200), ("wine", 300), ("segment", 1500)):
        X, y = datasets.load(name, return_X_y=True)
        yield f"{name}, {n_hidden} units", X, y, n_hidden, 1.0, True
    for noise in (0.0, 0.05):
        X, t = make_swiss_roll(2000, noise=noise, random_state=0)
        yield f"swiss roll, noise {noise}, 300 units", X, np.sin(t), 300, 1.0, False
    x = np.linspace(-1, 1, 400)[:, None]
    yield "sin(8x), 200 units", x, np.sin(8 * x[:, 0]), 200, 4.0, False


def error(X: np.ndarray, y: np.ndarray, n_hidden: int, scale: float, labels: bool, rule: object, seed: int) -> float:
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
    kind = PinvClassifier if labels else PinvRegressor
    model = kind(
        n_hidden, gamma=rule, weight_scale=scale, direct_link=False, fit_intercept=False, random_state=seed
    ).fit(X, y)
    if labels:
        return 100.0 * float(np.mean(model.predict(X_test) != y_test))
    return float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))


def main() -> None:
    print("| case | " + " | ".join(f"{name} √ε | {name} ε" for name in RULES) + " |")
    print("|---|" + "---|" * 2 * len(RULES))
    for name, X, y, n_hidden, scale, labels in cases():
        splits = SPLITS if n_hidden < 1000 else SPLITS[:2]
        told = []
        for rule in RULES.values():
            for floor in ("precision", EPS):
                errors = [error(X, y, n_hidden, scale, labels, rule(floor=floor), seed) for seed in splits]
                told.append(f"{np.median(errors):.3g}")
        print(f"| {name} | " + " | ".join(told) + " |", flush=True)


if __name__ == "__main__":
    main()
