"""Leave-one-out of rows of leverage near 1, such as a sentinel of 10¹⁰ in a column of ordinary numbers."""

import mpmath as mp
import numpy as np
import pytest

from ocrep import Factor, PinvRegressor, TikhonovRegressor
from ocrep._linalg.blocks import RowBlocks
from ocrep._linalg.leave_one_out import left_out_errors, left_out_outputs, press, press_by_target

SENTINELS = [1e7, 1e10, 1e12]
intercepts = pytest.mark.parametrize("intercept", [False, True])


def without_one(H, T, gamma, intercept, weight, one=False):
    """The output at each row of a refit without it (or without one of the rows it stands for), in 60 digits.

    With it, the standard deviation of a new row's error in units of the noise.
    """
    with mp.workdps(60):
        found, spread = [], []
        for i in range(len(H)):
            w = np.array(weight, dtype=float)
            w[i] = w[i] - 1.0 if one else 0.0
            A = mp.matrix(np.c_[np.ones(len(H)), H].tolist() if intercept else H.tolist())
            W = mp.diag(w.tolist())
            G = A.T * W * A
            for k in range(int(intercept), A.cols):
                G[k, k] += mp.mpf(gamma)
            v = mp.lu_solve(G, A[i, :].T)
            found.append([float(output) for output in v.T * (A.T * W * mp.matrix(T.tolist()))])
            spread.append(float(mp.sqrt(1 + (A[i, :] * v)[0])))
        return np.array(found), np.array(spread)


def lone(sentinel, n=20, n_features=4, n_targets=1):
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((n, n_features)), rng.standard_normal((n, n_targets))
    H[7, 1] = sentinel
    return H, T + H[:, :1]


def rows_of(H, T, weight=None, block=6):
    cuts = [slice(s, s + block) for s in range(0, len(H), block)]
    return RowBlocks(lambda: iter([(H[c], T[c], None if weight is None else weight[c]) for c in cuts]))


def outputs(spectrum, rows, gamma):
    return np.concatenate([output for output, _, _ in left_out_outputs(spectrum, rows, gamma)])


@pytest.mark.parametrize("sentinel", SENTINELS)
@intercepts
def test_a_sentinel_is_left_out_as_a_refit_leaves_it_out(sentinel, intercept):
    H, T = lone(sentinel)
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    for gamma in (1e-6, 1.0, 1e6):
        exact, _ = without_one(H, T, gamma, intercept, np.ones(20))
        np.testing.assert_allclose(outputs(spectrum, rows_of(H, T), gamma), exact, rtol=1e-10, atol=1e-10)
        lost = np.sum((T - exact) ** 2)
        assert press(spectrum, rows_of(H, T), np.array([gamma]))[0] == pytest.approx(lost, rel=1e-10)


@pytest.mark.parametrize("sentinel", SENTINELS)
@intercepts
def test_with_more_features_than_rows_a_sentinel_costs_no_more_digits_than_it_has(sentinel, intercept):
    H, T = lone(sentinel, 10, 12)
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    backwards = RowBlocks(lambda: iter([(H[::-1], T[::-1], None)]))
    exact, _ = without_one(H, T, 0.1, intercept, np.ones(10))
    tolerance = 1e3 * np.finfo(float).eps * sentinel
    np.testing.assert_allclose(outputs(spectrum, rows_of(H, T), 0.1), exact, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(outputs(spectrum, backwards, 0.1)[::-1], exact, rtol=tolerance, atol=tolerance)


@intercepts
def test_weights_and_several_targets(intercept):
    H, T = lone(1e10, n_targets=2)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 20)
    weight[3] = 0.0
    spectrum, rows = Factor.of(H, T, sample_weight=weight, intercept=intercept).spectrum(), rows_of(H, T, weight)
    exact = [without_one(H, T, gamma, intercept, weight)[0] for gamma in (0.5, 80.0)]
    each = np.stack([exact[0][:, 0], exact[1][:, 1]], axis=1)
    np.testing.assert_allclose(outputs(spectrum, rows, np.array([0.5, 80.0])), each, rtol=1e-10)
    lost = [np.sum(weight[:, None] * (T - e) ** 2, axis=0) for e in exact]
    np.testing.assert_allclose(press_by_target(spectrum, rows, np.array([[0.5], [80.0]])), lost, rtol=1e-10)


@intercepts
def test_of_a_sentinel_seen_twice_one_is_left_out(intercept):
    H, T = lone(1e10)
    weight = 1.0 + np.arange(20) % 2
    spectrum, rows = Factor.of(H, T, sample_weight=weight, intercept=intercept).spectrum(), rows_of(H, T, weight)
    exact, _ = without_one(H, T, 0.5, intercept, weight, one=True)
    np.testing.assert_allclose(outputs(spectrum, rows, 0.5), exact, rtol=1e-10, atol=1e-10)


@intercepts
def test_errors_over_their_deviation_equal_refits(intercept):
    H, T = lone(1e10)
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    errors = np.concatenate([e for e, _ in left_out_errors(spectrum, rows_of(H, T), 0.5)])
    exact, spread = without_one(H, T, 0.5, intercept, np.ones(20))
    np.testing.assert_allclose(errors, (T - exact) / spread[:, None], rtol=1e-10, atol=1e-10)


@intercepts
def test_of_several_sentinels_each_is_left_out_among_the_others(intercept):
    H, T = lone(1e9)
    H[11, 2] = -3e9
    exact, _ = without_one(H, T, 0.5, intercept, np.ones(20))
    ours = outputs(Factor.of(H, T, intercept=intercept).spectrum(), rows_of(H, T), 0.5)
    np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=1e-5)  # 100·ε·κ of the refits


def test_ordinary_rows_and_rows_that_alone_decide_a_column_are_not_refitted(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("refitted")

    monkeypatch.setattr("ocrep._linalg.leave_one_out.refits", fail)
    H, T = lone(1.0, 60, 12)
    H[:, 5] = np.arange(60) == 9
    press(Factor.of(H, T, intercept=True).spectrum(), rows_of(H, T), np.array([1.0]))
    PinvRegressor(40, gamma="loo", random_state=0).fit(H, T[:, 0])
    for n_rows in (11, 12, 60):  # of condition 10⁸ and more
        H = np.vander(np.linspace(0.0, 1.0, n_rows), 12)
        press(Factor.of(H, H[:, :1], intercept=True).spectrum(), rows_of(H, H[:, :1]), np.array([1e-20]))
    with pytest.raises(AssertionError, match="refitted"):
        TikhonovRegressor("loo").fit(*lone(1e10))
