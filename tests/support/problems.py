"""Problems that the tests share: matrices with a spectrum made to order, and smooth targets."""

import numpy as np
from support.encoded import encoded_rows, fold_factors

from ocrep import Factor

PAPER = {"gamma": "ocrep", "direct_link": False, "fit_intercept": False}
"""The network of the paper."""


def with_spectrum(sigma, n_rows, seed=0):
    """A matrix of `n_rows` rows whose singular values are `sigma`."""
    sigma = np.asarray(sigma, dtype=float)
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((n_rows, len(sigma))))[0]
    V = np.linalg.qr(rng.standard_normal((len(sigma), len(sigma))))[0]
    return (U * sigma) @ V.T


def with_condition(kappa, n_rows=120, n_columns=12, seed=0):
    """A matrix with singular values from 1 down to 1/kappa, evenly spaced in the logarithm."""
    return with_spectrum(np.logspace(0, -np.log10(kappa), n_columns), n_rows, seed)


def random_problem(n_rows=60, n_features=8, n_targets=1, seed=0):
    """H and T of standard normal entries, T partly explained by H."""
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((n_rows, n_features))
    T = H @ rng.standard_normal((n_features, n_targets)) + rng.standard_normal((n_rows, n_targets))
    return H, T


def smooth_problem(n_rows, n_inputs, noise=0.1, seed=0):
    """Inputs in [−1, 1] and a smooth function of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_rows, n_inputs))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    return X, y + noise * rng.standard_normal(n_rows)


def augmented_solution(H, T, gamma):
    """The oracle: least squares on the stacked system [H; √γ I] W = [T; 0]."""
    M = H.shape[1]
    A = np.vstack([H, np.sqrt(gamma) * np.eye(M)])
    return np.linalg.lstsq(A, np.vstack([T, np.zeros((M, T.shape[1]))]), rcond=None)[0]


def numbers_of(H):
    """One input per row, its number: what decides a row's fold, whatever H is."""
    return np.arange(float(len(H)))[:, None]


def evidence(H, T, rule, *, intercept=False, sample_weight=None, labels=False, block=17):
    """Spectrum, folds and rows for a rule, cut into blocks."""
    T = T.reshape(len(T), -1)
    fold = None if rule.folds is None else rule.folds.of(numbers_of(H))
    rows = encoded_rows(H, T, sample_weight, fold=fold, labels=labels, block=block)
    folds = None if rule.folds is None else fold_factors(rows, rule.folds, intercept=intercept)
    factor = Factor.of(H, T, sample_weight=sample_weight, intercept=intercept)
    return factor.spectrum(), {"folds": folds, "rows": rows}


def choose(rule, H, T, **options):
    """What a rule chooses for a problem, with all that it may need."""
    spectrum, more = evidence(H, T, rule, **options)
    return rule.choose(spectrum, **more)
