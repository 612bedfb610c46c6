"""Folds through every route: held-out errors equal those of refitting without each fold."""

import numpy as np
import pytest
from support.folds import fold_numbers
from support.routes import factored, problem

from ocrep._linalg.gram import PROVED_CONDITION, REFINED_CONDITION

N, M, BLOCK = 3000, 24, 500
EPS = np.finfo(float).eps


@pytest.fixture(autouse=True)
def _small_blocks(small_blocks):
    """So that the rows make several blocks: a single one is factored by reflections at once."""
    small_blocks(BLOCK * M)


def refitted(H, T, gamma, intercept, weight=None):
    """Σ w‖t − prediction‖² over each fold, by least squares without it."""
    fold, w = fold_numbers(H), np.ones(len(H)) if weight is None else weight
    errors = []
    for v in range(3):
        rest, held = fold != v, fold == v
        mean_H, mean_T = (np.average(a[rest], axis=0, weights=w[rest]) if intercept else 0.0 for a in (H, T))
        A = np.sqrt(w[rest])[:, None] * (H[rest] - mean_H)
        B = np.sqrt(w[rest])[:, None] * (T[rest] - mean_T)
        A, B = np.vstack([A, np.sqrt(gamma) * np.eye(M)]), np.vstack([B, np.zeros((M, T.shape[1]))])
        W = np.linalg.lstsq(A, B, rcond=None)[0]
        left = T[held] - mean_T - (H[held] - mean_H) @ W
        errors.append(float(np.sum(w[held][:, None] * left**2)))
    return np.array(errors)


ROUTES = {
    "gram": (1e2, "gram"),
    "gram, at its limit": (0.7 * PROVED_CONDITION, "gram"),
    "gram, then refined": (1.4 * PROVED_CONDITION, "refined"),
    "first block": (1e8, "refined"),
    "qr": (1e13, "reflections"),
    "beyond refinement": (10 * REFINED_CONDITION, "reflections"),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ROUTES)
def test_held_out_errors_equal_refitting_on_every_route(name, intercept, weighted):
    kappa, route = ROUTES[name]
    H, T = problem(kappa, n_targets=2, signal=np.eye(M)[:, :2])
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    model = factored(H, T, weight, intercept=intercept, n_folds=3)
    assert model.route_ == route
    size = np.array([np.sum(T[fold_numbers(H) == v] ** 2) for v in range(3)])
    for gamma in (1e-6, 1e-3, 1.0):
        expected = refitted(H, T, gamma, intercept, weight)
        damped = min(kappa, gamma**-0.5)  # γ bounds what a small singular value can do
        ours = model.folds_.squared_errors(np.array([gamma]))[:, 0]
        assert np.abs(ours - expected).max() <= max(1e-10, 10 * EPS * damped**2) * size.max()


def test_routes_agree_with_reflections_and_their_total_with_a_plain_fit():
    H, T = problem(3e3, n_targets=2)
    fast, slow = (factored(H, T, intercept=True, n_folds=3, solver=solver) for solver in ("auto", "qr"))
    plain = factored(H, T, intercept=True)
    assert (fast.route_, slow.route_) == ("gram", "reflections")
    gammas = np.logspace(-6, 1, 8)
    np.testing.assert_allclose(fast.folds_.squared_errors(gammas), slow.folds_.squared_errors(gammas), rtol=1e-7)
    np.testing.assert_allclose(fast.spectrum_.sigma, plain.spectrum_.sigma, rtol=1e-8)
    np.testing.assert_allclose(fast.folds_.merged().spectrum().sigma, slow.spectrum_.sigma, rtol=1e-8)
    assert fast.folds_.n_read == slow.folds_.n_read == N
    assert fast.folds_.weight_sums == slow.folds_.weight_sums
    cut, exact = (model.folds_.leading(7).squared_errors(gammas) for model in (fast, slow))
    np.testing.assert_allclose(cut, exact, rtol=1e-7)


@pytest.mark.parametrize("hostile", ["a fold with other targets", "a fold alone spans a direction", "an exact fit"])
def test_hostile_folds_are_as_exact_as_by_reflections(hostile):
    H, T = problem(1e2, n_targets=2)
    fold = fold_numbers(H)
    if hostile == "a fold with other targets":
        T = np.where((fold == 1)[:, None], 1e6 * T, T)
    elif hostile == "a fold alone spans a direction":
        direction = np.where(fold == 2, 1.0, 0.0)
        rest = H[:, 1:]
        for _ in range(3):  # the column decides nothing but its own rows, and must not move them between folds
            H = np.column_stack([np.where(fold_numbers(np.column_stack([direction, rest])) == 2, 1.0, 0.0), rest])
            direction = H[:, 0]
    else:
        T = H @ np.ones((M, 2))
    gammas = np.logspace(-8, 2, 6)
    ours, exact = (factored(H, T, n_folds=3, solver=s).folds_.squared_errors(gammas) for s in ("auto", "qr"))
    sizes = np.array([np.sum(T[fold_numbers(H) == v] ** 2) for v in range(3)])[:, None]
    assert (np.abs(ours - exact) <= 1e-9 * np.maximum(exact, 1e-1 * sizes)).all()


@pytest.mark.parametrize(("n_rows", "n_folds"), [(60, 3), (N, 40)])
def test_few_rows_and_many_folds_take_reflections(n_rows, n_folds):
    H, T = problem(1e2)
    assert factored(H[:n_rows], T[:n_rows], n_folds=n_folds).route_ == "reflections"
