"""Held-out errors at one γ against refitting in fifty digits: proved by sums, or verified from the rows."""

from functools import cache

import mpmath
import numpy as np
import pytest
from support.device import on_device
from support.encoded import counted, encoded_rows

from ocrep import TikhonovRegressor, rules
from ocrep._linalg import held_out
from ocrep._linalg.fold_factors import held_out as held_out_pairs
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.held_out import HELD_OUT_ERROR, are_proved, errors_from_rows
from ocrep._linalg.solve import solve

N, M, BLOCK = 240, 6, 60
PLAN = FoldPlan(3)
EPS = np.finfo(float).eps
SIGNALS = {"every direction": np.ones(M), "weakest": np.arange(M) >= M - 1, "strongest": np.arange(M) < 1}


@cache
def problem(kappa, signal="every direction", noise=0.5):
    """H with singular values from 1 to 1/κ, and a target of norm 1 beside noise outside its range."""
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.standard_normal((N, M + 1)))
    V, _ = np.linalg.qr(rng.standard_normal((M, M)))
    inside = SIGNALS[signal] * rng.standard_normal(M)
    t = Q[:, :M] @ (inside / np.linalg.norm(inside)) + noise * Q[:, M]
    return (Q[:, :M] * np.geomspace(1.0, 1.0 / kappa, M)) @ V.T, t[:, None]


class Rows:
    """Rows in blocks, which count how often they are read."""

    def __init__(self, H, T, weight=None, fold=None):
        self.encoded, self.reads = counted(encoded_rows(H, T, weight, fold=fold, block=BLOCK))

    def solved(self, *, intercept):
        return solve(self.encoded.rows, self.encoded.encoder, PLAN, intercept=intercept)


exactly = np.vectorize(mpmath.mpf, otypes=[object])


def refitted(H, T, gamma, intercept, weight=None):
    """Σ w‖t − prediction‖² over each fold, refitted without it in fifty digits, and Σ w‖t − mean‖²."""
    fold, w = PLAN.of(H), np.ones(N) if weight is None else weight
    errors, sizes = [], []
    for v in range(3):
        rest, held = fold != v, fold == v
        with mpmath.workdps(50):
            A = exactly(np.hstack([np.ones((N, int(intercept))), H]))
            t, heavy = exactly(T[:, 0]), exactly(w)
            K = (A[rest] * heavy[rest, None]).T @ A[rest]
            for i in range(int(intercept), len(K)):
                K[i, i] += mpmath.mpf(gamma)
            B = mpmath.lu_solve(mpmath.matrix(K.tolist()), mpmath.matrix((A[rest].T @ (heavy * t)[rest]).tolist()))
            left = t[held] - A[held] @ np.array(list(B))
            errors.append(heavy[held] @ (left * left))
        mean = np.average(T[rest, 0], weights=w[rest]) if intercept else 0.0
        sizes.append(float(np.sum(w[held] * (T[held, 0] - mean) ** 2)))
    return errors, np.array(sizes)


def held_out_errors(solved, gamma, rows):
    """What a fit does: errors from the factors where they are proved, else from the rows."""
    if are_proved(solved.folds, gamma, solved.route):
        return solved.folds.squared_errors(np.array([gamma]))[:, 0]
    return from_rows(solved.folds, gamma, rows)


def from_rows(folds, gamma, rows):
    """The errors of the only target."""
    return [float(errors[0]) for errors in errors_from_rows(folds, gamma, rows.encoded.rows, rows.encoded.encoder)]


def differences(found, exact):
    return np.array([abs(float(mpmath.mpf(float(a)) - b)) for a, b in zip(found, exact, strict=True)])


