"""Draw the picture of docs/theory.md: condition number and test error against γ, where OCReP wins and loses."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import PinvClassifier, PinvRegressor
from ocrep.analysis.evaluator import Evaluator
from ocrep.datasets import load
from ocrep.displays.base import BLUE, VERMILION

HERE = Path(__file__).resolve().parent.parent / "docs" / "images"
RULES = {"ocrep": ("OCReP", VERMILION, "o"), "gcv": ("GCV", BLUE, "s")}
CASES = (("abalone", 300, "Abalone, 300 units"), ("segment", 200, "Segment, 200 units"))


def network(name: str, n_hidden: int) -> Evaluator:
    data = load(name)
    kind = PinvRegressor if data.task == "regression" else PinvClassifier
    X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=0.3, random_state=0)
    model = kind(n_hidden, gamma="ocrep", direct_link=False, fit_intercept=False, random_state=0)
    return Evaluator.of(model.fit(X, y), (X, y), test=(X_test, y_test))


def main() -> None:
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.2), sharex="col", layout="constrained")
    for (top, bottom), (name, n_hidden, title) in zip(axes.T, CASES, strict=True):
        found = network(name, n_hidden)
        gammas = found.spectrum.largest**2 * np.logspace(-14, 0, 113)
        unit = 100.0 if found.labels else 1.0
        errors = unit * found.test_errors(gammas)
        top.loglog(gammas, found.spectrum.condition(gammas), color="0.35")
        bottom.semilogx(gammas, errors, color="0.35")
        for rule, (label, color, marker) in RULES.items():
            gamma = found.choose(rule).gamma
            style = {"color": color, "marker": marker, "markersize": 9, "linestyle": "", "label": label, "zorder": 3}
            top.plot(gamma, found.spectrum.condition(gamma), **style)
            bottom.plot(gamma, unit * found.test_errors(np.array([gamma])), **style)
        top.set_title(title)
        bottom.set_xlabel("regularization γ")
        bottom.set_ylabel("% misclassified (test)" if found.labels else "test error (RMSE)")
        highest = 3.0 if found.labels else 1.6
        bottom.set_ylim(0.9 * errors.min(), min(errors.max(), highest * errors.min()))
        for axis in (top, bottom):
            axis.grid(alpha=0.25)
    axes[0, 0].set_ylabel("condition number μ(H$^{reg}$)")
    axes[0, 0].legend(loc="upper center")
    HERE.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        figure.savefig(HERE / f"gamma.{suffix}", dpi=150, metadata={"Date": None} if suffix == "svg" else None)


if __name__ == "__main__":
    main()
