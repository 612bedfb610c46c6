"""Timings to be compared from one commit to the next, with pytest-benchmark.

`make bench-track` runs these and compares them with the last run kept in `.benchmarks/`, on the same machine.
"""

import numpy as np
import pytest

from ocrep import Factor, PinvRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(20_000, 20))
y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.standard_normal(20_000)
MODEL = PinvRegressor(200, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    "options", [{}, {"solver": "qr"}, {"gamma": "kfold"}, {"gamma": "loo"}, {"fit_intercept": True}]
)
def test_fit(benchmark, options):
    benchmark(PinvRegressor(200, random_state=0, **options).fit, X, y)


@pytest.mark.parametrize("model", [MODEL, MODEL.as_float32()], ids=["double", "single"])
def test_predict(benchmark, model):
    benchmark(model.predict, X)


def test_merge(benchmark):
    H = MODEL.layer_.transform(X)
    one, other = Factor.of(H[:10_000], y[:10_000]), Factor.of(H[10_000:], y[10_000:])
    benchmark(one.merge, other)


def test_spectrum(benchmark):
    benchmark(MODEL.factor_.spectrum)


def test_another_rule(benchmark):
    benchmark(MODEL.with_gamma, "gcv")
