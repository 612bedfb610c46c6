"""Exact cross-validation against brute force: every fold, every row, really left out and refitted."""

import dataclasses
import functools
import itertools
import pickle

import mpmath
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_swiss_roll
from sklearn.linear_model import RidgeCV
from support.encoded import encoded_rows, fold_factors
from support.problems import augmented_solution, choose, evidence, numbers_of, random_problem, with_condition

from ocrep import Factor, PinvRegressor, RandomLayer, rules
from ocrep._linalg.fold_factors import FoldFactors
from ocrep._linalg.folds import FoldPlan
from ocrep._linalg.leave_one_out import left_out_outputs, press
from ocrep._training.recipe import plan_of
from ocrep.rules.cross_validation import HeldOutErrors, fold_errors, misclassified

EPS = np.finfo(float).eps
intercepts = pytest.mark.parametrize("intercept", [False, True])
weightings = pytest.mark.parametrize("weighted", [False, True])


def mean_squared_error(folds, gammas):
    """Over all rows and targets, each row held out once."""
    return HeldOutErrors(folds, per_target=False).mean(gammas[:, None])[:, 0]


def problem(name, n_targets=2):
    """H and T: tall, with more units than rows in a training part, or ill conditioned."""
    rng = np.random.default_rng(0)
    H = {
        "tall": lambda: rng.standard_normal((40, 6)),
        "wide": lambda: rng.standard_normal((20, 30)),
        "ill conditioned": lambda: with_condition(1e6, 40, 8),
    }[name]()
    T = H @ rng.standard_normal((H.shape[1], n_targets)) + rng.standard_normal((len(H), n_targets))
    return H, T


problems = pytest.mark.parametrize("name", ["tall", "wide", "ill conditioned"])


def refit(H, T, gamma, intercept, weight):
    """Weights and constant of a fit by the augmented least-squares problem."""
    root = np.sqrt(weight)[:, None]
    mean_H = np.average(H, axis=0, weights=weight) if intercept else 0.0
    mean_T = np.average(T, axis=0, weights=weight) if intercept else 0.0
    W = augmented_solution(root * (H - mean_H), root * (T - mean_T), gamma)
    return W, mean_T - mean_H @ W if intercept else np.zeros(T.shape[1])


def gammas_of(H):
    """γ relative to σ₁², from the precision floor up, and the tolerance that belongs to each."""
    first = np.linalg.norm(H, 2) ** 2
    kappa = np.linalg.cond(H)
    above = np.array([np.sqrt(EPS), 1e-6, 1e-3, 1e-1, 10.0]) * first
    below = np.array([1e-9, 1e-10]) * first
    return np.r_[above, below], np.r_[np.full(5, 1e-10), np.full(2, max(1e-10, 100 * EPS * kappa))]


@problems
@intercepts
@weightings
def test_kfold_equals_refitting_every_fold(name, intercept, weighted):
    H, T = problem(name)
    w = np.random.default_rng(1).uniform(0.2, 3, len(H)) if weighted else np.ones(len(H))
    _, more = evidence(H, T, rules.KFold(), intercept=intercept, sample_weight=w if weighted else None, block=7)
    gammas, tolerances = gammas_of(H)
    exact = mean_squared_error(more["folds"], gammas)
    fold = FoldPlan().of(numbers_of(H))
    for gamma, value, tolerance in zip(gammas, exact, tolerances, strict=True):
        lost = 0.0
        for v in range(3):
            train, held = fold != v, fold == v
            W, b = refit(H[train], T[train], gamma, intercept, w[train])
            lost += np.sum(w[held, None] * (T[held] - H[held] @ W - b) ** 2)
        assert value == pytest.approx(lost / w.sum() / T.shape[1], rel=tolerance)


@problems
@intercepts
@weightings
def test_leave_one_out_equals_n_refits(name, intercept, weighted):
    H, T = problem(name)
    w = np.random.default_rng(1).uniform(0.2, 3, len(H)) if weighted else np.ones(len(H))
    spectrum, more = evidence(H, T, rules.LOO(), intercept=intercept, sample_weight=w if weighted else None, block=7)
    gammas, tolerances = gammas_of(H)
    exact = press(spectrum, more["rows"], gammas)
    for gamma, value, tolerance in zip(gammas, exact, tolerances, strict=True):
        outputs = np.empty_like(T)
        for i in range(len(H)):
            others = np.arange(len(H)) != i
            W, b = refit(H[others], T[others], gamma, intercept, w[others])
            outputs[i] = H[i] @ W + b
        assert value == pytest.approx(np.sum(w[:, None] * (T - outputs) ** 2), rel=tolerance)
        ours = np.concatenate([output for output, _, _ in left_out_outputs(spectrum, more["rows"], gamma)])
        np.testing.assert_allclose(ours, outputs, rtol=1e3 * tolerance, atol=1e3 * tolerance * np.abs(T).max())


