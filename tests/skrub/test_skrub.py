"""skrub's coding before our networks: `make test-skrub`."""

import numpy as np
import pytest
import skrub
from sklearn.base import clone
from sklearn.model_selection import cross_val_score, train_test_split

from ocrep import PinvClassifierCV, PinvRegressorCV
from ocrep.datasets import load_penguins

BIRDS = load_penguins().dropna(subset=["Body Mass (g)", "Sex"])


@pytest.mark.parametrize(
    ("network", "target", "least"), [(PinvRegressorCV, "Body Mass (g)", 0.75), (PinvClassifierCV, "Sex", 0.8)]
)
def test_a_network_learns_from_the_columns_that_skrub_codes(network, target, least):
    X, y = BIRDS.drop(columns=target), BIRDS[target]
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.3, random_state=0)
    model = skrub.tabular_pipeline(network("quick", random_state=0)).fit(X, y)
    assert model.score(X_new, y_new) > least
    assert clone(model).fit(X, y).score(X_new, y_new) > least  # skrub's coding of texts has a seed of its own
    assert np.mean(cross_val_score(model, X, y, cv=3)) > least - 0.1
