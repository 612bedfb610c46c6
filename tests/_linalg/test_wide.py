"""Fewer rows than features: the answers of the tall formula, without a matrix of features × features."""

import itertools
import pickle
import tracemalloc
from functools import reduce

import mpmath
import numpy as np
import pytest
from support.advice import some_advice
from support.device import on_device, to_numpy
from support.folds import fold_numbers
from support.routes import factored

from ocrep import Factor, PinvRegressor, TikhonovClassifier, TikhonovRegressor, load_model, rules, save_model, scan
from ocrep._linalg.spectrum import variance_factor
from ocrep._linalg.wide import KERNEL_CONDITION

N, M, Q = 12, 27, 2
EPS = np.finfo(float).eps
KAPPA = {
    "well conditioned": 10.0,
    "just proved": 0.5 * KERNEL_CONDITION,
    "just not proved": 2.0 * KERNEL_CONDITION,
    "ill conditioned": 1e8,
    "duplicated rows": 10.0,
    "constant columns": 10.0,
    "far from zero": 10.0,
}
PROVED, PROVED_ABOUT_THE_MEAN = ("well conditioned", "just proved"), ("far from zero", "constant columns")
every_problem = pytest.mark.parametrize("name", KAPPA)
intercepts = pytest.mark.parametrize("intercept", [False, True])
weightings = pytest.mark.parametrize("weighted", [False, True])


