"""Which layer a search has chosen, in words and numbers."""

import numpy as np
import pytest

from ocrep import PinvClassifierCV, PinvRegressor, PinvRegressorCV
from ocrep.datasets import load
from ocrep.tables.training import LayerChoice, layer

BARE = {"direct_link": False}
SMALL = [{"n_hidden": 5, **BARE}, {"n_hidden": 40, "activation": "tanh", "weight_scale": 2.0, **BARE}]


def test_the_best_and_the_next_best_of_a_regression():
    X, y = load("housing", return_X_y=True)
    network = PinvRegressorCV(SMALL, random_state=0, ensemble=False).fit(X, y)
    found = LayerChoice.of(network)
    assert (found.best, found.next_best) == (SMALL[1], SMALL[0])
    assert (found.measure, found.n_candidates) == ("RMSE", 2)
    assert found.error == pytest.approx(np.sqrt(-network.best_score_))
    percent = 100 * (found.next_error / found.error - 1)
    assert percent > 10
    assert found.sentences() == [
        ("layer", f"40 tanh units (scale 2.0): the best of 2, RMSE {found.error:.4g}"),
        ("next best", f"5 units: RMSE {found.next_error:.4g}, {percent:.0f} % more"),
    ]
    assert LayerChoice(**found.to_json()) == found


def test_candidates_that_failed_are_not_the_next_best():
    def wrong(Z):
        raise ValueError("not here")

    X, y = load("iris", return_X_y=True)
    with pytest.warns(UserWarning, match="was left out"):
        network = PinvClassifierCV(
            [SMALL[0], {"n_hidden": 5, "activation": wrong}], random_state=0, ensemble=False
        ).fit(X, y)
    found = LayerChoice.of(network)
    assert (found.measure, found.n_candidates, found.next_best) == ("log-loss", 2, None)
    assert len(found.sentences()) == 1
    assert LayerChoice.of(PinvRegressor(3).fit(X, y)) is None


def test_a_layer_in_words():
    told = {"n_hidden": 500, "activation": "relu", "weight_init": "pairs", "units_see": 3, "direct_link": True}
    assert layer(told) == "500 relu units (pairs, each sees 3 inputs)"
    assert LayerChoice("RMSE", 2, told, 0.0, told, 0.0).sentences()[1][1].endswith("inputs): RMSE 0")
    close = LayerChoice("RMSE", 2, told, 1.0, told, 1.004).sentences()[1][1]
    assert close.endswith("RMSE 1.004, 0.4 % more")
