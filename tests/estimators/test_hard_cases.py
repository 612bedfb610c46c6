"""Data on which packages in use today fail silently: singular hidden layers with smooth targets."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from support.problems import smooth_problem

from ocrep import PinvRegressor


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

    assert np.isfinite(model.coef_).all()
    assert np.linalg.norm(model.coef_) < 20
    assert error(model.predict(X[test])) <= 1.5 * error(reference.predict(H_test))
