"""The paper's numbers and the cases it never looked at, on the real data."""

import os

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from ocrep import PinvClassifier, PinvRegressor, rules
from ocrep.datasets import load

# μ(H^reg)/μ(H⁺) as published (Table of condition numbers), by data set and number of hidden units.
PUBLISHED_RATIO = {
    ("abalone", 300): 2e-4,
    ("housing", 300): 8e-4,
    ("delta_ailerons", 300): 7e-5,
    ("machine_cpu", 100): 1e-4,
    ("iris", 100): 2e-5,
    ("wine", 100): 5e-3,
    ("diabetes", 300): 7e-4,
}
# Largest tolerated mean error where H is numerically singular: percent, RMSE, percent.
SINGULAR = {("iris", 200): 5.0, ("machine_cpu", 146): 110.0, ("segment", 1500): 4.5}


def splits(name, n_splits):
    """The data set and `n_splits` splits 70/30, as in the paper."""
    if name == "delta_ailerons" and "OCREP_DATA" not in os.environ:
        pytest.skip("Delta Ailerons is not bundled and tests fetch nothing: set OCREP_DATA to a folder that has it")
    data = load(name)
    for seed in range(n_splits):
        yield seed, data.task, train_test_split(data.data, data.target, test_size=0.3, random_state=seed)


def network(task, n_hidden, gamma, seed):
    estimator = PinvRegressor if task == "regression" else PinvClassifier
    return estimator(n_hidden, gamma=gamma, random_state=seed)


@pytest.mark.parametrize(("name", "n_hidden"), sorted(PUBLISHED_RATIO))
def test_condition_numbers_are_those_of_the_paper(name, n_hidden):
    ratios = []
    for seed, task, (X, _, y, _) in splits(name, 5):
        model = network(task, n_hidden, rules.OCReP(floor=0.0), seed).fit(X, y)
        ratios.append(model.regularized_condition_number_ / model.condition_number_)
    assert 0.5 < np.mean(ratios) / PUBLISHED_RATIO[name, n_hidden] < 2


@pytest.mark.parametrize(("name", "n_hidden"), sorted(SINGULAR))
def test_the_floor_cures_the_singular_cases(name, n_hidden):
    errors = []
    for seed, task, (X, X_test, y, y_test) in splits(name, 10):
        predicted = network(task, n_hidden, "ocrep", seed).fit(X, y).predict(X_test)
        if task == "regression":
            errors.append(np.sqrt(np.mean((predicted - y_test) ** 2)))
        else:
            errors.append(100 * np.mean(predicted != y_test))
    assert np.mean(errors) <= SINGULAR[name, n_hidden]