def test_rows_of_zero_weight_are_predicted_as_new_rows():
    H, T = problem("tall")
    w = np.r_[np.ones(30), np.zeros(10)]
    spectrum, more = evidence(H, T, rules.LOO(), sample_weight=w, intercept=True)
    ours = np.concatenate([output for output, _, _ in left_out_outputs(spectrum, more["rows"], 0.3)])[30:]
    W, b = refit(H[:30], T[:30], 0.3, True, np.ones(30))
    np.testing.assert_allclose(ours, H[30:] @ W + b, rtol=1e-10)


def in_fifty_digits(H, T, gamma, intercept):
    """GCV and evidence by their N × N definitions, where float64 would lose the digits that are to be judged."""
    with mpmath.workdps(50):
        n, Q = T.shape
        H, T = mpmath.matrix(H.tolist()), mpmath.matrix(T.tolist())
        if intercept:
            C = mpmath.eye(n) - mpmath.ones(n) / n
            H, T = C * H, C * T
        # I − A(γ) = (I + HHᵀ/γ)⁻¹; the constant, if fitted, is one more direction without residual.
        left = (mpmath.eye(n) + H * H.T / mpmath.mpf(gamma)) ** -1
        residual = left * T
        rss = sum(residual[i, q] ** 2 for i in range(n) for q in range(Q))
        trace = sum(left[i, i] for i in range(n)) - int(intercept)
        sums = [sum(T[i, q] * residual[i, q] for i in range(n)) for q in range(Q)]
        log_s2 = sum(mpmath.log(value) for value in sums) / Q
        evidence = (n - int(intercept)) * log_s2 - mpmath.log(mpmath.det(left))
        return float(n * rss / trace**2), float(evidence)


@problems
@intercepts
def test_gcv_and_evidence_equal_their_definitions(name, intercept):
    H, T = problem(name)
    H, T = H[:18], T[:18]
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    gammas, tolerances = gammas_of(H)
    gcv, evidence = (r.criterion(spectrum, gammas) for r in (rules.GCV(), rules.MarginalLikelihood()))
    for k, (gamma, tolerance) in enumerate(zip(gammas, tolerances, strict=True)):
        exact_gcv, exact_evidence = in_fifty_digits(H, T, gamma, intercept)
        assert gcv[k] == pytest.approx(exact_gcv, rel=tolerance)
        assert evidence[k] == pytest.approx(exact_evidence, rel=tolerance)


def test_evidence_with_an_intercept_is_the_restricted_likelihood():
    H, T = problem("tall", n_targets=1)
    n = len(H)
    spectrum = Factor.of(H, T, intercept=True).spectrum()
    # Contrasts orthogonal to the constant: the data without their mean, in n − 1 dimensions.
    K = np.linalg.svd(np.eye(n) - 1 / n)[0][:, : n - 1].T
    for gamma in (0.1, 3.0):
        covariance = K @ (np.eye(n) + H @ H.T / gamma) @ K.T
        z = K @ T[:, 0]
        direct = (n - 1) * np.log(z @ np.linalg.solve(covariance, z)) + np.linalg.slogdet(covariance)[1]
        assert rules.MarginalLikelihood().criterion(spectrum, np.array([gamma]))[0] == pytest.approx(direct, rel=1e-10)


@intercepts
def test_leave_one_out_agrees_with_ridge_cv(intercept):
    H, T = problem("tall", n_targets=1)
    T += 3 * np.random.default_rng(4).standard_normal(T.shape)
    grid = tuple(np.logspace(-3, 3, 25))
    theirs = RidgeCV(alphas=grid, fit_intercept=intercept, store_cv_results=True).fit(H, T[:, 0])
    ours = choose(rules.LOO(grid=grid), H, T, intercept=intercept)
    assert ours.gamma == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.curve.criterion, theirs.cv_results_.sum(axis=0), rtol=1e-9)


