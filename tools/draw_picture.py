"""Draw the README's picture: condition number and test error against γ, where OCReP wins and where it loses."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from ocrep import PinvRegressor
from ocrep.datasets import load

HERE = Path(__file__).resolve().parent.parent / "docs" / "images"
# Okabe and Ito's colours, told apart by colour-blind eyes; each rule has its own marker too.
RULES = {"ocrep": ("OCReP", "#D55E00", "o"), "gcv": ("GCV", "#0072B2", "s")}
CASES = (("abalone", 300, "Abalone, 300 units"), ("housing", 50, "Housing, 50 units"))


def curves(name: str, n_hidden: int) -> tuple[PinvRegressor, np.ndarray, np.ndarray, np.ndarray, tuple]:
    X, y = load(name, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    model = PinvRegressor(n_hidden, random_state=0).fit(X_train, y_train)
    gammas = model.spectrum_.largest**2 * np.logspace(-14, 0, 113)
    weights = model.spectrum_.weights(gammas)[:, :, 0]
    errors = np.sqrt(np.mean((model.layer_.transform(X_test) @ weights.T - y_test[:, None]) ** 2, axis=0))
    return model, gammas, model.spectrum_.condition(gammas), errors, (X_test, y_test)


def main() -> None:
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.2), sharex="col", layout="constrained")
    for column, (name, n_hidden, title) in enumerate(CASES):
        model, gammas, conditions, errors, (X_test, y_test) = curves(name, n_hidden)
        top, bottom = axes[:, column]
        top.loglog(gammas, conditions, color="0.35")
        bottom.semilogx(gammas, errors, color="0.35")
        for rule, (label, color, marker) in RULES.items():
            chosen = model.with_gamma(rule)
            error = np.sqrt(np.mean((chosen.predict(X_test) - y_test) ** 2))
            style = {"color": color, "marker": marker, "markersize": 9, "linestyle": "", "label": label, "zorder": 3}
            top.plot(chosen.gamma_, chosen.regularized_condition_number_, **style)
            bottom.plot(chosen.gamma_, error, **style)
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
