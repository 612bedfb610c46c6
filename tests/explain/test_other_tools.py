"""scikit-learn's own tools on networks: they work, or give scikit-learn's own clear error."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

from ocrep import PinvClassifierCV, PinvRegressor, PinvRegressorCV, TikhonovRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 5))
Y = 3 * X[:, 2] + np.sin(3 * X[:, 4]) + 0.05 * RNG.standard_normal(300)


def mean_gradients(model):
    return np.abs(model.gradients(X[:, : model.n_features_in_])).mean(axis=0)


def test_partial_dependence():
    for model in (PinvRegressor(50, random_state=0), PinvRegressorCV("quick", random_state=0)):
        model.fit(X, Y)
        found = partial_dependence(model, X, [2], grid_resolution=20)
        assert np.corrcoef(found["average"][0], found["grid_values"][0])[0, 1] > 0.99
    labels = PinvClassifierCV([{"n_hidden": 40}], random_state=0).fit(X, Y > 0)
    assert partial_dependence(labels, X, [2], grid_resolution=5)["average"].shape == (1, 5)
    display = PartialDependenceDisplay.from_estimator(model, X, [2, (2, 4)], grid_resolution=5)
    plt.close(display.figure_)


def test_feature_selection_by_gradients():
    selected = SelectFromModel(
        PinvRegressor(50, random_state=0), max_features=2, threshold=-np.inf, importance_getter=mean_gradients
    ).fit(X, Y)
    assert np.flatnonzero(selected.get_support()).tolist() == [2, 4]

    def own(model):  # of the columns that are left, in their order
        rows = np.random.default_rng(1).uniform(-1, 1, (200, model.n_features_in_))
        return np.abs(model.gradients(rows)).mean(axis=0)

    eliminated = RFE(PinvRegressor(50, random_state=0), n_features_to_select=2, importance_getter=own).fit(X, Y)
    assert np.flatnonzero(eliminated.support_).tolist() == [2, 4]


@pytest.mark.parametrize("selector", [RFE, SelectFromModel])
def test_without_importances_scikit_learn_says_so(selector):
    with pytest.raises(ValueError, match=r"coef_.*feature_importances_|feature_importances_.*coef_"):
        selector(PinvRegressor(20, random_state=0)).fit(X, Y).transform(X)
    assert selector(TikhonovRegressor()).fit(X, Y).transform(X).shape[1] < 5