def test_the_refined_leave_one_out_is_better_than_its_grid():
    H, T = problem("tall", n_targets=1)
    T += 3 * np.random.default_rng(4).standard_normal(T.shape)
    spectrum, more = evidence(H, T, rules.LOO())
    choice = rules.LOO().choose(spectrum, **more)
    fine = choice.gamma * np.logspace(-0.2, 0.2, 401)
    best = fine[np.argmin(press(spectrum, more["rows"], fine))]
    assert choice.edge is None
    assert choice.gamma == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize("n_classes", [2, 3])
@weightings
def test_misclassified_rows_equal_refitting_and_counting(n_classes, weighted):
    H, _ = problem("tall")
    rng = np.random.default_rng(2)
    labels = rng.integers(0, n_classes, len(H))
    T = np.where(labels[:, None] == (np.arange(n_classes) if n_classes > 2 else [1]), 1.0, -1.0)
    w = rng.uniform(0.2, 3, len(H)) if weighted else np.ones(len(H))
    rule = rules.KFold(scoring="error", n_folds=4, seed=9)
    _, more = evidence(H, T, rule, intercept=True, sample_weight=w if weighted else None, labels=True)
    gammas = np.array([1e-3, 1.0, 100.0])
    fold = rule.folds.of(numbers_of(H))
    for gamma, value in zip(gammas, misclassified(more["folds"], more["rows"], gammas), strict=True):
        wrong = 0.0
        for v in range(4):
            train, held = fold != v, fold == v
            W, b = refit(H[train], T[train], gamma, True, w[train])
            scores = H[held] @ W + b
            predicted = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
            wrong += w[held] @ (predicted != labels[held])
        assert value == pytest.approx(wrong / w.sum(), rel=1e-12)


def test_scoring_by_error_is_for_labels():
    with pytest.raises(rules.NotApplicable, match="regression"):
        choose(rules.KFold(scoring="error"), *problem("tall"))


def test_ocrep_cv_is_the_best_conditioned_of_the_admissible_gammas():
    for seed in range(5):
        H, T = random_problem(80, 10, seed=seed)
        T += 2 * np.random.default_rng(seed).standard_normal(T.shape)
        rule = rules.OCRePCV(n_folds=5)
        spectrum, more = evidence(H, T, rule)
        choice = rule.choose(spectrum, **more)
        best = choose(rules.KFold(n_folds=5), H, T)
        candidates = np.r_[best.gamma, choice.gamma, choice.curve.gammas]
        differences = fold_errors(more["folds"], candidates)
        differences = differences - differences[:, :1]
        within = differences.mean(axis=0) <= differences.std(axis=0, ddof=1) / np.sqrt(5)
        assert within[1]
        assert spectrum.condition(choice.gamma) <= np.min(spectrum.condition(candidates[within])) * (1 + 1e-12)
        assert spectrum.condition(choice.gamma) <= spectrum.condition(best.gamma)


def test_ocrep_cv_lies_between_ocrep_and_cross_validation():
    H, T = random_problem(200, 10)
    own, both, validated = (choose(r, H, T).gamma for r in (rules.OCReP(), rules.OCRePCV(), rules.KFold()))
    assert min(own, validated) <= both <= max(own, validated)


# --- folds ---------------------------------------------------------------------------------------------------


def test_folds_of_rows_without_weight_still_tell_that_there_were_rows():
    H, T = problem("tall")
    folds = fold_factors(encoded_rows(H, T, np.zeros(len(H))), FoldPlan(), intercept=True)
    assert folds.filled == ()
    assert folds.merged().counts.n_seen > 0
    assert folds.merged().counts.weight_sum == 0.0


def test_blocks_and_order_of_merging_do_not_matter():
    H, T = problem("tall")
    whole = fold_factors(encoded_rows(H, T), FoldPlan(), intercept=True)
    cuts = itertools.pairwise([0, 3, 4, 25, 40])
    each = [fold_factors(encoded_rows(H[a:b], T[a:b]), FoldPlan(), intercept=True) for a, b in cuts]
    parts = functools.reduce(FoldFactors.merge, each)
    gammas = np.array([1e-4, 1.0])
    np.testing.assert_allclose(mean_squared_error(parts, gammas), mean_squared_error(whole, gammas), rtol=1e-11)
    np.testing.assert_allclose(
        parts.merged().spectrum().sigma, Factor.of(H, T, intercept=True).spectrum().sigma, rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["numbers in order", "uniform", "few values", "float32"])
