"""The ridge literature against published values and against R."""

import dataclasses

import numpy as np
import pytest
from support.problems import choose, random_problem

from ocrep import Factor, rules
from ocrep.rules.ridge import FORMULAS

RIDGE = rules.RidgeFormula.named()

# Hald's cement data (R: MASS::cement). Values of the literature with s² = RSS/(n − p), X centred with columns of unit
# length and no intercept.
HALD_X = [
    *([7, 26, 6, 60], [1, 29, 15, 52], [11, 56, 8, 20], [11, 31, 8, 47], [7, 52, 6, 33], [11, 55, 9, 22]),
    *([3, 71, 17, 6], [1, 31, 22, 44], [2, 54, 18, 22], [21, 47, 4, 26], [1, 40, 23, 34], [11, 66, 9, 12]),
    [10, 68, 8, 12],
]
HALD_Y = [78.5, 74.3, 104.3, 87.6, 95.9, 109.2, 102.7, 72.5, 93.1, 115.9, 83.8, 113.3, 109.4]
HALD = {
    "hoerl_kennard": 0.004537284922,
    "hoerl_kennard_baldwin": 0.01162339062,
    "thisted": 0.00581169531,
    "lawless_wang": 0.007973587123,
    "dwivedi_srivastava": 0.002905847655,
    "kibria": 7.101457641,
    "kibria_gm": 0.07732948475,
    "kibria_median": 0.01718382681,
    "muniz_kibria_max_inverse": 14.84574423,
    "muniz_kibria_max": 5.326060986,
    "muniz_kibria_gm_inverse": 3.596064243,
    "muniz_kibria_gm": 0.2780817951,
    "muniz_kibria_median_inverse": 7.805318342,
    "muniz_shukur_max_inverse": 14.98071091,
    "muniz_shukur_max": 0.4962409525,
    "muniz_shukur_gm_inverse": 6.633415198,
    "muniz_shukur_gm": 0.1507519084,
    "muniz_shukur_median_inverse": 8.062684453,
    "dorugade_kashid": 0.01135110894,
    "dorugade": 101.6443326,
}

# R 4.2.2, MASS 7.3-58.2:
#   fit <- lm.ridge(Employed ~ ., longley, lambda = c(0, 0.001, 0.01, 0.1)); fit$kHKB; fit$kLW; fit$GCV
#   l <- seq(0, 0.1, 0.0001); l[which.min(lm.ridge(Employed ~ ., longley, lambda = l)$GCV)]
R_HKB, R_LW, R_BEST_GCV = 0.00427535739398301, 0.0322953077220619, 0.0028
R_GCV = {0.0: 0.00836424055505912, 0.001: 0.00814745542905809, 0.01: 0.00846865169880513, 0.1: 0.01272061788488994}
LONGLEY = [
    [83, 234.289, 235.6, 159, 107.608, 1947, 60.323],
    [88.5, 259.426, 232.5, 145.6, 108.632, 1948, 61.122],
    [88.2, 258.054, 368.2, 161.6, 109.773, 1949, 60.171],
    [89.5, 284.599, 335.1, 165, 110.929, 1950, 61.187],
    [96.2, 328.975, 209.9, 309.9, 112.075, 1951, 63.221],
    [98.1, 346.999, 193.2, 359.4, 113.27, 1952, 63.639],
    [99, 365.385, 187, 354.7, 115.094, 1953, 64.989],
    [100, 363.112, 357.8, 335, 116.219, 1954, 63.761],
    [101.2, 397.469, 290.4, 304.8, 117.388, 1955, 66.019],
    [104.6, 419.18, 282.2, 285.7, 118.734, 1956, 67.857],
    [108.4, 442.769, 293.6, 279.8, 120.445, 1957, 68.169],
    [110.8, 444.546, 468.1, 263.7, 121.95, 1958, 66.513],
    [112.6, 482.704, 381.3, 255.2, 123.366, 1959, 68.655],
    [114.2, 502.601, 393.1, 251.4, 125.368, 1960, 69.564],
    [115.7, 518.173, 480.6, 257.2, 127.852, 1961, 69.331],
    [116.9, 554.894, 400.7, 282.7, 130.081, 1962, 70.551],
]


def by_name(name, **options):
    return dataclasses.replace(rules.resolve(name), floor=0.0, **options)


def centred(X, length):
    X = np.asarray(X, dtype=float)
    X = X - X.mean(axis=0)
    return length * X / np.linalg.norm(X, axis=0)


@pytest.fixture(scope="module")
def hald():
    y = np.array(HALD_Y)
    return Factor.of(centred(HALD_X, 1.0), y - y.mean()).spectrum()


@pytest.fixture(scope="module")
def longley():
    data = np.array(LONGLEY)
    y = data[:, -1]
    return Factor.of(centred(data[:, :-1], np.sqrt(16)), y - y.mean()).spectrum()


@pytest.mark.parametrize("name", sorted(HALD))
def test_published_values_on_halds_data(hald, name):
    assert by_name(name, ddof=0).choose(hald).gamma == pytest.approx(HALD[name], rel=1e-9)


def test_ocrep_on_halds_data(hald):
    assert by_name("ocrep").choose(hald).gamma == pytest.approx(0.06025126462, rel=1e-9)


