"""The triangle of the features, QᵀT and a length per target: right, mergeable, and linear in the number of targets."""

import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.device import on_device, to_numpy
from support.routes import factored

from ocrep import Factor, TikhonovRegressor
from ocrep._linalg.gram import GramSums, PreconditionedSums, shifted_root
from ocrep._linalg.triangle import Triangle

SHAPES = {"tall": (300, 20), "several panels": (400, 300), "square": (20, 20), "wide": (7, 20), "no features": (9, 0)}
SHAPES |= {"nearly 500": (480, 470), "500": (520, 500)}


def rows(n, k, n_targets=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, k + n_targets))


def left_over(A, k):
    """The length of what least squares leaves of each target."""
    F, T = A[:, :k], A[:, k:]
    return np.linalg.norm(T - F @ np.linalg.lstsq(F, T, rcond=None)[0], axis=0)


def in_a_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@pytest.mark.parametrize("library", ["numpy", "scipy", "other"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_and_residuals_are_those_of_the_rows(shape, library):
    """Workers use SciPy's reflections, the main thread those of NumPy."""
    n, k = SHAPES[shape]
    A = rows(n, k)
    F, T = A[:, :k], A[:, k:]
    if library == "other":
        triangle = Triangle.of(on_device(F), on_device(T))
        R, QtT, left = (to_numpy(part) for part in (triangle.R, triangle.QtT, triangle.left))
    else:
        triangle = in_a_thread(lambda: Triangle.of(F, T)) if library == "scipy" else Triangle.of(F, T)
        R, QtT, left = triangle.R, triangle.QtT, triangle.left
    assert np.array_equal(A, rows(n, k))
    assert R.shape == (min(n, k), k)
    assert np.array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, F.T @ F, atol=1e-13 * n * k)
    np.testing.assert_allclose(R.T @ QtT, F.T @ T, atol=1e-13 * n * k)
    np.testing.assert_allclose(left, left_over(A, k), atol=1e-13)


def test_the_interpreter_is_free_while_lapack_reduces_rows():
    """Workers reduce rows at once, also with few columns: another thread goes on meanwhile."""
    A = rows(20_000, 200)
    moments = [time.perf_counter()]
    with ThreadPoolExecutor(1) as pool:
        reduced = pool.submit(Triangle.of, A[:, :200], A[:, 200:])
        while not reduced.done():
            time.sleep(1e-4)
            moments.append(time.perf_counter())
    assert np.diff(moments).max() < 0.5 * (moments[-1] - moments[0])


def test_empty_and_dependent_features_leave_what_least_squares_leaves():
    A = rows(40, 6)
    A[:, 1], A[:, 3], A[20:, 4] = 0.0, A[:, 2], 0.0
    spectrum = Factor.of(A[:, :6], A[:, 6:]).spectrum()
    assert spectrum.rank == 4
    np.testing.assert_allclose(spectrum.residual, left_over(A, 6) ** 2, rtol=1e-12)


def test_what_is_left_of_parts_adds_up_to_what_is_left_of_the_whole():
    A = rows(90, 5)
    parts = [Triangle.of(part[:, :5], part[:, 5:]) for part in np.array_split(A, 4)]
    stacked = (np.vstack([getattr(part, name) for part in parts]) for name in ("R", "QtT"))
    merged = Triangle.of(*stacked, *(part.left for part in parts))
    np.testing.assert_allclose(merged.left, left_over(A, 5), rtol=1e-12)


def test_a_residual_of_1e8_of_the_target_keeps_its_digits_in_every_merge():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((200, 4))
    noise = rng.standard_normal(200)
    noise -= F @ np.linalg.lstsq(F, noise, rcond=None)[0]
    T = F @ np.ones(4) + 1e-8 * noise
    factors = [Factor.of(F[i : i + 20], T[i : i + 20]) for i in range(0, 200, 20)]
    whole = factors[0]
    for factor in factors[1:]:
        whole = whole.merge(factor)
    np.testing.assert_allclose(whole.triangle.left, 1e-8 * np.linalg.norm(noise), rtol=1e-6)


def test_a_target_has_the_same_fit_whichever_targets_stand_beside_it():
    A = rows(60, 6, n_targets=40)
    many = Factor.of(A[:, :6], A[:, 6:], intercept=True).spectrum()
    for q in (0, 17, 39):
        alone = Factor.of(A[:, :6], A[:, 6 + q], intercept=True).spectrum()
        np.testing.assert_allclose(many.residual[q], alone.residual[0], rtol=1e-13)
        np.testing.assert_allclose(many.UtT[:, q], alone.UtT[:, 0], atol=1e-13)


def test_leading_and_selected_features_leave_what_least_squares_leaves():
    A = rows(60, 6)
    factor = Factor.of(A[:, :6], A[:, 6:])
    np.testing.assert_allclose(factor.leading(4).triangle.left, left_over(A[:, [0, 1, 2, 3, 6, 7, 8]], 4), rtol=1e-12)
    np.testing.assert_allclose(factor.select([5, 1]).triangle.left, left_over(A[:, [5, 1, 6, 7, 8]], 2), rtol=1e-12)


def test_a_constant_target_has_no_residual_about_its_mean():
    H = np.random.default_rng(0).standard_normal((50, 3))
    T = np.column_stack([np.full(50, 1e6 / 3), H[:, 0]])
    assert Factor.of(H, T, intercept=True).spectrum().residual[0] == 0.0


N, M, Q = 90, 4, 3000
MANY = rows(N, M, Q)
H, T = MANY[:, :M], MANY[:, M:]


def grams():
    return GramSums.of((H[:30], T[:30], None), intercept=True).add((H[30:], T[30:], None))


SUMMARIES = {
    "one block": lambda: Factor.of(H, T, intercept=True),
    "merged": lambda: Factor.of(H[:40], T[:40]).merge(Factor.of(H[40:], T[40:])).leading(2),
    "fewer rows than features": lambda: Factor.of(H[:3], T[:3]),
    "sums": grams,
    "sums as a factor": lambda: grams().factor(),
    "preconditioned": lambda: PreconditionedSums.about(shifted_root(grams().products), grams().counts).add((H, T)),
    "folds by sums": lambda: factored(H, T, intercept=True, n_folds=3, solver="gram").folds_,
    "folds by reflections": lambda: factored(H, T, intercept=True, n_folds=3, solver="qr").folds_,
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_no_summary_grows_with_the_square_of_the_targets(name):
    tracemalloc.start()
    try:
        summary = SUMMARIES[name]()
        held = sum(array.size for array in summary.to_arrays().values())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held < 100 * Q
    assert peak < 8 * Q * Q / 4


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")  # the targets are noise
@pytest.mark.parametrize("rule", ["gcv", "kfold", "loo", "mallows", "bic", "evidence", "lcurve", "ocrep_cv"])
def test_no_rule_holds_a_square_of_the_targets(rule):
    tracemalloc.start()
    try:
        TikhonovRegressor(rule).fit(H, T)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * Q * Q