def test_folds_are_balanced_seeded_and_do_not_follow_the_order_of_rows(kind):
    rng = np.random.default_rng(0)
    X = {
        "numbers in order": np.arange(100_000.0)[:, None],
        "uniform": rng.uniform(size=(100_000, 3)),
        "few values": rng.integers(0, 3, size=(100_000, 20)).astype(float),
        "float32": rng.uniform(size=(100_000, 2)).astype(np.float32),
    }[kind]
    plan = FoldPlan(n_folds=5)
    folds = plan.of(X)
    counts = np.bincount(folds, minlength=5)
    assert np.abs(counts - 20_000).max() < 5 * np.sqrt(20_000)
    # Any run of 100 rows, such as one class in a sorted table, reaches every fold.
    assert all(len(set(folds[a : a + 100])) == 5 for a in range(0, 100_000, 100))
    np.testing.assert_array_equal(plan.of(X[70:100]), folds[70:100])
    assert np.mean(FoldPlan(5, seed=1).of(X) == folds) == pytest.approx(0.2, abs=0.01)
    pairs = np.bincount(5 * folds[:-1] + folds[1:], minlength=25)
    assert np.abs(pairs - 4000).max() < 5 * np.sqrt(4000)


def test_a_fold_depends_on_the_values_of_a_row_and_on_nothing_else():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 7)) * (rng.uniform(size=(500, 7)) < 0.4)
    plan = FoldPlan(4, seed=3)
    expected, order = plan.of(X), rng.permutation(500)
    np.testing.assert_array_equal(plan.of(X[order]), expected[order])
    np.testing.assert_array_equal(plan.of(np.where(X == 0.0, -0.0, X)), expected)
    np.testing.assert_array_equal(plan.of(sparse.csr_array(X)), expected)
    np.testing.assert_array_equal(plan.of(np.asfortranarray(X)), expected)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(plan.of(single), plan.of(single.astype(np.float64)))
    assert np.mean(plan.of(X[:, ::-1]) == expected) < 0.5


def test_rows_that_are_too_few_to_choose_a_size_are_told_in_words_of_the_user():
    X, y = np.ones((4, 2)), np.arange(4.0)
    with pytest.raises(ValueError, match=r"4 sample.* too few or too alike for 3 folds: .* a number as n_hidden"):
        PinvRegressor("auto", gamma="gcv", random_state=0).fit(X, y)


def test_the_meaning_of_store_folds():
    assert plan_of(False) is None
    assert plan_of(0) is None
    assert plan_of(True) == FoldPlan(3)
    assert plan_of(7) == FoldPlan(7)
    with pytest.raises(ValueError, match="must be a whole number ≥ 2"):
        plan_of(FoldPlan(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FoldPlan(1), "n_folds=1"),
        (lambda: rules.KFold(n_folds=1), "n_folds=1"),
        (lambda: rules.KFold(scoring="accuracy"), "'squared' or 'error'"),
        (lambda: rules.KFold(grid="papr"), "Did you mean|Known"),
        (lambda: rules.KFold(grid=[]), "at least one"),
        (lambda: rules.LOO(grid=[1.0, -1.0]), "finite and > 0; got"),
        (lambda: rules.OCRePCV(n_folds=0), "n_folds=0"),
        (lambda: rules.Discrepancy(noise=-1.0), "standard deviation"),
        (lambda: rules.Discrepancy(noise="a"), "standard deviation"),
        (lambda: rules.KFold(seed="a"), "seed='a'"),
        (lambda: rules.KFold(grid=["a"]), "finite and > 0"),
        (lambda: rules.OCReP(floor=True), "floor must be"),
    ],
)
def test_bad_options_raise_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("rule", [rules.KFold(), rules.OCRePCV(n_folds=4)])
def test_too_few_rows_for_folds_are_judged_by_gcv_with_a_warning(rule):
    H, T = problem("tall")
    one = np.repeat(H[:1], 5, axis=0), np.repeat(T[:1], 5, axis=0)  # duplicates share a fold
    folds = fold_factors(encoded_rows(*one), rule.folds, intercept=False)
    spectrum = Factor.of(*one).spectrum()
    with pytest.warns(UserWarning, match=r"5 sample\(s\) are too few or too alike: gamma='gcv' was used"):
        choice = rule.choose(spectrum, folds=folds)
    expected = rules.GCV().choose(spectrum)
    assert (choice.rule, choice.gamma) == ("gcv", expected.gamma)


