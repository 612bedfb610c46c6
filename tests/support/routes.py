"""Rows whose singular values are known, and fits of which `route_` says how they were factored."""

import numpy as np

from ocrep import TikhonovRegressor


def factored(H, T, weight=None, *, intercept=False, solver="auto", n_folds=0):
    """A model with H as its features: `factor_`, `spectrum_`, `folds_` and `route_` are those of these rows."""
    model = TikhonovRegressor(1.0, fit_intercept=intercept, solver=solver, store_folds=n_folds or False)
    return model.fit(H, T, sample_weight=weight)


def problem(kappa, n_rows=3000, n_features=24, *, left=0.5, signal=None, seed=0, n_targets=1):
    """H with singular values from 1 to 1/κ; T of norm 1, the share `left` of its square outside the range of H."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n_rows, n_features + n_targets)))
    V, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    H = (Q[:, :n_features] * np.geomspace(1.0, 1.0 / kappa, n_features)) @ V.T
    inside = rng.standard_normal((n_features, n_targets)) if signal is None else signal
    inside = inside / np.linalg.norm(inside, axis=0)
    return H, np.sqrt(1 - left) * Q[:, :n_features] @ inside + np.sqrt(left) * Q[:, n_features:]