@pytest.mark.parametrize(("intercept", "weighted"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("signal", sorted(SIGNALS))
@pytest.mark.parametrize("kappa", [3e2, 1e4, 3e4, 1e8, 1e11])
def test_errors_are_those_of_refitting_in_fifty_digits(kappa, signal, intercept, weighted):
    H, T = problem(kappa, signal)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, N) if weighted else None
    rows = Rows(H, T, weight)
    solved = rows.solved(intercept=intercept)
    if kappa not in (3e4, 1e11):  # which lie on one side of a switch or on the other
        assert solved.route == ("gram" if kappa == 3e2 or (kappa == 1e4 and signal == "strongest") else "refined")
    for gamma in (EPS, 1e-12, 1e-8, 1e-4):
        exact, sizes = refitted(H, T, gamma, intercept, weight)
        found = held_out_errors(solved, gamma, rows)
        # Rows times weights are rounded too, by ε of the weights: that matters at the least γ and κ = 10⁸.
        weights = max(float(spectrum.norm(gamma)) for spectrum in solved.folds.spectra)
        assert (differences(found, exact) <= max(HELD_OUT_ERROR, EPS * weights) * sizes).all()
        if solved.route == "gram":  # what the sums give by themselves lies within the bound that is made for them
            plain = solved.folds.squared_errors(np.array([gamma]))[:, 0]
            fits = [held_out._FoldFit.of(fold, spectrum, gamma) for fold, spectrum in held_out_pairs(solved.folds)]
            assert (differences(plain, exact) <= [float(fit.rounding()[0]) for fit in fits]).all()
            np.testing.assert_allclose([float(fit.size()[0]) for fit in fits], sizes, rtol=1e-10)


@pytest.mark.parametrize(
    ("kappa", "gamma", "n_reads"), [(1e4, 1e-4, 0), (1e4, 1e-14, 1), (1e8, 1e-4, 0), (1e8, 1e-14, 1)]
)
def test_rows_are_read_again_only_where_sums_do_not_prove_the_errors(kappa, gamma, n_reads):
    H, T = problem(kappa, "strongest" if kappa < 1e6 else "every direction", 2.0)
    rows = Rows(H, T)
    solved = rows.solved(intercept=True)
    assert solved.route == ("gram" if kappa < 1e6 else "refined")
    assert are_proved(solved.folds, gamma, solved.route) == (n_reads == 0)
    rows.reads.clear()
    held_out_errors(solved, gamma, rows)
    assert len(rows.reads) == n_reads


@pytest.mark.parametrize("kappa", [1e4, 1e8])
def test_the_switch_is_where_the_bound_says(kappa):
    """On both sides of it the errors are right; the γ at which it lies is found by bisection."""
    H, T = problem(kappa, "strongest" if kappa < 1e6 else "every direction", 2.0)
    rows = Rows(H, T)
    solved = rows.solved(intercept=False)
    low, high = 1e-15, 1.0
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if are_proved(solved.folds, middle, solved.route) else (middle, high)
    for gamma in (low, high):
        exact, sizes = refitted(H, T, gamma, False)
        found = held_out_errors(solved, gamma, rows)
        assert (differences(found, exact) <= HELD_OUT_ERROR * sizes).all()


@pytest.mark.parametrize("intercept", [False, True])
def test_one_step_of_refinement_mends_factors_of_rows_in_single_precision(intercept):
    """Weights that are wrong by 10⁻⁵ give errors that are wrong by its square."""
    H, T = problem(3e2)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, N)
    rough = Rows(H.astype(np.float32).astype(float), T, weight, PLAN.of(H))
    folds = rough.solved(intercept=intercept).folds
    gamma = 1e-7
    exact, sizes = refitted(H, T, gamma, intercept, weight)
    plain = differences(folds.squared_errors(np.array([gamma]))[:, 0], exact)
    assert (plain > 1e-9 * sizes).all()
    found = from_rows(folds, gamma, Rows(H, T, weight))
    assert (differences(found, exact) <= 1e-11 * sizes).all()


