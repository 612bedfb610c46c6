"""Folds through every route: held-out errors equal those of refitting without each fold."""

import numpy as np
import pytest

from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.gram import PROVED_CONDITION, REFINED_CONDITION
from ocrep._linalg.parallel import RowBlocks
from ocrep._linalg.passes import LocalPasses
from ocrep._linalg.solve import solve

N, M, BLOCK = 3000, 24, 500
EPS = np.finfo(float).eps
PLAN = FoldPlan(3)


def problem(kappa, *, noise=0.5, seed=0, n_targets=2):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((N, M + n_targets)))
    V, _ = np.linalg.qr(rng.standard_normal((M, M)))
    H = (Q[:, :M] * np.geomspace(1.0, 1.0 / kappa, M)) @ V.T
    return H, H @ V @ rng.standard_normal((M, n_targets)) + noise * Q[:, M:]


class Blocks:
    """Rows to be read again, which counts how often they were."""

    def __init__(self, H, T, weight=None):
        self.arrays, self.n_reads = (H, T, weight), 0

    def __call__(self):
        self.n_reads += 1
        for start in range(0, len(self.arrays[0]), BLOCK):
            yield tuple(a if a is None else a[start : start + BLOCK] for a in self.arrays)


def refitted(H, T, gamma, intercept, weight=None):
    """Σ w‖t − prediction‖² over each fold, by least squares without it."""
    fold, w = PLAN.of(H), np.ones(len(H)) if weight is None else weight
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
    "gram": (1e2, 1),
    "gram, at its limit": (0.7 * PROVED_CONDITION, 1),
    "first block": (1e8, 1),
    "qr": (1e13, None),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_held_out_errors_equal_refitting_on_every_route(route, intercept, weighted):
    kappa, n_reads = ROUTES[route]
    H, T = problem(kappa)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    blocks = Blocks(H, T, weight)
    solved = solve(LocalPasses(RowBlocks(blocks)), intercept=intercept, folds=PLAN)
    assert n_reads in (None, blocks.n_reads)
    size = np.array([np.sum(T[PLAN.of(H) == v] ** 2) for v in range(3)])
    for gamma in (1e-6, 1e-3, 1.0):
        expected = refitted(H, T, gamma, intercept, weight)
        damped = min(kappa, gamma**-0.5)  # γ bounds what a small singular value can do
        ours = solved.folds.squared_errors(np.array([gamma]))[:, 0]
        assert np.abs(ours - expected).max() <= max(1e-10, 10 * EPS * damped**2) * size.max()
    assert (solved.spectrum is None) == (route == "qr")


def test_routes_agree_with_reflections_and_their_total_with_a_plain_fit():
    H, T = problem(3e3)
    fast, slow = (
        solve(LocalPasses(RowBlocks(Blocks(H, T))), intercept=True, folds=PLAN, solver=s) for s in ("auto", "qr")
    )
    plain = solve(LocalPasses(RowBlocks(Blocks(H, T))), intercept=True)
    gammas = np.logspace(-6, 1, 8)
    np.testing.assert_allclose(fast.folds.squared_errors(gammas), slow.folds.squared_errors(gammas), rtol=1e-7)
    np.testing.assert_allclose(fast.spectrum.sigma, plain.spectrum.sigma, rtol=1e-8)
    np.testing.assert_allclose(fast.folds.merged().spectrum().sigma, slow.factor.spectrum().sigma, rtol=1e-8)
    assert fast.folds.n_read == slow.folds.n_read == N
    assert fast.folds.weight_sums == slow.folds.weight_sums
    cut = fast.folds.leading(7)
    np.testing.assert_allclose(cut.squared_errors(gammas), slow.folds.leading(7).squared_errors(gammas), rtol=1e-7)


@pytest.mark.parametrize("hostile", ["a fold with other targets", "a fold alone spans a direction", "an exact fit"])
def test_hostile_folds_are_as_exact_as_by_reflections(hostile):
    H, T = problem(1e2)
    fold = PLAN.of(H)
    if hostile == "a fold with other targets":
        T = np.where((fold == 1)[:, None], 1e6 * T, T)
    elif hostile == "a fold alone spans a direction":
        direction = np.where(fold == 2, 1.0, 0.0)
        rest = H[:, 1:]
        for _ in range(3):  # the column decides nothing but its own rows, and must not move them between folds
            H = np.column_stack([np.where(PLAN.of(np.column_stack([direction, rest])) == 2, 1.0, 0.0), rest])
            direction = H[:, 0]
    else:
        T = H @ np.ones((M, 2))
    solved = solve(LocalPasses(RowBlocks(Blocks(H, T))), intercept=False, folds=PLAN)
    reference = FoldFactors.empty(PLAN).absorb([(H, T, None)], intercept=False)
    gammas = np.logspace(-8, 2, 6)
    ours, exact = solved.folds.squared_errors(gammas), reference.squared_errors(gammas)
    sizes = np.array([np.sum(T[PLAN.of(H) == v] ** 2) for v in range(3)])[:, None]
    assert (np.abs(ours - exact) <= 1e-9 * np.maximum(exact, 1e-1 * sizes)).all()


def test_few_rows_and_many_folds_take_reflections():
    H, T = problem(1e2)
    for rows, plan in ((H[:700], PLAN), (H, FoldPlan(40))):
        solved = solve(LocalPasses(RowBlocks(Blocks(rows, T[: len(rows)]))), intercept=False, folds=plan)
        reference = FoldFactors.empty(plan).absorb([(rows, T[: len(rows)], None)], intercept=False)
        gammas = np.array([1e-3])
        np.testing.assert_allclose(solved.folds.squared_errors(gammas), reference.squared_errors(gammas), rtol=1e-9)


def test_beyond_refinement_only_reflections_remain():
    H, T = problem(10 * REFINED_CONDITION)
    solved = solve(LocalPasses(RowBlocks(Blocks(H, T))), intercept=False, folds=PLAN)
    assert solved.spectrum is None
