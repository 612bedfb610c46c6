"""The SVD by the polar decomposition against LAPACK's."""

import numpy as np
import pytest
from support.device import on_device, to_numpy

from ocrep._linalg.arrays import EPS
from ocrep._linalg.factor import Factor
from ocrep._linalg.triangle import svd_by_polar


def triangle(size, kappa, seed=0):
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((size, size)))
    V, _ = np.linalg.qr(rng.standard_normal((size, size)))
    return np.linalg.qr((U * np.geomspace(1.0, 1.0 / kappa, size)) @ V.T, mode="r")


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("kappa", [1.0, 1e3, 1e8, 1e12])
@pytest.mark.parametrize("unit", [1e-90, 1.0, 1e90])
def test_it_is_backward_stable(size, kappa, unit):
    R = triangle(size, kappa)
    U, sigma, Vt = svd_by_polar(unit * R)
    tolerance = 40 * size * EPS
    np.testing.assert_allclose((U * sigma) @ Vt / unit, R, atol=tolerance)
    np.testing.assert_allclose(sigma / unit, np.linalg.svd(R, compute_uv=False), atol=tolerance)
    for orthogonal in (U.T @ U, Vt @ Vt.T):
        np.testing.assert_allclose(orthogonal, np.eye(size), atol=tolerance)
    assert (np.diff(sigma) <= 0).all()


def twins(size, distance):
    """The triangle of columns in nearly equal pairs, on which the iteration is unstable without the transpose."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3 * size, size))
    A[:, 1::2] = A[:, ::2] + distance * A[:, 1::2]
    return np.linalg.qr(A, mode="r")


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-11])
def test_nearly_equal_pairs_of_columns_are_no_harder(distance):
    R = twins(60, distance)
    U, sigma, Vt = svd_by_polar(R)
    np.testing.assert_allclose((U * sigma) @ Vt, R, atol=1e-14 * np.abs(R).sum(axis=0).max())
    np.testing.assert_allclose(sigma, np.linalg.svd(R, compute_uv=False), atol=1e-14 * sigma[0])


def test_an_answer_that_is_not_exact_is_not_given():
    assert svd_by_polar(twins(60, 1e-9).T) is None  # columns are not graded, and Q loses half its digits


def test_a_singular_triangle_keeps_its_rank():
    R = triangle(10, 10.0)
    R[:, 4] = R[:, 2]
    sigma = svd_by_polar(np.linalg.qr(R, mode="r"))[1]
    assert (sigma > 100 * EPS).sum() == 9


def test_it_works_on_other_arrays():
    R = triangle(12, 1e6)
    U, sigma, Vt = (to_numpy(part) for part in svd_by_polar(on_device(R)))
    np.testing.assert_allclose((U * sigma) @ Vt, R, atol=1e-13)
    spectrum = Factor.of(on_device(R), on_device(np.zeros(12))).spectrum()
    np.testing.assert_allclose(to_numpy(spectrum.sigma), sigma, atol=1e-13)