def problem(name, n_rows=N, n_features=M):
    """H with σ₁ near 1 and the κ of its name, and T partly explained by it."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, n_rows)))[0] for n in (n_rows, n_features))
    H = (U * np.geomspace(1.0, 1.0 / KAPPA[name], n_rows)) @ V.T
    if name == "duplicated rows":
        H[1::2] = H[::2]
    T = H @ rng.standard_normal((n_features, Q)) + 0.1 * rng.standard_normal((n_rows, Q))
    if name == "constant columns":
        H[:, 5:9] = [0.0, 0.1, 1e6, 1e-9]
    if name == "far from zero":
        H = 2.0**-40 * np.round(2.0**40 * H) + 2.0**10
    return H, T


def weights_of(weighted, n_rows=N):
    w = np.random.default_rng(1).uniform(0.3, 3.0, n_rows)
    w[3] = 0.0
    return w if weighted else None


def tall(factor):
    """The same factor with R alone: the spectrum then comes from the SVD of R."""
    return Factor(factor.triangle, factor.counts)


def tall_folds(folds):
    """The same folds with the R of each alone."""
    return type(folds)(folds.plan, tuple(factor and tall(factor) for factor in folds.factors))


def gammas_of(H, intercept):
    C = H - H.mean(axis=0) if intercept else H
    return np.array([1e-6, 1e-3, 1.0]) * np.linalg.norm(C, 2) ** 2


def refit(H, T, gamma, intercept, w):
    """Weights and constant by least squares on the stacked system, in 50 digits."""
    with mpmath.workdps(50):
        w, W = mpmath.matrix(w.tolist()), mpmath.mpf(float(w.sum()))
        n, H, T = len(w), mpmath.matrix(H.tolist()), mpmath.matrix(T.tolist())
        means = []
        for A in (H, T):
            sums = [mpmath.fsum(w[i] * A[i, j] for i in range(n)) / W for j in range(A.cols)]
            means.append(mpmath.matrix([sums if intercept else [0] * A.cols]))
        one = mpmath.ones(n, 1)
        C, Z = H - one * means[0], T - one * means[1]
        K = C * C.T
        for i in range(n):
            K[i, i] += mpmath.mpf(gamma) / w[i]
        weights = C.T * mpmath.lu_solve(K, Z) if T.cols == 1 else C.T * (mpmath.inverse(K) * Z)
        return from_mpmath(weights), from_mpmath(means[1] - means[0] * weights)[0]


def from_mpmath(A):
    return np.array([[float(A[i, j]) for j in range(A.cols)] for i in range(A.rows)])


def in_blocks(H, T, w, merged):
    edges = [0, 5, 6, 11, len(H)] if merged else [0, len(H)]
    return [(H[a:b], T[a:b], None if w is None else w[a:b]) for a, b in itertools.pairwise(edges)]


@every_problem
@intercepts
@weightings
@pytest.mark.parametrize("merged", [False, True])
def test_spectrum_and_weights_equal_those_of_the_tall_formula(name, intercept, weighted, merged):
    H, T = problem(name)
    blocks = in_blocks(H, T, weights_of(weighted), merged)
    factor = reduce(Factor.merge, [Factor.fold([block], intercept=intercept) for block in blocks])
    assert factor.rows is not None
    wide, reference = factor.spectrum(), tall(factor).spectrum()
    assert wide.rank == reference.rank
    assert wide.right.__class__ is not reference.right.__class__
    assert wide.right.n_features == M
    kappa = float(reference.condition())
    size = reference.largest
    np.testing.assert_allclose(
        wide.sigma, reference.sigma, rtol=0, atol=100 * EPS * min(kappa, KERNEL_CONDITION) * size
    )
    np.testing.assert_allclose(wide.residual, reference.residual, atol=1e-10 * np.sum(T**2))
    np.testing.assert_allclose(wide.mean_H, reference.mean_H, rtol=1e-13, atol=1e-13)
    gammas = gammas_of(H, intercept)
    np.testing.assert_allclose(wide.rss(gammas), reference.rss(gammas), rtol=1e-9, atol=1e-10 * np.sum(T**2))
    np.testing.assert_allclose(wide.dof(gammas), reference.dof(gammas), rtol=1e-9)
    for gamma in gammas:
        expected = reference.weights(gamma)
        np.testing.assert_allclose(wide.weights(gamma), expected, atol=2e-10 * np.abs(expected).max())
        np.testing.assert_allclose(wide.intercept(gamma), reference.intercept(gamma), atol=1e-9 * np.abs(T).max())
    np.testing.assert_allclose(wide.weights(gammas), np.stack([wide.weights(g) for g in gammas]), rtol=1e-12)
    np.testing.assert_allclose(wide.Vt @ wide.Vt.T, np.eye(wide.rank), atol=1e-9)


@every_problem
@intercepts
@weightings
def test_held_out_errors_equal_refitting_without_each_fold_in_fifty_digits(name, intercept, weighted):
    H, T = problem(name)
    w = weights_of(weighted)
    folds = factored(H, T, w, intercept=intercept, n_folds=3).folds_
    w, fold = np.ones(N) if w is None else w, fold_numbers(H)
    for gamma in gammas_of(H, intercept):
        ours, spectra = folds.squared_errors(np.array([gamma]))[:, 0], folds.spectra
        for place, v in enumerate(folds.filled):  # a few distinct rows may leave a fold empty
            train, held = (fold != v) & (w > 0), (fold == v) & (w > 0)
            W, b = refit(H[train], T[train], gamma, intercept, w[train])
            exact = np.sum(w[held, None] * (T[held] - H[held] @ W - b) ** 2)
            assert abs(ours[place] - exact) <= 1e-10 * max(exact, np.sum(w[held, None] * T[held] ** 2))
            np.testing.assert_allclose(spectra[place].weights(gamma), W, atol=1e-9 * np.abs(W).max())


@every_problem
@intercepts
@weightings
def test_leave_one_out_equals_refitting_without_each_row_in_fifty_digits(name, intercept, weighted):
    H, T = problem(name)
    w = weights_of(weighted)
    gamma = gammas_of(H, intercept)[1]
    model = TikhonovRegressor(rules.LOO(grid=[gamma]), fit_intercept=intercept).fit(H, T, w)
    counted = np.ones(N) if w is None else w
    outputs = []
    for i in range(N):
        others = (np.arange(N) != i) & (counted > 0)
        W, b = refit(H[others], T[others], gamma, intercept, counted[others])
        outputs.append(H[i] @ W + b)
    exact = np.sum(counted[:, None] * (T - outputs) ** 2)
    assert model.choice_.curve.criterion[0] == pytest.approx(exact, rel=1e-9)


def test_leave_one_out_does_not_read_the_rows_again():
    """The left singular vectors are known."""
    H, T = problem("well conditioned")
    reads = []

    def read():
        reads.append(1)
        yield H, T

    counts = []
    for rule in ("gcv", "loo"):
        reads.clear()
        TikhonovRegressor(rule).fit(scan(read))
        counts.append(len(reads))
    assert counts[0] == counts[1]


@every_problem
@intercepts
def test_inner_products_are_used_only_where_they_prove_themselves(name, intercept):
    H, T = problem(name)
    factor = Factor.of(H, T, intercept=intercept)
    by_inner_products = factor.spectrum().right.rows is factor.rows
    # Without an intercept, an offset is one huge singular value, which hides the others.
    assert by_inner_products == (name in PROVED or (name in PROVED_ABOUT_THE_MEAN and intercept))


@pytest.mark.parametrize("rule", ["ocrep", "gcv", "loo", "kfold", "ocrep_cv"])
def test_every_rule_chooses_as_by_reflections(rule):
    H, T = problem("well conditioned")
    model, reference = (TikhonovRegressor(rule, solver=solver).fit(H, T) for solver in ("auto", "qr"))
    assert model.gamma_ == pytest.approx(reference.gamma_, rel=1e-9)


def features(dtype, kappa=1.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 9000))
    if kappa > 1.0:
        X = (np.linalg.qr(rng.standard_normal((120, 120)))[0] * np.geomspace(1.0, 1.0 / kappa, 120)) @ X
    return X.astype(dtype), rng.standard_normal(120)


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")  # the targets are noise
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", ["gcv", "loo", "kfold"])
def test_memory_is_at_most_three_times_the_features(rule, dtype):
    X, y = features(dtype)
    model = TikhonovRegressor(rule)
    model.fit(X[:20, :50], y[:20])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 3 * X.nbytes < 0.05 * 8 * X.shape[1] ** 2
    assert {block.dtype for block in model.factor_.rows.blocks} == {np.dtype(dtype)}


@pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")  # the targets are noise
@pytest.mark.parametrize("rule", ["gcv", "loo", "kfold"])
def test_memory_is_bounded_for_ill_conditioned_rows_too(rule):
    X, y = features(np.float64, kappa=1e7)
    tracemalloc.start()
    model = TikhonovRegressor(rule).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 3 * X.nbytes
    assert model.spectrum_.right.rows is not model.factor_.rows


@intercepts
@pytest.mark.parametrize("name", ["well conditioned", "ill conditioned"])
def test_float32_rows_count_as_the_float64_numbers_that_they_are(name, intercept):
    H, T = problem(name)
    single = H.astype(np.float32)
    w = weights_of(True)
    kept, converted = (factored(A, T, w, intercept=intercept, n_folds=3) for A in (single, single.astype(np.float64)))
    gammas = gammas_of(H, intercept)
    np.testing.assert_allclose(kept.folds_.squared_errors(gammas), converted.folds_.squared_errors(gammas), rtol=1e-9)
    a, b = kept.factor_.spectrum(), converted.factor_.spectrum()
    np.testing.assert_allclose(a.sigma, b.sigma, rtol=1e-10)
    np.testing.assert_allclose(a.weights(gammas[1]), b.weights(gammas[1]), rtol=1e-9, atol=1e-12)
    assert kept.factor_.triangle.R.dtype == np.float64
    np.testing.assert_allclose(kept.factor_.triangle.R, converted.factor_.triangle.R, atol=1e-13)


@intercepts
def test_rows_that_become_as_many_as_features_are_triangularized(intercept):
    H, T = np.random.default_rng(0).standard_normal((90, 40)), np.ones((90, 1))
    factor, seen = None, 0
    for height in (1, 1, 13, 20, 4, 1, 50):
        block = (H[seen : seen + height], T[seen : seen + height])
        factor = Factor.fold([block], intercept=intercept, start=factor)
        seen += height
        assert (factor.rows is not None) == (seen < 40)
        whole = Factor.of(H[:seen], T[:seen], intercept=intercept)
        np.testing.assert_allclose(factor.spectrum().sigma, whole.spectrum().sigma, rtol=1e-11)
    parts = [Factor.of(H[a:b], T[a:b], intercept=intercept) for a, b in ((0, 20), (20, 35), (35, 90))]
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        merged = reduce(Factor.merge, [parts[i] for i in order])
        assert merged.rows is None
        np.testing.assert_allclose(merged.spectrum().weights(0.1), whole.spectrum().weights(0.1), rtol=1e-10)


def test_many_small_blocks_are_joined():
    H, T = problem("well conditioned", 150, 400)
    rows = Factor.fold((H[i : i + 1], T[i : i + 1]) for i in range(150))
    assert rows.rows.n_rows == 150
    assert len(rows.rows.blocks) < 100
    np.testing.assert_allclose(rows.spectrum().weights(0.1), Factor.of(H, T).spectrum().weights(0.1), rtol=1e-10)


def test_rows_may_be_changed_after_they_were_factored():
    H, T = problem("well conditioned")
    X, y = H.copy(), T.copy()
    kept = [
        Factor.of(X, y),
        factored(X, y, n_folds=3).folds_.merged(),
        TikhonovRegressor("kfold").partial_fit(X, y).factor_,
    ]
    expected = [factor.spectrum().sigma for factor in kept]
    X[...], y[...] = 0.0, 0.0
    for factor, sigma in zip(kept, expected, strict=True):
        np.testing.assert_allclose(tall(factor).spectrum().sigma, sigma, rtol=1e-11)


@intercepts
@pytest.mark.parametrize("size", [3, N, N + 9, M])
def test_leading_features_and_selected_ones_equal_a_factor_of_theirs(size, intercept):
    H, T = problem("well conditioned")
    w = weights_of(True)
    factor = Factor.of(H, T, sample_weight=w, intercept=intercept)
    some = np.random.default_rng(0).permutation(M)[:size]
    for cut, own in ((factor.leading(size), H[:, :size]), (factor.select(some), H[:, some])):
        expected = Factor.of(own, T, sample_weight=w, intercept=intercept).spectrum()
        np.testing.assert_allclose(cut.spectrum().weights(0.1), expected.weights(0.1), rtol=1e-9, atol=1e-12)
    folds = factored(H, T, w, intercept=intercept, n_folds=3).folds_
    gammas = np.array([1e-3, 0.1])
    ours, reference = (some.leading(size).squared_errors(gammas) for some in (folds, tall_folds(folds)))
    np.testing.assert_allclose(ours, reference, rtol=1e-9)


@intercepts
@pytest.mark.parametrize("name", ["well conditioned", "ill conditioned"])
def test_errors_variances_and_means_equal_those_of_the_tall_formula(name, intercept):
    H, T = problem(name)
    factor = Factor.of(H, T, sample_weight=weights_of(True), intercept=intercept)
    reference = tall(factor)
    W, b = np.random.default_rng(0).standard_normal((3, M, Q)), np.ones((3, Q)) * intercept
    np.testing.assert_allclose(
        factor.squared_error_by_target(W, b), reference.squared_error_by_target(W, b), rtol=1e-11
    )
    np.testing.assert_allclose(factor.means(), reference.means(), atol=1e-14)
    np.testing.assert_allclose(factor.centred().R, reference.centred().R, atol=1e-14)
    new = np.random.default_rng(2).standard_normal((5, M))
    ours, expected = (variance_factor(f.spectrum(), new, 1e-3) for f in (factor, reference))
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


@intercepts
@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_rows_and_constant_rows_have_the_rank_that_they_should(n_rows, intercept):
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((n_rows, 7)), rng.standard_normal((n_rows, 1))
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    assert spectrum.rank == max(0, n_rows - intercept)
    assert np.isfinite(spectrum.weights(0.1)).all()
    same = np.tile(rng.standard_normal(7) * 1e3, (5, 1))
    assert Factor.of(same, np.arange(5.0), intercept=intercept).spectrum().rank == 1 - intercept
    assert Factor.of(0.0 * same, np.arange(5.0), intercept=intercept).spectrum().rank == 0


def test_identical_rows_in_all_other_folds_leave_only_the_mean():
    H = np.vstack([np.tile(np.linspace(1.0, 9.0, 12), (4, 1)), np.random.default_rng(0).standard_normal((3, 12))])
    model = TikhonovRegressor(rules.KFold(split="given", grid=[1e-12, 1.0]))
    folds = model.fit(H, np.arange(7.0), groups=[0, 0, 1, 1, 2, 2, 2]).folds_
    gammas = np.array([1e-12, 1.0])
    np.testing.assert_allclose(folds.squared_errors(gammas), tall_folds(folds).squared_errors(gammas), rtol=1e-9)


def test_too_large_numbers_are_refused_with_a_reason():
    with pytest.raises(ValueError, match="overflow"):
        Factor.of(np.full((3, 8), 1e308), np.ones(3))
    with pytest.raises(ValueError, match="NaN or infinity"):
        Factor.of(np.full((3, 8), np.nan), np.ones(3))


def test_small_numbers_keep_their_digits():
    H, T = problem("well conditioned")
    small = Factor.of(1e-160 * H, T).spectrum()
    np.testing.assert_allclose(small.sigma, 1e-160 * Factor.of(H, T).spectrum().sigma, rtol=1e-11)


def test_the_gram_solver_says_that_it_cannot_before_it_forms_features_times_features():
    X, y = features(np.float64)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"solver='gram' cannot promise.*120 rows.*solver='auto'"):
        TikhonovRegressor(solver="gram").fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes


@some_advice
@intercepts
@pytest.mark.parametrize("name", ["well conditioned", "ill conditioned"])
def test_other_array_libraries_give_the_same_answers(name, intercept):
    H, T = problem(name)
    rows = (H, T, weights_of(True))
    ours, theirs = (factored(*some, intercept=intercept, n_folds=3) for some in (rows, map(on_device, rows)))
    gammas = gammas_of(H, intercept)
    expected, found = ours.folds_.squared_errors(gammas), to_numpy(theirs.folds_.squared_errors(on_device(gammas)))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    a, b = ours.spectrum_, theirs.spectrum_
    np.testing.assert_allclose(to_numpy(b.weights(on_device(gammas))), a.weights(gammas), rtol=1e-8, atol=1e-12)
    rule = rules.LOO(grid=list(gammas))
    criteria = [
        TikhonovRegressor(rule, fit_intercept=intercept).fit(*some).choice_.curve.criterion
        for some in (rows, map(on_device, rows))
    ]
    np.testing.assert_allclose(to_numpy(criteria[1]), criteria[0], rtol=1e-9)
    cut = [model.folds_.merged().leading(M - 3).spectrum().sigma for model in (ours, theirs)]
    np.testing.assert_allclose(to_numpy(cut[1]), cut[0], rtol=1e-7)


@pytest.mark.parametrize("name", ["well conditioned", "ill conditioned"])
def test_models_of_wide_rows_are_saved_and_loaded(name, tmp_path):
    H, T = problem(name)
    for model in (TikhonovRegressor("kfold"), TikhonovRegressor("loo", store_folds=True)):
        model.fit(H, T)
        save_model(model, tmp_path / "model.skops")
        for copy in (load_model(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(copy.predict(H), model.predict(H))
            np.testing.assert_allclose(copy.spectrum_.weights(0.1), model.spectrum_.weights(0.1), rtol=1e-12)
            np.testing.assert_allclose(copy.factor_.triangle.R, model.factor_.triangle.R, rtol=1e-12)


@pytest.mark.parametrize("rule", ["ocrep", "gcv", "loo", "kfold", "ocrep_cv"])
def test_networks_with_more_units_than_rows_choose_as_by_the_tall_formula(rule):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(60)
    model = PinvRegressor(100, gamma=rule, random_state=0).fit(X, y)
    assert model.factor_.rows is not None
    spectrum = tall(model.factor_).spectrum()
    assert model.spectrum_.rank == spectrum.rank
    np.testing.assert_allclose(model.spectrum_.weights(model.gamma_)[:, 0], model.output_coef_, rtol=1e-12)
    expected = spectrum.weights(model.gamma_)[:, 0]
    np.testing.assert_allclose(model.output_coef_, expected, atol=1e-6 * np.abs(expected).max())


def test_classes_are_learned_from_fewer_rows_than_features():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 15)
    X = rng.standard_normal((45, 300)) + 3.0 * np.eye(300)[labels]
    for rule in ("loo", "kfold"):
        assert TikhonovClassifier(rule).fit(X, labels).score(X, labels) == 1.0