def test_what_a_rule_lacks_is_named_with_the_argument_to_change():
    H, T = problem("tall")
    spectrum = Factor.of(H, T).spectrum()
    folds = fold_factors(encoded_rows(H, T), FoldPlan(3), intercept=False)
    cases = [
        (rules.KFold(), {}, "store_folds=True"),
        (rules.OCRePCV(), {}, "store_folds=True"),
        (rules.LOO(), {}, r"call fit with gamma=LOO\("),
        (rules.KFold(scoring="error"), {"folds": folds}, "reads the rows"),
        (rules.KFold(n_folds=5), {"folds": folds}, "n_folds=5.*n_folds=3"),
        (rules.Discrepancy(), {}, "noise="),
    ]
    for rule, more, message in cases:
        with pytest.raises(rules.NotApplicable, match=message):
            rule.choose(spectrum, **more)


def test_a_named_grid_is_searched_as_it_is():
    H, T = problem("tall")
    choice = choose(rules.KFold(grid="ocrep_paper", floor=0.0), H, T)
    assert choice.gamma in rules.GRIDS["ocrep_paper"]
    assert rules.KFold(grid="elm").degree is None
    assert rules.LOO(grid="relm").degree is None
    for options, floor in (({}, EPS), ({"floor": "precision"}, np.sqrt(EPS)), ({"floor": "rounding"}, EPS)):
        floored = choose(rules.KFold(grid=[1e-30], **options), H, T)
        assert floored.floored
        assert floored.gamma == pytest.approx(floor * np.linalg.norm(H, 2) ** 2)


@pytest.mark.parametrize("rule", [rules.KFold(), rules.LOO(), rules.OCRePCV()], ids=lambda rule: rule.name)
def test_the_floor_does_not_hide_a_smooth_function(rule):
    X, t = make_swiss_roll(700, random_state=0)
    layer = RandomLayer(200, random_state=0).fit(X)
    H, T = layer.transform(X), np.sin(t)[:, None]
    fitted = {}
    for floor in ("precision", "rounding"):
        spectrum = Factor.of(H[:500], T[:500]).spectrum()
        gamma = choose(dataclasses.replace(rule, floor=floor), H[:500], T[:500]).gamma
        fitted[floor] = np.sqrt(np.mean((H[500:] @ spectrum.weights(gamma) - T[500:]) ** 2))
    assert fitted["rounding"] < 0.2 * fitted["precision"]


@pytest.mark.parametrize("gamma", [0.0, 1e-28, 1e-20, 1e-12])
@intercepts
def test_a_row_that_alone_decides_a_direction_is_left_out_exactly(gamma, intercept):
    rng = np.random.default_rng(0)
    H = rng.standard_normal((40, 4))
    H[:, 0] = 0.0
    H[7, 0] = 1.0
    T = rng.standard_normal((40, 2))
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    rows = encoded_rows(H, T)
    lost = 0.0
    for i in range(40):
        others = np.arange(40) != i
        # Without row 7 its column is constant: the solution of least norm gives it no weight, as γ → 0 does.
        centre_H, centre_T = (H[others].mean(0), T[others].mean(0)) if intercept else (0.0, 0.0)
        W = np.linalg.pinv(H[others] - centre_H) @ (T[others] - centre_T)
        lost += np.sum((T[i] - centre_T - (H[i] - centre_H) @ W) ** 2)
    assert press(spectrum, rows, np.array([gamma]))[0] == pytest.approx(lost, rel=1e-8)


def test_leaving_out_at_no_regularization_is_the_limit_with_more_units_than_rows():
    H, T = problem("wide")
    spectrum, more = evidence(H, T, rules.LOO())
    outputs = np.concatenate([output for output, _, _ in left_out_outputs(spectrum, more["rows"], 0.0)])
    for i in range(len(H)):
        others = np.arange(len(H)) != i
        np.testing.assert_allclose(outputs[i], H[i] @ np.linalg.pinv(H[others]) @ T[others], rtol=1e-8)