@pytest.mark.parametrize("hostile", ["a fold with other targets", "a fold alone spans a direction", "an exact fit"])
def test_hostile_folds(hostile):
    H, T = problem(1e2)
    fold = PLAN.of(H)
    if hostile == "a fold with other targets":
        T = np.where((fold == 1)[:, None], 1e6 * T, T)
    elif hostile == "a fold alone spans a direction":
        column = fold == 2
        for _ in range(20):  # the column must not move its rows to another fold
            H = np.column_stack([1.0 * column, H[:, 1:]])
            column = column & (PLAN.of(H) == 2)
        H = np.column_stack([1.0 * column, H[:, 1:]])
    else:
        T = H @ np.ones((M, 1))
    rows = Rows(H, T)
    solved = rows.solved(intercept=False)
    for gamma in (1e-10, 1e-4):
        exact, sizes = refitted(H, T, gamma, False)
        found = held_out_errors(solved, gamma, rows)
        others = np.maximum(sizes, sizes.sum() * EPS**0.5)  # weights of huge targets predict the small ones
        assert (differences(found, exact) <= HELD_OUT_ERROR * np.maximum(others, [float(e) for e in exact])).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kappa", [1e4, 1e8])
def test_targets_with_gammas_of_their_own_have_the_errors_that_they_have_alone(kappa, intercept):
    H, t = problem(kappa, "strongest" if kappa < 1e6 else "every direction", 2.0)
    other = -t if kappa < 1e6 else t[::-1]  # in no weak direction either, so that products prove themselves
    T, gammas = np.hstack([t, 1e3 * other]), np.array([1e-14, 1e-4])
    rows = Rows(H, T)
    solved = rows.solved(intercept=intercept)
    found = np.stack(errors_from_rows(solved.folds, gammas, rows.encoded.rows, rows.encoded.encoder))
    proofs = []
    for q, gamma in enumerate(gammas):
        alone = Rows(H, T[:, [q]])
        folds = alone.solved(intercept=intercept).folds
        np.testing.assert_allclose(found[:, q], from_rows(folds, gamma, alone), rtol=1e-9)
        proofs.append(are_proved(folds, gamma, solved.route))
        both = np.full(2, gamma)
        assert are_proved(solved.folds, both, solved.route) <= proofs[-1]
    assert proofs == [False, True]
    assert not are_proved(solved.folds, gammas, solved.route)
    assert are_proved(solved.folds, np.array([1e-4, 1e-4]), solved.route)


@pytest.mark.parametrize("kappa", [1e4, 1e8])
def test_arrays_of_another_library_give_the_same(kappa):
    H, T = problem(kappa, "strongest", 2.0)
    here, there = Rows(H, T), Rows(on_device(H), on_device(T))
    errors = []
    for rows in (here, there):
        solved = rows.solved(intercept=True)
        assert not are_proved(solved.folds, 1e-13, solved.route)
        errors.append(from_rows(solved.folds, 1e-13, rows))
        assert len(rows.reads) == 2
    np.testing.assert_allclose(*errors, rtol=1e-10)


def test_a_fit_reports_the_error_at_its_gamma_and_rules_without_folds_none():
    H, T = problem(3e2)
    for rule in ("kfold", "ocrep_cv"):
        model = TikhonovRegressor(rule, store_folds=True).fit(H, T[:, 0])
        exact, _ = refitted(H, T, model.gamma_, True)
        assert model.choice_.held_out_error == pytest.approx(float(sum(exact)) / N, rel=1e-10)
        again = model.with_gamma(rule)
        assert again.choice_.held_out_error == pytest.approx(model.choice_.held_out_error, rel=1e-10)
    assert TikhonovRegressor("gcv").fit(H, T[:, 0]).choice_.held_out_error is None
    assert TikhonovRegressor("gcv", store_folds=True).fit(H, T[:, 0]).choice_.held_out_error is None
    alike = TikhonovRegressor(rules.KFold(grid=[1e-3])).fit(H, T)
    assert alike.choice_.held_out_error == pytest.approx(float(alike.choice_.curve.criterion[0]), rel=1e-10)
