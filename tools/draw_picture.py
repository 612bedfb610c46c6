"""Draw the README's picture: condition number and test error against γ, where OCReP wins and where it loses."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import PinvRegressor
from ocrep.analysis.evaluator import Evaluator
from ocrep.datasets import load
from ocrep.displays.base import BLUE, VERMILION

HERE = Path(__file__).resolve().parent.parent / "docs" / "images"
RULES = {"ocrep": ("OCReP", VERMILION, "o"), "gcv": ("GCV", BLUE, "s")}
CASES = (("abalone", 300, "Abalone, 300 units"), ("housing", 50, "Housing, 50 units"))


def network(name: str, n_hidden: int) -> Evaluator:
    X, y = load(name, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    model = PinvRegressor(n_hidden, gamma="ocrep", direct_link=False, fit_intercept=False, random_state=0)
    return Evaluator.of(model.fit(X_train, y_train), (X_train, y_train), test=(X_test, y_test))


def main() -> None:
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.2), sharex="col", layout="constrained")
    for (top, bottom), (name, n_hidden, title) in zip(axes.T, CASES, strict=True):
        found = network(name, n_hidden)
        gammas = found.spectrum.largest**2 * np.logspace(-14, 0, 113)
        errors = found.test_errors(gammas)
        top.loglog(gammas, found.spectrum.condition(gammas), color="0.35")
        bottom.semilogx(gammas, errors, color="0.35")
        for rule, (label, color, marker) in RULES.items():
            gamma = found.choose(rule).gamma
            style = {"color": color, "marker": marker, "markersize": 9, "linestyle": "", "label": label, "zorder": 3}
            top.plot(gamma, found.spectrum.condition(gamma), **style)
            bottom.plot(gamma, found.test_errors(np.array([gamma])), **style)
        top.set_title(title)
        bottom.set_xlabel("regularization γ")
        bottom.set_ylim(0.96 * errors.min(), min(errors.max(), 1.6 * errors.min()))
        for axis in (top, bottom):
            axis.grid(alpha=0.25)
    axes[0, 0].set_ylabel("condition number μ(H$^{reg}$)")
    axes[1, 0].set_ylabel("test error (RMSE)")
    axes[0, 0].legend(loc="upper center")
    HERE.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg"):
        figure.savefig(HERE / f"gamma.{suffix}", dpi=150, metadata={"Date": None} if suffix == "svg" else None)


if __name__ == "__main__":
    main()
