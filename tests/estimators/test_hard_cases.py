"""Data on which packages in use today fail silently: singular hidden layers, as many units as rows, wide tables."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from support.problems import PAPER, smooth_problem

from ocrep import PinvRegressor, PinvRegressorCV


@pytest.mark.parametrize(
    ("n_rows", "n_hidden", "n_repeated", "factor"),
    [(300, 1000, 0, 1.0), (300, 1000, 100, 1.0), (2000, 500, 0, 1e-3)],
    ids=["more units than rows", "and repeated rows", "tiny inputs"],
)
@pytest.mark.parametrize("seed", range(3))
def test_duplicated_columns(n_rows, n_hidden, n_repeated, factor, seed):
    Z, y = smooth_problem(n_rows + 1000, 5, noise=0.1, seed=seed)
    X = factor * np.hstack([Z, Z])
    rows = np.r_[: n_rows - n_repeated, :n_repeated]
    test = slice(n_rows, None)
    model = PinvRegressor(n_hidden, random_state=seed).fit(X[rows], y[rows])
    H, H_test = model.layer_.transform(X[rows]), model.layer_.transform(X[test])
    reference = RidgeCV(alphas=np.logspace(-8, 4, 25)).fit(H, y[rows])

    def error(predicted):
        return np.sqrt(np.mean((predicted - y[test]) ** 2))

    assert np.isfinite(model.output_coef_).all()
    assert np.linalg.norm(model.output_coef_) < 20
    assert error(model.predict(X[test])) <= 1.5 * error(reference.predict(H_test))


@pytest.mark.parametrize("seed", range(3))
def test_as_many_units_as_rows_do_not_collapse_by_default(seed):
    """γ = σ₁σ_p does: σ_p is smallest where H is square."""
    X, X_test, y, y_test = train_test_split(*load_diabetes(return_X_y=True), test_size=0.3, random_state=seed)
    scores = {
        gamma: PinvRegressor(len(X), gamma=gamma, random_state=seed).fit(X, y).score(X_test, y_test)
        for gamma in ("ocrep_cv", "kfold", "ocrep")
    }
    assert PinvRegressor().gamma == "ocrep_cv"
    assert scores["ocrep_cv"] > max(0.3, scores["kfold"] - 0.05)
    assert scores["ocrep"] < 0.2
    default = PinvRegressor(random_state=seed).fit(X, y).score(X_test, y_test)
    assert default > max(0.3, scores["kfold"] - 0.05)


def test_wide_linear_data_are_not_lost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 150))
    y = 3.0 * X[:, 0] + X[:, 1] * X[:, 2]
    rows, test = slice(600), slice(600, None)
    ridge = RidgeCV(np.logspace(-3, 5, 20)).fit(X[rows], y[rows]).score(X[test], y[test])
    network = PinvRegressor(random_state=0).fit(X[rows], y[rows]).score(X[test], y[test])
    assert network > ridge - 0.06
    paper = PinvRegressor(**PAPER, random_state=0).fit(X[rows], y[rows]).score(X[test], y[test])
    assert paper < ridge - 0.1


@pytest.mark.parametrize("seed", range(40))
def test_what_is_constant_without_a_fold_is_no_direction(seed):
    """One row differs from the others, which are all alike: without it there is nothing to learn but a mean."""
    rng = np.random.default_rng(seed)
    X = np.tile(rng.normal(size=2) * 10.0 ** rng.integers(-3, 7), (int(rng.integers(3, 12)), 1))
    X[0] += rng.normal(size=2)
    y = rng.normal(size=len(X))
    model = PinvRegressorCV([{"n_hidden": int(rng.integers(1, 8))}], random_state=seed).fit(X, y)
    assert -model.ensemble_score_ <= np.ptp(y) ** 2
    assert np.all(np.abs(model.predict(X) - y.mean()) <= np.ptp(y))
