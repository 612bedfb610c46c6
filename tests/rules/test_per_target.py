"""A γ for each target: every rule that can choose one chooses what it would for that target alone."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from support.problems import evidence, random_problem, with_condition

from ocrep import Factor, rules
from ocrep._linalg.spectrum import direction_sums, of_targets
from ocrep.rules.base import PerTarget, choice_of
from ocrep.rules.criteria import CriterionRule
from ocrep.rules.cross_validation import HeldOutErrors
from ocrep.rules.search import Searched, minimise, refine_by_slope, root

EVERY_RULE = [rules.Discrepancy(noise=1.0) if name == "discrepancy" else rules.resolve(name) for name in rules.names()]
CRITERIA = [rule for rule in EVERY_RULE if isinstance(rule, CriterionRule)]
every_rule = pytest.mark.parametrize("rule", EVERY_RULE, ids=rules.names())
every_criterion = pytest.mark.parametrize("rule", CRITERIA, ids=lambda rule: rule.name)


def problem(n_rows=80, n_features=7, n_targets=5, seed=0):
    """Targets of very different noise, so that each needs a γ of its own."""
    H, T = random_problem(n_rows, n_features, n_targets, seed)
    return H, T + np.geomspace(0.1, 8.0, n_targets) * np.random.default_rng(seed + 1).standard_normal(T.shape)


@every_rule
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_target_gets_the_gamma_that_it_gets_alone(rule, intercept, weighted):
    H, T = problem()
    w = np.random.default_rng(2).uniform(0.3, 2.0, len(H)) if weighted else None
    spectrum, more = evidence(H, T, rule, intercept=intercept, sample_weight=w)
    together = rule.choose(spectrum, **more, per_target=True)
    assert together.rule == rule.name
    assert together.gamma.shape == together.floored.shape == together.edge.shape == (5,)
    for q in range(5):
        spectrum, more = evidence(H, T[:, q], rule, intercept=intercept, sample_weight=w)
        alone = rule.choose(spectrum, **more)
        assert together.gamma[q] == pytest.approx(alone.gamma, rel=1e-12)
        ends_are_clear = True
        if alone.curve is not None:
            mine, own = together.curve.criterion[:, q], alone.curve.criterion
            np.testing.assert_allclose(mine, own, rtol=1e-9)
            np.testing.assert_allclose(mine[together.curve.best[q]], own[alone.curve.best], rtol=1e-12)
            # Where γ is far too small to matter, rounding decides which of the first points is the best.
            ends_are_clear = abs(own[1] - own[0]) > 1e-12 * abs(own[0])
        if ends_are_clear:
            assert (together.floored[q], together.edge[q] or None) == (alone.floored, alone.edge)
    assert rule.targets == ("none" if rule.name in ("ocrep", "none") else "each")
    if rule.name != "lcurve":  # this H is too well conditioned for a corner
        assert (len(set(together.gamma)) == 1) == (rule.targets == "none")


@pytest.mark.parametrize("name", ["gcv", "kfold", "ocrep_cv", "quasi_optimality"])
def test_targets_at_either_end_of_the_search_lie_there_alone_too(name):
    rule, rng, shape = rules.resolve(name), np.random.default_rng(0), (30, 12)
    H = rng.standard_normal(shape)
    T = np.column_stack([H @ np.ones(shape[1]), rng.standard_normal(shape[0]), np.zeros(shape[0]), np.ones(shape[0])])
    spectrum, more = evidence(H, T, rule, intercept=True)
    together = rule.choose(spectrum, **more, per_target=True)
    assert "low" in together.edge
    for q in range(4):
        spectrum, more = evidence(H, T[:, q], rule, intercept=True)
        alone = rule.choose(spectrum, **more)
        assert together.gamma[q] == pytest.approx(alone.gamma, rel=1e-10)
        assert (together.floored[q], together.edge[q] or None) == (alone.floored, alone.edge)


@every_rule
def test_features_of_zeros_give_every_target_gamma_zero(rule):
    spectrum, more = evidence(np.zeros((30, 2)), problem(30)[1], rule)
    assert rule.choose(spectrum, **more, per_target=True).gamma.tolist() == [0.0] * 5


def test_a_given_grid_is_searched_for_each_target():
    grid = np.logspace(-2, 4, 13)
    H, T = problem()
    for rule in (rules.KFold(grid=grid), rules.LOO(grid=grid)):
        spectrum, more = evidence(H, T, rule)
        gamma = rule.choose(spectrum, **more, per_target=True).gamma
        assert len(set(gamma)) > 1
        assert set(gamma) <= set(grid)


def test_too_few_rows_for_folds_fall_back_to_gcv_for_each_target():
    H, T = np.ones((1, 3)), np.ones((1, 2))
    spectrum, more = evidence(H, T, rules.KFold())
    with pytest.warns(UserWarning, match="'gcv' was used"):
        choice = rules.KFold().choose(spectrum, **more, per_target=True)
    assert choice.rule == "gcv"
    assert choice.gamma.shape == (2,)


def test_a_rule_that_judges_targets_together_cannot_choose_for_each():
    rule = rules.KFold(scoring="error")
    assert rule.targets == "together"
    with pytest.raises(rules.NotApplicable, match=r"judges all targets together.*gamma_per_target=False"):
        PerTarget(rule)
    spectrum, more = evidence(*problem(), rule, labels=True)
    with pytest.raises(rules.NotApplicable, match="judges all targets together"):
        rule.choose(spectrum, **more, per_target=True)


def test_corners_of_several_l_curves_are_those_of_each():
    H = with_condition(1e5, 60, 10)
    T = H @ np.ones((10, 4)) + np.geomspace(1e-5, 1e-1, 4) * np.random.default_rng(0).standard_normal((60, 4))
    spectrum = Factor.of(H, T).spectrum()
    gamma = rules.LCurve(floor=0.0).choose(spectrum, per_target=True).gamma
    assert len(set(gamma)) == 4
    for q in range(4):
        alone = rules.LCurve(floor=0.0).choose(Factor.of(H, T[:, q]).spectrum())
        assert gamma[q] == pytest.approx(alone.gamma, rel=1e-10)


@pytest.mark.parametrize(("name", "told"), [("bic", "target 2 is zero"), ("kibria", "Target 2: The formula")])
def test_the_target_for_which_a_rule_has_no_gamma_is_named(name, told):
    H, T = problem()
    T[:, 2] = 0.0
    spectrum, more = evidence(H, T, rules.resolve(name))
    with pytest.raises(rules.NotApplicable, match=told):
        rules.resolve(name).choose(spectrum, **more, per_target=True)


@dataclasses.dataclass(frozen=True)
class OfTheUser(rules.Rule):
    """γ from the rows, the folds and the spectrum."""

    name = "own"
    folds = rules.KFold().folds

    def _choose(self, spectrum, folds, rows, /, *, per_target):
        (T,) = [T for _, T, _ in rows.blocks()]
        errors = HeldOutErrors(folds, per_target).mean(np.ones((1, 1)))[0]
        left = np.abs(T[0]) + spectrum.residual
        return choice_of(self.name, errors + (left if per_target else left.sum()))


@pytest.mark.parametrize("shape", [(40, 5), (6, 9)])
def test_a_rule_of_the_users_own_chooses_for_each_target_or_for_all(shape):
    H, T = problem(*shape)
    rule = OfTheUser()
    spectrum, more = evidence(H, T, rule, block=100)
    gamma = PerTarget(rule).choose(spectrum, **more).gamma
    for q in range(5):
        alone, evidence_of_one = evidence(H, T[:, q], rule, block=100)
        assert gamma[q] == pytest.approx(rule.choose(alone, **evidence_of_one).gamma, rel=1e-12)
    assert isinstance(rule.choose(spectrum, **more).gamma, float)


def test_per_target_is_what_the_rule_is():
    for rule in (rules.KFold(n_folds=5), rules.LOO(), rules.GCV()):
        assert (PerTarget(rule).name, PerTarget(rule).reads) == (rule.name, rule.reads)
        assert PerTarget(rule).folds == rule.folds
    assert PerTarget.named() == ()


def test_reprs_of_many_gammas_stay_short():
    H, T = problem(n_targets=300)
    for name in ("gcv", "ocrep", "kibria"):
        rule = rules.resolve(name)
        spectrum, more = evidence(H, T, rule)
        choice = rule.choose(spectrum, **more, per_target=True)
        assert f"gamma=<300 γ from {choice.gamma.min():.3g} to {choice.gamma.max():.3g}>" in repr(choice)
        assert len(repr(choice)) < 200
        if choice.curve is not None:
            assert "for 300 targets" in repr(choice.curve)
    edge = np.array(["low", "", "high"])
    assert repr(rules.Choice("gcv", np.ones(3), edge == "low", None, edge)).endswith("floored=<1 of 3>, edge=<2 of 3>)")
    assert repr(rules.Choice("fixed", np.zeros(2))) == "Choice(rule='fixed', gamma=<2 γ from 0 to 0>)"


# --- the parts that the search is made of ---------------------------------------------------------------------


def test_sums_over_directions_are_those_of_the_spectrum():
    H, T = problem()
    spectrum = Factor.of(H, T, intercept=True).spectrum()
    gammas = np.array([1e-3, 1.0, 50.0])
    H, T = H - H.mean(axis=0), T - T.mean(axis=0)
    own = np.random.default_rng(0).uniform(0.1, 9.0, (3, 5))
    for q in range(5):
        for k, gamma in enumerate(own[:, q]):
            A = H @ np.linalg.solve(H.T @ H + gamma * np.eye(7), H.T)
            assert spectrum.rss_by_target(own)[k, q] == pytest.approx(np.sum((T - A @ T)[:, q] ** 2), rel=1e-12)
            assert spectrum.dof(own)[k, q] == pytest.approx(np.trace(A), rel=1e-12)
            assert spectrum.residual_dof(own)[k, q] == pytest.approx(79.0 - np.trace(A), rel=1e-12)
    shared = spectrum.rss_by_target(gammas)
    np.testing.assert_array_equal(spectrum.rss_by_target(gammas[:, None]), shared)
    np.testing.assert_allclose(spectrum.rss_by_target(np.tile(gammas[:, None], 5)), shared, rtol=1e-13)
    np.testing.assert_allclose(spectrum.rss(gammas), shared.sum(axis=1), rtol=1e-13)
    ones = direction_sums(spectrum, own, lambda f, r: f + r)
    np.testing.assert_allclose(ones, np.full((3, 5), 7.0), rtol=1e-14)


@every_criterion
def test_a_pooled_or_averaged_criterion_is_that_of_its_targets(rule):
    H, T = problem()
    spectrum = Factor.of(H, T, intercept=True).spectrum()
    gammas = np.logspace(-2, 2, 5)
    each = np.column_stack([rule.criterion(of_targets(spectrum, [q]), gammas) for q in range(5)])
    np.testing.assert_allclose(rule.by_target(spectrum, gammas[:, None]), each, rtol=1e-10)
    expected = {"gcv": each.sum(axis=1), "quasi_optimality": each.sum(axis=1), "lcurve": None}
    if rule.name != "lcurve":
        np.testing.assert_allclose(
            rule.criterion(spectrum, gammas), expected.get(rule.name, each.mean(axis=1)), rtol=1e-10
        )


@pytest.mark.parametrize("rule", [*CRITERIA, rules.KFold()], ids=lambda rule: rule.name)
def test_the_complex_step_is_the_derivative_by_log_gamma(rule):
    H, T = problem()
    spectrum, more = evidence(H, T, rule, intercept=True)
    if isinstance(rule, rules.KFold):
        criterion = HeldOutErrors(more["folds"], per_target=True).mean
    else:
        criterion = partial(rule._by_column, spectrum, True)
    searched = Searched(criterion, np.ones(1), np.ones((1, 5)), np.arange(5), spectrum.sigma)
    x, every = np.log(np.array([0.3, 2.0, 20.0, 5.0, 0.7])), np.arange(5)
    found = searched.slope(x, every)
    after, before = searched.at(np.exp(np.stack([x + 1e-5, x - 1e-5])), every)
    np.testing.assert_allclose(found, (after - before) / 2e-5, rtol=1e-6, atol=1e-9 * np.abs(found).max())
    np.testing.assert_allclose(searched.slope(x[[3, 1]], every[[3, 1]]), found[[3, 1]], rtol=1e-12)


def test_roots_of_several_functions_are_those_of_brents_method():
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(0.5, 3.0, 40), rng.uniform(-2.0, 2.0, 40), rng.uniform(0.1, 30.0, 40)
    b[:2] = -5.0, 5.0  # outside the range

    def function(gamma, some):
        x = np.log(gamma) - b[some]
        return np.arctan(c[some] * x) + 0.1 * a[some] * x**3

    low, high = np.exp(-4.0), np.exp(4.0)
    found, edge = root(function, low, high, 40)
    assert edge.tolist() == ["low", "high", *[""] * 38]
    assert found[:2].tolist() == [low, high]
    for q in range(2, 40):
        expected = brentq(lambda x, q=q: float(function(np.exp([x]), np.array([q]))[0]), -4.0, 4.0, xtol=1e-13)
        assert np.log(found[q]) == pytest.approx(expected, abs=1e-10)


def test_a_step_is_found_by_bisection_and_without_a_warning():
    """Equal values have no quadratic through them."""
    at = np.array([0.3, 0.7])
    found, _ = root(lambda gamma, some: np.sign(gamma - at[some]), 0.1, 1.0, 2)
    np.testing.assert_allclose(found, at, rtol=1e-10)


def test_a_criterion_with_several_minima_is_refined_to_one_that_is_as_good_as_the_grid():
    """Waves far finer than the grid: the slopes at the neighbours say nothing."""
    spectrum = Factor.of(with_condition(1e3), np.ones(120)).spectrum()

    def criterion(gamma, columns=None):
        x = np.log(gamma)
        return np.cos(40.0 * x) + 0.1 * (x + 3.0) ** 2

    choice = minimise(rules.GCV(floor=0.0), spectrum, criterion, n_columns=1)
    x = np.log(choice.gamma)
    value = criterion(choice.gamma[None, :])[0, 0]
    assert value <= choice.curve.criterion.min()
    around = criterion(np.exp(x + np.array([[-1e-4], [1e-4]])))
    assert (value <= around).all()


def test_a_flat_criterion_keeps_its_grid_point():
    spectrum = Factor.of(with_condition(1e3), np.ones(120)).spectrum()
    gammas = np.array([1.0, 2.0, 4.0])
    values = np.array([[1.0], [0.5], [1.0]])
    flat = Searched(lambda gamma, _=None: 0.5 + 0.0 * gamma, gammas, values, np.array([0]), spectrum.sigma)
    assert 1.0 < refine_by_slope(flat)[0] < 4.0
