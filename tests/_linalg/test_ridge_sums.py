"""Sums of wide rows are kept by a few columns, down to the diagonal: they must say the same as the whole matrix."""

import numpy as np
import pytest

from ocrep._linalg import ridge_sums
from ocrep._linalg.ridge_sums import RidgeSums


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("columns", [1, 3, 4, 100])
def test_sums_by_columns_are_those_of_the_rows(columns, intercept, monkeypatch, rng):
    monkeypatch.setattr(ridge_sums, "_COLUMNS", columns)
    H, T, weight = rng.normal(size=(40, 7)), rng.normal(size=(40, 2)), rng.uniform(0.5, 2.0, 40)
    shift = rng.normal(size=9)
    parts = [RidgeSums(shift, 7).add(H[i : i + 10], T[i : i + 10], weight[i : i + 10]) for i in (0, 20)]
    sums = [one.add(H[i : i + 10], T[i : i + 10], weight[i : i + 10]) for one, i in zip(parts, (10, 30), strict=True)]
    both = sums[0].merge(sums[1])
    mean_H, mean_T = (weight @ A / weight.sum() * intercept for A in (H, T))
    found = both.problem(intercept=intercept)
    C = (H - mean_H) * np.sqrt(weight)[:, None]
    np.testing.assert_allclose(found.A, C.T @ C, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found.B, C.T @ ((T - mean_T) * np.sqrt(weight)[:, None]), rtol=1e-10, atol=1e-11)
    W, b = found.weights(0.5)
    np.testing.assert_allclose(found.A @ W + 0.5 * W, found.B, rtol=1e-10, atol=1e-11)
    assert both.squared_error(W, b) == pytest.approx(weight @ ((T - H @ W - b) ** 2).sum(axis=1), rel=1e-10)
