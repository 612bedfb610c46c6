"""The rules: their formulas, how they scale, the precision floor, and how they are named."""

import contextlib
import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.advice import some_advice
from support.problems import choose, random_problem, with_condition, with_spectrum

from ocrep import Factor, TikhonovRegressor, rules
from ocrep.analysis.evaluator import Evaluator

EPS = np.finfo(float).eps
EVERY_RULE = [rules.Discrepancy(noise=1.0) if name == "discrepancy" else rules.resolve(name) for name in rules.names()]
every_rule = pytest.mark.parametrize("rule", EVERY_RULE, ids=rules.names())


def spectrum_of(H, T, **options):
    return Factor.of(H, T, **options).spectrum()


def test_ocrep_is_the_product_of_the_ends_of_the_spectrum():
    H, T = random_problem(40, 6)
    sigma = np.linalg.svd(H, compute_uv=False)
    choice = rules.OCReP().choose(spectrum_of(H, T))
    assert choice.gamma == pytest.approx(sigma[0] * sigma[-1], rel=1e-12)
    assert (choice.rule, choice.floored, choice.edge) == ("ocrep", False, None)


def test_ocrep_to_the_letter_takes_the_last_singular_value_even_if_it_is_noise():
    H, T = random_problem(40, 6)
    letter = rules.OCReP(rank="full", floor=0.0)
    assert letter.choose(spectrum_of(H, T)) == rules.OCReP(floor=0.0).choose(spectrum_of(H, T))
    twice = np.column_stack([H, H])  # of rank 6
    spectrum, sigma = spectrum_of(twice, T), np.linalg.svd(twice, compute_uv=False)
    assert rules.OCReP(floor=0.0).choose(spectrum).gamma == pytest.approx(sigma[0] * sigma[5], rel=1e-10)
    assert letter.choose(spectrum).gamma < 1e-12 * sigma[0] * sigma[5]
    assert rules.OCReP(rank="full").choose(spectrum).floored
    assert letter.choose(spectrum_of(np.zeros((5, 2)), np.ones(5))).gamma == 0.0
    with pytest.raises(ValueError, match="rank='half' must be 'numerical' or 'full'"):
        rules.OCReP(rank="half")


@pytest.mark.parametrize("rule", [rules.OCReP, rules.GCV])
def test_the_floor_holds_and_can_be_set_or_turned_off(rule):
    H = with_condition(1e12, n_columns=10)
    spectrum = spectrum_of(H, H @ np.ones(10))
    precise, set_by_hand, off = (rule(floor=f).choose(spectrum) for f in ("precision", 1e-3, 0.0))
    unit = spectrum.largest**2
    assert precise.gamma == pytest.approx(np.sqrt(EPS) * unit)
    assert set_by_hand.gamma == pytest.approx(1e-3 * unit)
    assert precise.floored
    assert set_by_hand.floored
    assert off.gamma < 1e-9 * unit
    assert not off.floored


def test_the_floor_leaves_none_and_a_given_gamma_alone():
    spectrum = spectrum_of(with_condition(1e12), np.ones(120))
    assert rules.resolve("none").choose(spectrum).gamma == 0.0
    assert rules.resolve(1e-30).choose(spectrum).gamma == 1e-30


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("n_rows", [50, 12])
def test_gcv_minimises_the_formula_with_the_full_hat_matrix(intercept, n_targets, n_rows):
    H, T = random_problem(n_rows, 15, n_targets)
    T += 4 * np.random.default_rng(5).standard_normal(T.shape)
    choice = rules.GCV().choose(spectrum_of(H, T, intercept=intercept))
    C = np.eye(n_rows) - intercept / n_rows

    def formula(gamma):
        Hc, Tc = C @ H, C @ T
        A = Hc @ np.linalg.solve(Hc.T @ Hc + gamma * np.eye(15), Hc.T)
        return n_rows * np.linalg.norm(Tc - A @ Tc) ** 2 / (n_rows - intercept - np.trace(A)) ** 2

    for gamma, value in list(zip(choice.curve.gammas, choice.curve.criterion, strict=True))[::9]:
        if gamma > 1e-6 * choice.curve.gammas[-1]:
            assert value == pytest.approx(formula(gamma), rel=1e-6)
    assert choice.edge is None
    around = choice.gamma * np.array([0.5, 0.9, 0.99, 1.01, 1.1, 2.0])
    assert all(formula(choice.gamma) <= formula(g) for g in around)