def test_lm_ridge_on_longley(longley):
    p, n = 6, 16
    # R prints the (p − 2) form of Hoerl, Kennard and Baldwin, and Lawless and Wang's times n(p − 2)/p.
    assert by_name("thisted").choose(longley).gamma == pytest.approx(R_HKB, rel=1e-9)
    assert by_name("hoerl_kennard_baldwin").choose(longley).gamma == pytest.approx(R_HKB * p / (p - 2), rel=1e-9)
    assert by_name("lawless_wang").choose(longley).gamma * n * (p - 2) / p == pytest.approx(R_LW, rel=1e-9)
    for gamma, value in R_GCV.items():
        criterion = rules.GCV().criterion(longley, np.array([gamma]))[0] / n
        assert criterion == pytest.approx(value, rel=1e-9)
    assert rules.GCV(floor=0.0).choose(longley).gamma == pytest.approx(R_BEST_GCV, abs=0.00005)


def test_the_iteration_of_hoerl_and_kennard_has_settled(hald):
    rule = by_name("hoerl_kennard_iterative", ddof=0)
    sigma = hald.sigma
    tolerance = 20 * (np.mean(1 / sigma**2) * np.mean(sigma**2)) ** -1.3
    s2 = hald.residual[0] / (13 - 4)
    gamma = 4 * s2 / hald.norm(0.0) ** 2
    for _ in range(100):
        following = 4 * s2 / hald.norm(gamma) ** 2
        done, gamma = (following - gamma) / gamma <= tolerance, following
        if done:
            break
    assert rule.choose(hald).gamma == pytest.approx(gamma, rel=1e-12)
    assert gamma > by_name("hoerl_kennard_baldwin", ddof=0).choose(hald).gamma


def test_mcdonald_and_galarneau_match_the_length_of_the_weights():
    H, T = random_problem(60, 5)
    T = 5 * H @ np.ones((5, 1)) + T
    spectrum = Factor.of(H, T).spectrum()
    s2 = spectrum.residual[0] / (60 - 5 - 1)
    gamma = by_name("mcdonald_galarneau").choose(spectrum).gamma
    expected = spectrum.norm(0.0) ** 2 - s2 * np.sum(1 / spectrum.sigma**2)
    assert spectrum.norm(gamma) ** 2 == pytest.approx(expected, rel=1e-9)


def test_mcdonald_and_galarneau_do_not_regularize_when_the_noise_explains_the_weights():
    rng = np.random.default_rng(0)
    H = np.diag([1.0, 1e-3]) @ rng.standard_normal((2, 40))
    assert by_name("mcdonald_galarneau").choose(Factor.of(H.T, rng.standard_normal(40)).spectrum()).gamma == 0.0


def test_formulas_do_not_go_below_zero():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((40, 1))
    assert by_name("thisted").choose(Factor.of(H, H[:, 0] + rng.standard_normal(40)).spectrum()).gamma == 0.0
    strong = Factor.of(np.hstack([H, H**2]), 100 * H[:, 0] + 0.01 * rng.standard_normal(40)).spectrum()
    assert by_name("dorugade_kashid").choose(strong).gamma == 0.0


@pytest.mark.parametrize("rule", RIDGE, ids=lambda rule: rule.name)
def test_several_targets_raise_an_error_that_names_rules_that_work(rule):
    with pytest.raises(rules.NotApplicable, match="one target, and there are 2: use 'ocrep', 'gcv'"):
        choose(rule, *random_problem(40, 5, 2))


@pytest.mark.parametrize("rule", [*RIDGE, rules.Mallows()], ids=lambda rule: rule.name)
def test_too_few_rows_for_a_variance_raise_an_error(rule):
    with pytest.raises(rules.NotApplicable, match=r"more than 6 observations.*'ocrep', 'gcv'"):
        choose(rule, *random_problem(6, 5))
    assert choose(rule, *random_problem(7, 5)).gamma >= 0


def test_the_variance_divides_by_the_rows_minus_the_rank_minus_one():
    H, T = random_problem(30, 4)
    spectrum = Factor.of(H, T).spectrum()
    s2 = np.linalg.lstsq(H, T)[1][0] / (30 - 4 - 1)
    alpha = spectrum.UtT[:, 0] / spectrum.sigma
    assert by_name("hoerl_kennard").choose(spectrum).gamma == pytest.approx(s2 / np.max(alpha**2), rel=1e-10)


def test_the_table_has_every_formula_of_the_muniz_family():
    family = {name: formula for name, formula in FORMULAS.items() if name.startswith("muniz")}
    assert len(family) == 10
    for name, formula in family.items():
        symbol = "m" if name.startswith("muniz_kibria") else "q"
        statistic = {"max": "max", "gm": "GM", "median": "median"}[name.split("_")[2]]
        inverse = name.endswith("_inverse")
        assert formula.text.startswith(f"{statistic}({'1/' if inverse else ''}{symbol}), with {symbol}_j = ")
        assert formula.degree == (-1 if inverse else 1)
    sources = [formula.source for formula in family.values()]
    assert [source.split(", their ")[1] for source in sources] == [f"K{k}" for k in (*range(2, 7), *range(8, 13))]


def test_an_unknown_formula_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"Unknown ridge formula 'kibira'. Did you mean 'kibria'.*'hoerl_kennard'"):
        rules.RidgeFormula("kibira")
