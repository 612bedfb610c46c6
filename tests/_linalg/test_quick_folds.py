"""Held-out errors through eigenvalues: as good as promised, refined to the exact ones, and not used where they fail."""

import numpy as np
import pytest
from support.device import on_device
from support.encoded import encoded_rows, fold_factors
from support.problems import numbers_of, random_problem, with_condition

from ocrep import Factor, rules
from ocrep._linalg import fold_factors as module
from ocrep._linalg.fold_factors import FoldFactors, quick_folds
from ocrep._linalg.folds import FoldPlan
from ocrep.rules.cross_validation import are_confirmed

EPS = np.finfo(float).eps
SHAPES = {"tall": (160, 10), "training wide": (60, 50), "wide": (45, 60), "folds of both kinds": (100, 35)}


def folds_of(H, T, *, intercept=True, weight=None, plan=FoldPlan()):  # noqa: B008 - frozen
    return fold_factors(encoded_rows(H, T, weight, fold=plan.of(numbers_of(H))), plan, intercept=intercept)


def problem(shape, n_targets=2, kappa=None):
    n, m = SHAPES[shape]
    H, T = random_problem(n, m, n_targets)
    if kappa is not None:
        H = with_condition(kappa, n, m) if n >= m else with_condition(kappa, m, n).T
    return 7.0 * H + 3.0, T + 100.0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_and_output_layers_are_those_of_the_exact_folds(shape, weighted, intercept):
    H, T = problem(shape)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, len(H)) if weighted else None
    folds = folds_of(H, T, intercept=intercept, weight=weight)
    quick, gammas = quick_folds(folds), np.logspace(-3, 6, 10)
    np.testing.assert_allclose(quick.squared_errors(gammas), folds.squared_errors(gammas), rtol=1e-8)
    for gamma in gammas:
        refined = quick.refined(gamma)
        exact = folds.squared_errors(np.array([gamma]))[:, 0]
        np.testing.assert_allclose([errors.sum() for _, _, errors in refined], exact, rtol=1e-11)
        for (W, b, _), spectrum in zip(refined, folds.spectra, strict=True):
            np.testing.assert_allclose(W, spectrum.weights(gamma), rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(b, spectrum.intercept(gamma), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_refinement_gives_back_what_squaring_lost(shape):
    H, T = problem(shape, kappa=1e9)
    folds, unit = folds_of(H, T), np.linalg.norm(H - H.mean(axis=0), 2) ** 2
    quick = quick_folds(folds)
    for share in (1e-4, 1e-7, 1e-9):
        gamma = np.array([share * unit])
        exact = folds.squared_errors(gamma)[:, 0]
        lost = np.abs(quick.squared_errors(gamma)[:, 0] / exact - 1.0)
        left = np.abs(np.array([errors.sum() for _, _, errors in quick.refined(gamma[0])]) / exact - 1.0)
        assert np.all(lost <= 100 * EPS / share)
        assert np.all(left <= max(1e-12, 1e3 * EPS / share**0.5))
        assert quick.confirms(gamma) == [True]


def test_errors_that_cannot_be_trusted_are_not_confirmed():
    H, T = problem("tall", kappa=1e12)
    quick, unit = quick_folds(folds_of(H, T)), np.linalg.norm(H - H.mean(axis=0), 2) ** 2
    assert not quick.confirms(np.array([EPS * unit])).any()
    assert not quick.confirms(np.zeros(1)).any()
    assert quick.confirms(np.array([0.0, unit])).tolist() == [False, True]  # each target by itself
    exact_fit = quick_folds(folds_of(H, H @ np.ones((H.shape[1], 1))))
    assert not exact_fit.confirms(np.array([1e-9 * unit])).any()  # the error itself is of the size of rounding


@pytest.mark.parametrize("rule", [rules.KFold(), rules.OCRePCV(), rules.KFold(grid=[1e-3, 1.0, 1e3])])
@pytest.mark.parametrize("kappa", [10.0, 1e6, 1e13])
@pytest.mark.parametrize("shape", SHAPES)
def test_rules_choose_as_by_exact_folds(shape, kappa, rule, monkeypatch):
    H, T = problem(shape, kappa=kappa)
    for noise in (0.0, 1e-6, 1.0):
        targets = H @ np.cos(np.arange(2.0 * H.shape[1])).reshape(-1, 2) + noise * T
        folds = folds_of(H, targets)
        found = rule.choose(folds.merged().spectrum(), folds=folds).gamma
        with monkeypatch.context() as patch:
            patch.setattr("ocrep.rules.cross_validation.quick_folds", lambda folds: None)
            wanted = rule.choose(folds.merged().spectrum(), folds=folds_of(H, targets)).gamma
        errors = folds_of(H, targets).squared_errors(np.array([found, wanted])).sum(axis=0)
        assert errors[0] == pytest.approx(errors[1], rel=1e-9, abs=0.0)
        if noise == 1.0:  # without noise the error is flat
            assert found == pytest.approx(wanted, rel=1e-6, abs=0.0)


@pytest.mark.parametrize("kappa", [1e3, 1e5])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_rough_spectrum_has_the_ends_of_the_exact_one(shape, kappa):
    H, T = problem(shape, kappa=kappa)
    folds = folds_of(H, T)
    (rough, certain_from), exact = quick_folds(folds).rough_spectrum(), folds.merged().spectrum()
    assert rough.rank == exact.rank
    assert rough.largest == pytest.approx(exact.largest, rel=1e-12)
    assert rough.smallest == pytest.approx(exact.smallest, rel=1e-6)
    assert certain_from == 0.0


def test_what_a_rough_spectrum_lost_is_told():
    H, T = problem("tall", kappa=1e12)
    lost, certain_from = quick_folds(folds_of(H, T)).rough_spectrum()
    assert lost.smallest < 1e-13 * lost.largest
    assert 1e-9 < certain_from / lost.largest**2 < 1e-6
    # A column twice: what was lost is zero, and the least singular value that counts is far above it.
    H, T = problem("tall")
    twice, certain_from = quick_folds(folds_of(np.hstack([H, H[:, :1]]), T)).rough_spectrum()
    assert certain_from == pytest.approx(twice.largest * twice.sigma[-2])
    assert quick_folds(folds_of(0.0 * H, T)).rough_spectrum() is None


def test_a_doubtful_least_singular_value_is_told():
    H, T = problem("tall", kappa=2e6)
    rough, certain_from = quick_folds(folds_of(H, T)).rough_spectrum()
    assert certain_from == pytest.approx(2.0 * rough.largest * rough.smallest)


def test_the_vectors_of_a_rough_spectrum_are_not_numbers():
    H, T = problem("tall")
    spectrum, _ = quick_folds(folds_of(H, T)).rough_spectrum()
    assert spectrum.right.n_features == H.shape[1]
    assert np.isnan(spectrum.weights(1.0)).all()
    assert np.isnan(spectrum.right.coordinates(H)).all()


def test_where_folds_stay_exact(monkeypatch):
    H, T = problem("tall")
    folds = folds_of(H, T)
    quick = quick_folds(folds)
    assert quick_folds(quick) is quick
    assert quick.exact is folds
    _ = folds.spectra
    assert quick_folds(folds) is None  # they are known already
    assert quick_folds(folds_of(H[:1], T[:1])) is None
    parts = tuple(Factor.of(on_device(H[v::3]), on_device(T[v::3]), intercept=True) for v in range(3))
    assert quick_folds(FoldFactors(FoldPlan(), parts, len(H))) is None
    wide = np.random.default_rng(0).standard_normal((60, 5000))
    assert quick_folds(folds_of(wide, T[:60])) is None
    monkeypatch.setattr(module, "_MOST_ENTRIES", 100)
    assert quick_folds(folds_of(H, T)) is None


def test_a_choice_without_a_curve_needs_no_confirmation():
    H, T = problem("tall")
    quick = quick_folds(folds_of(0.0 * H, T))
    assert are_confirmed(rules.Choice("kfold", 0.0), quick).all()
