"""Held-out rows of many targets under many γ: few products give what one for each γ gives."""

import numpy as np
import pytest
from support.device import on_device, to_numpy

from ocrep._linalg import spectrum
from ocrep._linalg.spectrum import squared_errors

N, M, Q = 30, 25, 40


def problem(kappa=1e3, seed=0):
    """Rows times directions, coordinates, targets and eigenvalues."""
    rng = np.random.default_rng(seed)
    P, Z, T = rng.standard_normal((N, M)), rng.standard_normal((M, Q)), rng.standard_normal((N, Q))
    return P, Z, T, np.geomspace(1.0, kappa**-2.0, M)


def gains_of(values):
    return lambda gamma: values**0.5 / (values + gamma[..., None])


@pytest.mark.parametrize("kappa", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("span", [(1e-16, 1e4), (1e-3, 1e-2), (1e3, 1e9)])
def test_the_errors_are_those_of_each_gamma_by_itself(kappa, span):
    P, Z, T, values = problem(kappa)
    gammas = np.random.default_rng(1).permutation(np.geomspace(*span, 80))
    found = squared_errors(P, Z, T, gammas[:, None], gains_of(values))
    for error, gamma in zip(found, gammas, strict=True):
        predicted = P @ (Z * (values**0.5 / (values + gamma))[:, None])
        # Rounding is relative to the predictions, which may be far larger than the error.
        scale = (np.abs(T) + np.abs(P) @ np.abs(Z * (values**0.5 / (values + gamma))[:, None])) ** 2
        assert (np.abs(error - ((T - predicted) ** 2).sum(axis=0)) <= 1e-11 * scale.sum(axis=0)).all()


def test_far_fewer_products_than_gammas_are_formed(monkeypatch):
    P, Z, T, values = problem(1e3)
    formed = []
    by_combinations = spectrum._by_combinations

    def counted(P, Z, T, weights, combinations):
        formed.append(len(combinations))
        return by_combinations(P, Z, T, weights, combinations)

    monkeypatch.setattr(spectrum, "_by_combinations", counted)
    for n_gammas in (100, 400):
        formed.clear()
        squared_errors(P, Z, T, np.geomspace(1e-10, 1e4, n_gammas)[:, None], gains_of(values))
        assert sum(formed) < 80  # not more for a finer grid


def test_arrays_of_another_library_give_the_same():
    P, Z, T, values = problem()
    gammas = np.geomspace(1e-6, 1e2, 50)[:, None]
    theirs = squared_errors(*map(on_device, (P, Z, T, gammas)), gains_of(on_device(values)))
    np.testing.assert_allclose(to_numpy(theirs), squared_errors(P, Z, T, gammas, gains_of(values)), rtol=1e-11)


def test_without_directions_the_error_is_the_target():
    P, Z, T, values = (part[..., :0] for part in problem())
    T, gammas = problem()[2], np.geomspace(1.0, 2.0, 20)[:, None]
    found = squared_errors(P, Z.T.reshape(0, Q), T, gammas, gains_of(values))
    np.testing.assert_allclose(found, np.tile((T**2).sum(axis=0), (20, 1)), rtol=1e-14)
