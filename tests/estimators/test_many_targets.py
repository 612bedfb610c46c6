"""Many targets with a γ each: on every kind of rows as if each were alone, and no matrix of targets × targets."""

import itertools
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from ocrep import TikhonovRegressor, rules, scan

Q = 40
LOOK = (0, 13, Q - 1)
CUTS = (0, 50, 51, 150, 240)
NAMED = {name: rules.Discrepancy(noise=2.0) if name == "discrepancy" else name for name in rules.names()}


def problem(n_rows=240, n_features=20, n_targets=Q):
    """Targets of very different noise, some of them almost nothing else."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features)) * np.geomspace(1.0, 0.01, n_features) + 0.3
    T = X @ rng.standard_normal((n_features, n_targets))
    return X, T + np.geomspace(0.05, 8.0, n_targets) * rng.standard_normal((n_rows, n_targets))


def in_memory(model, X, y):
    return clone(model).fit(X, y)


def scanned(model, X, y):
    return clone(model).fit(scan([(X[a:b], y[a:b]) for a, b in itertools.pairwise(CUTS)]))


def in_blocks(model, X, y):
    model = clone(model)
    for a, b in itertools.pairwise(CUTS):
        model.partial_fit(X[a:b], y[a:b])
    return model


def on_dask(model, X, y):
    da = pytest.importorskip("dask.array")
    return clone(model).fit(da.from_array(X, (100, -1)), da.from_array(y, (100, *y.shape[1:])))


FEW = ("kfold", "ocrep_cv", "gcv", "evidence", "lcurve", "kibria", "ocrep")
CASES = [
    *((in_memory, name) for name in NAMED),
    *((fit, name) for fit in (scanned, in_blocks, on_dask) for name in FEW),
    (scanned, "loo"),
]


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")  # the noisiest targets
@pytest.mark.parametrize(("fit", "name"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_every_rule_chooses_for_each_target_what_it_chooses_for_that_alone(fit, name):
    X, Y = problem()
    together = fit(TikhonovRegressor(NAMED[name], gamma_per_target=True), X, Y)
    assert together.gamma_.shape == (Q,)
    predicted = together.predict(X)
    for q in LOOK:
        alone = fit(TikhonovRegressor(NAMED[name]), X, Y[:, q])
        assert together.gamma_[q] == pytest.approx(alone.gamma_, rel=1e-11)
        expected = alone.predict(X)
        np.testing.assert_allclose(predicted[:, q], expected, atol=1e-12 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("fit", [in_memory, scanned])
@pytest.mark.parametrize("gamma", ["kfold", "ocrep_cv", "gcv"])
def test_no_matrix_of_targets_by_targets_is_ever_there(fit, gamma):
    n_targets = 4_000
    X, Y = problem(60, 4, n_targets)
    fit(TikhonovRegressor(gamma, gamma_per_target=True), X[:, :2], Y[:, :2])  # what is imported late
    tracemalloc.start()
    fit(TikhonovRegressor(gamma, gamma_per_target=True), X, Y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.9 * 8 * n_targets**2