def test_gammas_in_pieces_give_the_same_answers(monkeypatch):
    H, T = problem("tall")
    spectrum, more = evidence(H, T, rules.KFold(scoring="error"), labels=True)
    fold = FoldPlan().of(numbers_of(H))
    codes = encoded_rows(H, np.sign(T), fold=fold, labels=True)
    gammas = np.logspace(-6, 2, 23)

    def answers():
        return (
            press(spectrum, more["rows"], gammas),
            mean_squared_error(more["folds"], gammas),
            misclassified(more["folds"], codes, gammas),
        )

    whole = answers()
    monkeypatch.setattr("ocrep._linalg.parallel.BLOCK_ENTRIES", 50)
    for ours, expected in zip(answers(), whole, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_copies_of_folds_do_not_copy_their_caches():
    H, T = problem("tall")
    folds = fold_factors(encoded_rows(H, T), FoldPlan(), intercept=True)
    gammas = np.array([0.1])
    before = mean_squared_error(folds, gammas)
    again = pickle.loads(pickle.dumps(folds))
    assert set(vars(again)) == {field.name for field in dataclasses.fields(folds)}
    np.testing.assert_array_equal(mean_squared_error(again, gammas), before)


def test_a_fold_without_weight_is_not_held_out():
    H, T = problem("tall")
    fold = FoldPlan().of(numbers_of(H))
    w = np.where(fold == 1, 0.0, 1.0)
    _, more = evidence(H, T, rules.KFold(), sample_weight=w, intercept=True)
    assert more["folds"].filled == (0, 2)
    lost = 0.0
    for v, other in ((0, 2), (2, 0)):
        W, b = refit(H[fold == other], T[fold == other], 0.5, True, np.ones((fold == other).sum()))
        lost += np.sum((T[fold == v] - H[fold == v] @ W - b) ** 2)
    expected = lost / (fold != 1).sum() / 2
    assert mean_squared_error(more["folds"], np.array([0.5]))[0] == pytest.approx(expected, rel=1e-10)
    codes = encoded_rows(H, np.sign(T), w, fold=fold, labels=True)
    assert 0 <= misclassified(more["folds"], codes, np.array([0.5]))[0] <= 1


def test_ocrep_cv_does_not_depend_on_the_unit_of_the_target():
    H, T = random_problem(80, 10)
    T += 2 * np.random.default_rng(0).standard_normal(T.shape)
    plain = choose(rules.OCRePCV(), H, T).gamma
    for unit in (1e-84, 1e84):
        assert choose(rules.OCRePCV(), H, unit * T).gamma == pytest.approx(plain, rel=1e-6)


def test_ocrep_cv_finds_the_boundary_between_grid_points():
    for seed in range(4):
        H, T = random_problem(80, 10, seed=seed)
        T += 2 * np.random.default_rng(seed).standard_normal(T.shape)
        rule = rules.OCRePCV(n_folds=2)
        spectrum, more = evidence(H, T, rule)
        choice = rule.choose(spectrum, **more)
        best = choose(rules.KFold(n_folds=2), H, T).gamma
        fine = np.r_[best, spectrum.largest**2 * np.logspace(-7.8, 3, 4000)]
        errors = fold_errors(more["folds"], fine)
        differences = errors - errors[:, :1]
        within = differences.mean(axis=0) <= differences.std(axis=0, ddof=1) / np.sqrt(2)
        assert spectrum.condition(choice.gamma) <= 1.03 * spectrum.condition(fine[within]).min()


def test_options_are_given_by_name_and_numbers_of_any_library():
    for wrong in (lambda: rules.KFold(5), lambda: rules.Discrepancy(0.1), lambda: rules.LOO("elm")):
        with pytest.raises(TypeError, match="positional"):
            wrong()
    assert rules.KFold(n_folds=np.int64(5), floor=np.float32(0.5)).folds == FoldPlan(5)
    assert plan_of(np.bool_(True)) == FoldPlan(3)
    assert plan_of(np.int64(4)) == FoldPlan(4)
    assert rules.LOO(grid=iter([2.0, 1.0])).grid == (1.0, 2.0)
    assert rules.LOO(grid=np.array([1.0])) == rules.LOO(grid=1.0)


@pytest.mark.parametrize("gamma", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize("n_features", [4, 40])
def test_a_whole_weight_leaves_out_one_of_the_rows_it_stands_for(gamma, n_features):
    H, T = random_problem(20, n_features)
    weight = np.arange(20) % 4.0
    repeated = np.repeat(np.arange(20), weight.astype(int))
    outputs = []
    for rows, w in ((np.arange(20), weight), (repeated, None)):
        spectrum, more = evidence(H[rows], T[rows], rules.LOO(), intercept=True, sample_weight=w)
        outputs.append(np.concatenate([output for output, _, _ in left_out_outputs(spectrum, more["rows"], gamma)]))
    np.testing.assert_allclose(outputs[0][repeated], outputs[1], rtol=1e-8, atol=1e-8)