def test_gcv_reports_when_the_optimum_sits_at_an_edge():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((50, 5))
    noiseless = rules.GCV().choose(spectrum_of(H, H @ np.ones(5)))
    assert noiseless.edge == "low"
    U = np.linalg.svd(H)[0]
    unrelated = rules.GCV().choose(spectrum_of(H, U[:, 5]))
    assert unrelated.edge == "high"


@every_rule
@pytest.mark.parametrize("c", [1e-3, 0.1, 30.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_gamma_scales_with_h_as_the_rule_declares(rule, c, intercept):
    H, T = random_problem(60, 6, seed=3)
    T += 3 * np.random.default_rng(3).standard_normal(T.shape)
    if rule.name != "none":
        rule = dataclasses.replace(rule, floor=0.0)  # a floor has degree 2 whatever the rule
    plain, scaled = (choose(rule, h, T, intercept=intercept) for h in (H, c * H))
    assert scaled.gamma == pytest.approx(plain.gamma * c**rule.degree, rel=1e-4)


@given(st.floats(-3, 3))
def test_scaling_h_leaves_ocrep_predictions_alone(exponent):
    c = 10.0**exponent
    H, T = random_problem(40, 6)
    plain, scaled = spectrum_of(H, T), spectrum_of(c * H, T)
    gammas = [rules.OCReP().choose(s).gamma for s in (plain, scaled)]
    assert gammas[1] == pytest.approx(c**2 * gammas[0], rel=1e-10)
    np.testing.assert_allclose(c * H @ scaled.weights(gammas[1]), H @ plain.weights(gammas[0]), rtol=1e-9, atol=1e-11)


DEGENERATE = {
    "singular": (with_spectrum([1.0, 0.5, 0.0, 0.0], 20), np.arange(20.0)),
    "rank one": (np.ones((20, 4)), np.arange(20.0)),
    "noiseless": (with_condition(1e3, 20, 4), with_condition(1e3, 20, 4) @ np.ones(4)),
    "zero target": (with_condition(1e3, 20, 4), np.zeros(20)),
    "target outside": (np.eye(20)[:, :4], np.eye(20)[:, 7]),
    "wide": (np.eye(6)[:3], np.arange(3.0)),
    "zero": (np.zeros((5, 2)), np.ones(5)),
    "one row": (np.ones((1, 3)), np.ones(1)),
}


@every_rule
@pytest.mark.parametrize("problem", sorted(DEGENERATE))
@pytest.mark.parametrize("intercept", [False, True])
def test_a_degenerate_problem_gets_a_finite_gamma_or_a_reason(rule, problem, intercept):
    # Warnings are errors in these tests, so none warns but a rule that needs more rows than one.
    H, T = DEGENERATE[problem]
    alone = problem == "one row" and rule.folds is not None
    try:
        with pytest.warns(UserWarning, match="too few") if alone else contextlib.nullcontext():
            choice = choose(rule, H, T, intercept=intercept)
    except rules.NotApplicable:
        return
    assert np.isfinite(choice.gamma)
    assert choice.gamma >= 0
    assert np.isfinite(spectrum_of(H, T, intercept=intercept).weights(choice.gamma)).all()


def test_nearly_all_rules_apply_to_singular_and_noiseless_problems():
    inverse = {rule.name for rule in EVERY_RULE if rule.name.endswith("_inverse")}  # of a noise that is there
    for problem, refusing in (("singular", {"mallows"}), ("noiseless", {"mallows"} | inverse)):
        not_applicable = set()
        for rule in EVERY_RULE:
            try:
                choose(rule, *DEGENERATE[problem])
            except rules.NotApplicable:
                not_applicable.add(rule.name)
        assert not_applicable <= refusing


@every_rule
def test_a_scaled_target_leaves_gamma_alone(rule):
    H, T = random_problem(60, 6)
    T += 2 * np.random.default_rng(3).standard_normal(T.shape)
    if rule.name == "discrepancy":
        plain = choose(rule, H, T)
        assert choose(rules.Discrepancy(noise=1e3), H, 1e3 * T).gamma == pytest.approx(plain.gamma, rel=1e-6)
        return
    plain, scaled = (choose(rule, H, t).gamma for t in (T, 1e3 * T))
    assert scaled == pytest.approx(plain, rel=1e-5)


@every_rule
def test_every_rule_tells_its_formula_and_its_reference(rule):
    assert "γ" in rule.description or "minimise" in rule.description
    assert any(word in rule.description for word in ("Reference", "paper, eq. 10", "new in this library"))
    assert "Parameters" not in rule.description
    assert rule.reads in ("spectrum", "folds", "rows")
    assert rule.degree in (2, 1, 0, -1)


def test_the_imports_of_the_package_are_the_registry():
    assert len(rules.names()) == 37
    assert {type(rule) for rule in EVERY_RULE} | {rules.Fixed} == {
        kind
        for kind in vars(rules).values()
        if isinstance(kind, type) and issubclass(kind, rules.Rule) and not inspect.isabstract(kind)
    }
    assert {type(rule).__name__ for rule in EVERY_RULE} < set(rules.__all__)
    assert all(getattr(rules, name) is not None for name in rules.__all__)


@every_rule
def test_a_rule_is_a_value(rule):
    for again in (pickle.loads(pickle.dumps(rule)), copy.deepcopy(rule), dataclasses.replace(rule)):
        assert again == rule
        assert hash(again) == hash(rule)
        assert repr(again) == repr(rule)
    assert eval(repr(rule), vars(rules)) == rule
    assert rules.resolve(rule.name) == rule or rule.name == "discrepancy"
    if rule.name != "none":
        assert dataclasses.replace(rule, floor=0.5) != rule


def test_reprs_show_what_differs_from_the_defaults_and_are_short():
    assert repr(rules.KFold(n_folds=5)) == "KFold(n_folds=5)"
    assert repr(rules.RidgeFormula("kibria", floor=0.0)) == "RidgeFormula(floor=0.0, name='kibria')"
    assert repr(rules.LOO(grid=range(1, 100))) == "LOO(grid=(1.0, 2.0, 3.0, 4.0, ...))"
    spectrum = spectrum_of(*random_problem(40, 6))
    ocrep, gcv = (rules.resolve(name).choose(spectrum) for name in ("ocrep", "gcv"))
    assert repr(ocrep) == f"Choice(rule='ocrep', gamma={ocrep.gamma!r})"
    assert repr(gcv).startswith(f"Choice(rule='gcv', gamma={gcv.gamma!r}, curve=Curve(")
    assert len(repr(gcv)) < 160
    curve = rules.Curve(np.array([1e-3, 1.0, 1e3]), np.array([np.nan, 2.0, 5.0]))
    assert repr(curve) == "Curve(3 γ from 0.001 to 1e+03, minimum 2 at γ=1)"


def test_the_grids_of_the_literature():
    grids = rules.GRIDS
    assert [len(grids[name]) for name in ("ocrep_paper", "elm", "relm")] == [51, 50, 101]
    assert (grids["ocrep_paper"][0], grids["ocrep_paper"][-1]) == (1e-25, 1e25)
    assert (grids["elm"][0], grids["elm"][-1]) == (2.0**-24, 2.0**25)
    assert (grids["relm"][0], grids["relm"][-1]) == (2.0**-50, 2.0**50)


@pytest.mark.parametrize(("scale_H", "scale_T"), [(1e-160, 1.0), (1.0, 1e-160)])
@pytest.mark.parametrize("name", ["ocrep", "gcv", "evidence"])
def test_scales_that_cannot_be_squared_raise_an_error(name, scale_H, scale_T):
    H, T = random_problem(30, 4)
    with pytest.raises(rules.NotApplicable, match="rescale"):
        choose(rules.resolve(name), scale_H * H, scale_T * T)
    with pytest.raises(ValueError, match="rescale"):
        Factor.of(1e160 * H, T)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_all_other_scales_work(scale):
    H, T = random_problem(60, 4)
    T += 3 * np.random.default_rng(0).standard_normal(T.shape)
    for name in ("ocrep", "gcv", "evidence", "loo", "kfold"):
        plain, scaled = (choose(rules.resolve(name), h, T).gamma for h in (H, scale * H))
        assert scaled / scale**2 == pytest.approx(plain, rel=1e-4)


def test_a_floor_above_the_usual_range_holds():
    H, T = random_problem(30, 4)
    choice = choose(rules.GCV(floor=1e4), H, T)
    assert choice.gamma >= 1e4 * np.linalg.norm(H, 2) ** 2 * (1 - 1e-12)
    assert choice.edge == "low"


def test_a_wrong_number_is_an_error_as_a_rule_too():
    for value in (-5.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="finite number ≥ 0"):
            rules.Fixed(value)


def test_names_resolve_to_rules_and_rules_to_themselves():
    assert {"ocrep", "ocrep_cv", "gcv", "loo", "kfold", "none", "evidence", "kibria"} <= set(rules.names())
    for name in rules.names():
        assert rules.resolve(name).name == name
    rule = rules.OCReP(floor=0.0)
    assert rules.resolve(rule) is rule
    assert rules.resolve(np.float32(0.5)) == rules.Fixed(0.5)


@pytest.mark.parametrize(
    ("gamma", "message"),
    [
        ("ocrp", "Did you mean 'ocrep'.*'gcv'.*'none', 'ocrep'"),
        ("zzz", "Known: 'aic'.*'gcv'.*'none', 'ocrep'"),
        (-1.0, "finite number ≥ 0"),
        (np.nan, "finite number ≥ 0"),
        (np.inf, "finite number ≥ 0"),
        (None, "Unknown gamma rule None"),
        (True, "Unknown gamma rule True"),
        (rules.OCReP, "rule object such as"),
    ],
)
def test_a_gamma_without_meaning_is_an_error(gamma, message):
    with pytest.raises(ValueError, match=message):
        rules.resolve(gamma)


@pytest.mark.parametrize("floor", [-1.0, np.nan, np.inf, "none", None])
def test_a_bad_floor_is_an_error(floor):
    with pytest.raises(ValueError, match="floor must be"):
        rules.OCReP(floor=floor)


FLOORED = [rule for rule in map(rules.resolve, rules.names()) if isinstance(rule, rules.base.FlooredRule)]


def columns_of_two_sizes(ratio):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [ratio, 1.0]
    return X, X[:, 1] + 0.1 * rng.normal(size=400)


@pytest.mark.parametrize("rule", FLOORED, ids=lambda rule: rule.name)
@pytest.mark.parametrize("ratio", [1e4, 1e5, 1e6])
def test_the_floor_does_not_ignore_short_columns_of_own_features(rule, ratio):
    X, y = columns_of_two_sizes(ratio)
    spectrum = TikhonovRegressor(gamma=1.0).fit(X, y).spectrum_
    damped = rule.for_own_features().least_gamma(spectrum) / spectrum.smallest**2
    assert damped < 1e-3


@some_advice
@pytest.mark.parametrize(
    "name", ["aic", "aicc", "bic", "evidence", "gcv", "mallows", "lawless_wang", "kfold", "ocrep_cv"]
)
@pytest.mark.parametrize("ratio", [1e4, 1e5, 1e6])
def test_rules_learn_from_short_columns_of_own_features(name, ratio):
    X, y = columns_of_two_sizes(ratio)
    model = TikhonovRegressor(gamma=name).fit(X, y)
    assert model.score(X, y) > 0.98
    if name not in ("kfold", "ocrep_cv"):
        assert TikhonovRegressor(gamma=1.0).fit(X, y).with_gamma(name).gamma_ == model.gamma_
        assert Evaluator.of(model).choose(name).gamma == model.gamma_


def test_short_columns_count_for_each_target_too():
    X, y = columns_of_two_sizes(1e5)
    model = TikhonovRegressor(gamma="gcv", gamma_per_target=True).fit(X, np.column_stack([y, -2.0 * y]))
    assert model.score(X, np.column_stack([y, -2.0 * y])) > 0.98


@pytest.mark.parametrize("n_zero", [0, 1])
def test_the_floor_of_columns_of_one_length_is_that_of_precision(n_zero):
    H = np.hstack([np.linalg.qr(np.random.default_rng(0).normal(size=(50, 4)))[0], np.zeros((50, n_zero))])
    spectrum = Factor.of(H, np.ones((50, 1))).spectrum()
    at = {floor: rules.GCV(floor=floor).least_gamma(spectrum) for floor in ("precision", "columns")}
    assert at["columns"] == pytest.approx(at["precision"], rel=1e-12)


def test_a_floor_that_was_given_as_a_number_stays():
    rule = rules.GCV(floor=1e-3)
    assert rule.for_own_features() is rule
    assert rules.Fixed(1.0).for_own_features() == rules.Fixed(1.0)


def test_all_features_zero_have_a_floor_of_zero():
    spectrum = Factor.of(np.zeros((5, 2)), np.ones((5, 1))).spectrum()
    assert rules.GCV(floor="columns").least_gamma(spectrum) == 0.0
