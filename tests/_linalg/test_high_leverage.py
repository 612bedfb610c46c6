"""Leave-one-out of rows of leverage near 1, such as a sentinel of 10¹⁰ in a column of ordinary numbers."""

import mpmath as mp
import numpy as np
import pytest
from support.device import on_device, to_numpy
from support.encoded import counted, encoded_rows

from ocrep import Factor
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


def with_sentinel(sentinel, n=20, n_features=4, n_targets=1):
    rng = np.random.default_rng(0)
    H, T = rng.standard_normal((n, n_features)), rng.standard_normal((n, n_targets))
    H[7, 1] = sentinel
    return H, T + H[:, :1]


def rows_of(H, T, weight=None, block=6):
    return encoded_rows(H, T, weight, block=block)


def over_deviations(spectrum, rows, gamma, back=np.asarray):
    """Errors of rows left out over their standard deviation in units of the noise."""
    return np.concatenate([back(e) / np.sqrt(1.0 + back(v)) for e, v, _ in left_out_errors(spectrum, rows, gamma)])


def outputs(spectrum, rows, gamma):
    return np.concatenate([output for output, _, _ in left_out_outputs(spectrum, rows, gamma)])


@pytest.mark.parametrize("sentinel", SENTINELS)
@intercepts
def test_a_sentinel_is_left_out_as_a_refit_leaves_it_out(sentinel, intercept):
    H, T = with_sentinel(sentinel)
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    for gamma in (1e-6, 1.0, 1e6):
        exact, _ = without_one(H, T, gamma, intercept, np.ones(20))
        np.testing.assert_allclose(outputs(spectrum, rows_of(H, T), gamma), exact, rtol=1e-10, atol=1e-10)
        lost = np.sum((T - exact) ** 2)
        assert press(spectrum, rows_of(H, T), np.array([gamma]))[0] == pytest.approx(lost, rel=1e-10)


@pytest.mark.parametrize("sentinel", SENTINELS)
@intercepts
def test_with_more_features_than_rows_a_sentinel_costs_no_more_digits_than_it_has(sentinel, intercept):
    H, T = with_sentinel(sentinel, 10, 12)
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    backwards = encoded_rows(H[::-1], T[::-1])
    exact, _ = without_one(H, T, 0.1, intercept, np.ones(10))
    tolerance = 1e3 * np.finfo(float).eps * sentinel
    np.testing.assert_allclose(outputs(spectrum, rows_of(H, T), 0.1), exact, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(outputs(spectrum, backwards, 0.1)[::-1], exact, rtol=tolerance, atol=tolerance)


@intercepts
def test_weights_and_several_targets(intercept):
    H, T = with_sentinel(1e10, n_targets=2)
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
    H, T = with_sentinel(1e10)
    weight = 1.0 + np.arange(20) % 2
    spectrum, rows = Factor.of(H, T, sample_weight=weight, intercept=intercept).spectrum(), rows_of(H, T, weight)
    exact, _ = without_one(H, T, 0.5, intercept, weight, one=True)
    np.testing.assert_allclose(outputs(spectrum, rows, 0.5), exact, rtol=1e-10, atol=1e-10)


@intercepts
def test_errors_over_their_deviation_equal_refits(intercept):
    H, T = with_sentinel(1e10)
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    errors = over_deviations(spectrum, rows_of(H, T), 0.5)
    exact, spread = without_one(H, T, 0.5, intercept, np.ones(20))
    np.testing.assert_allclose(errors, (T - exact) / spread[:, None], rtol=1e-10, atol=1e-10)


@intercepts
def test_of_several_sentinels_each_is_left_out_among_the_others(intercept):
    H, T = with_sentinel(1e9)
    H[11, 2] = -3e9
    exact, _ = without_one(H, T, 0.5, intercept, np.ones(20))
    ours = outputs(Factor.of(H, T, intercept=intercept).spectrum(), rows_of(H, T), 0.5)
    np.testing.assert_allclose(ours, exact, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sentinel", [1e5, 1e8, 1e10])
@pytest.mark.parametrize("n_features", [1, 4])
@intercepts
def test_a_sentinel_in_every_column_is_left_out_as_refits_leave_it_out(sentinel, n_features, intercept):
    """All directions are then decided by one row each, and what the other rows say is rounding in comparison."""
    H, T = with_sentinel(1.0)
    H = H[:, :n_features].copy()
    H[np.arange(n_features), np.arange(n_features)] = sentinel * (1.0 + np.arange(n_features))
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    for gamma in (1e-6, 1.0, 1e6):
        exact, spread = without_one(H, T, gamma, intercept, np.ones(20))
        np.testing.assert_allclose(outputs(spectrum, rows_of(H, T), gamma), exact, rtol=1e-8, atol=1e-8)
        errors = over_deviations(spectrum, rows_of(H, T), gamma)
        np.testing.assert_allclose(errors, (T - exact) / spread[:, None], rtol=1e-8, atol=1e-8)


def test_without_the_sentinel_there_are_more_directions():
    """Beside 10¹⁷ all other columns are below the rank tolerance."""
    H, T = with_sentinel(1e17)
    exact, _ = without_one(H, T, 1.0, True, np.ones(20))
    ours = outputs(Factor.of(H, T, intercept=True).spectrum(), rows_of(H, T), 1.0)
    np.testing.assert_allclose(ours[7], exact[7], rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 1e-300])
@intercepts
def test_columns_that_only_such_rows_have_need_no_penalty(gamma, intercept):
    H = np.zeros((12, 2))
    H[0, 0], H[1] = 1e10, [1.0, 1.0]
    T = np.arange(12.0)[:, None]
    spectrum = Factor.of(H, T, intercept=intercept).spectrum()
    ours = outputs(spectrum, rows_of(H, T), gamma)
    assert np.isfinite(ours).all()
    # The first row is fitted by its own column, and the others know nothing of the second: they predict their mean.
    assert ours[1, 0] == pytest.approx(T[2:].mean() if intercept else 0.0, abs=1e-6)
    assert np.isfinite(press(spectrum, rows_of(H, T), np.array([gamma]))).all()


def test_ordinary_rows_and_rows_that_alone_decide_a_column_are_read_once():
    H, T = with_sentinel(1.0, 60, 12)
    H[:, 5] = np.arange(60) == 9
    problems = [(H, T, 1.0)]
    for n_rows in (11, 12, 60):  # of condition 10⁸ and more
        powers = np.vander(np.linspace(0.0, 1.0, n_rows), 12)
        problems.append((powers, powers[:, :1], 1e-20))
    for H, T, gamma in problems:
        rows, reads = counted(rows_of(H, T))
        press(Factor.of(H, T, intercept=True).spectrum(), rows, np.array([gamma]))
        assert len(reads) <= 1
    rows, reads = counted(rows_of(*with_sentinel(1e10)))
    press(Factor.of(*with_sentinel(1e10), intercept=True).spectrum(), rows, np.array([1.0]))
    assert len(reads) > 1


def singles(n_single, n=400, seed=0, n_targets=1):
    """Columns each of which is 1 in one row only, and units so alike that H is nearly singular."""
    rng = np.random.default_rng(seed)
    X, E = rng.uniform(-1.0, 1.0, (n, 2)), np.zeros((n, n_single))
    E[np.arange(n_single), np.arange(n_single)] = 1.0
    H = np.hstack(
        [np.tanh(X @ rng.uniform(-1.0, 1.0, (2, 40)) + rng.uniform(-1.0, 1.0, 40) + 0.1 * E.sum(1)[:, None]), E]
    )
    return H, np.sin(3.0 * X[:, :1]) + 0.1 * rng.standard_normal((n, n_targets))


def refitted_without(H, T, gamma, intercept, weight, row):
    """The output at a row of a fit without it, by least squares of the rows over √γ·I, which squares nothing."""
    kept = np.where(np.arange(len(H)) == row, 0.0, weight)
    ones = intercept / kept.sum() * kept
    mean_H, mean_T, root = ones @ H, ones @ T, np.sqrt(kept)[:, None]
    A = np.vstack([root * (H - mean_H), gamma**0.5 * np.eye(H.shape[1])])
    b = np.vstack([root * (T - mean_T), np.zeros((H.shape[1], T.shape[1]))])
    return mean_T + (H[row] - mean_H) @ np.linalg.lstsq(A, b, rcond=None)[0]


@pytest.mark.parametrize("gamma", [1e-8, 1e-4, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@intercepts
def test_many_rows_that_alone_decide_a_column_equal_refits(gamma, weighted, intercept):
    H, T = singles(60, n_targets=2)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(H)) if weighted else np.ones(len(H))
    rows = rows_of(H, T, weight if weighted else None, block=97)
    spectrum = Factor.of(H, T, sample_weight=weight, intercept=intercept).spectrum()
    ours = outputs(spectrum, rows, gamma)
    some = [0, 7, 59, 60, 399]
    exact = np.stack([refitted_without(H, T, gamma, intercept, weight, row) for row in some])
    np.testing.assert_allclose(ours[some], exact, rtol=1e-7, atol=1e-7)
    lost = press_by_target(spectrum, rows, np.array([[gamma]]))[0]
    np.testing.assert_allclose(lost, np.sum(weight[:, None] * (T - ours) ** 2, axis=0), rtol=1e-8)


def test_one_of_equal_rows_that_decide_a_column_equals_a_refit():
    H, T = singles(30)
    weight = 1.0 + np.arange(len(H)) % 3
    ours = outputs(Factor.of(H, T, sample_weight=weight).spectrum(), rows_of(H, T, weight, block=97), 1e-6)
    for row in (0, 1, 2, 29):
        repeated = np.repeat(np.arange(len(H)), weight.astype(int))
        one = int(np.searchsorted(repeated, row))
        exact = refitted_without(H[repeated], T[repeated], 1e-6, False, np.ones(len(repeated)), one)
        np.testing.assert_allclose(ours[row], exact, rtol=1e-7, atol=1e-7)


def test_a_gamma_for_each_target_is_that_of_the_target_alone():
    H, T = singles(30, n_targets=3)
    spectrum, rows, gamma = (
        Factor.of(H, T, intercept=True).spectrum(),
        rows_of(H, T, block=97),
        np.array([1e-6, 1e-2, 1e-6]),
    )
    both = outputs(spectrum, rows, gamma)
    errors = over_deviations(spectrum, rows, gamma)
    for q, g in enumerate(gamma.tolist()):
        np.testing.assert_allclose(both[:, q], outputs(spectrum, rows, g)[:, q], rtol=1e-7, atol=1e-7)
        alone = over_deviations(spectrum, rows, g)[:, q]
        np.testing.assert_allclose(errors[:, q], alone, rtol=1e-7, atol=1e-7)


def test_arrays_of_another_library_give_the_same():
    H, T = singles(30, n_targets=2)
    found = []
    for put, back in ((np.asarray, np.asarray), (on_device, to_numpy)):
        rows, spectrum = rows_of(put(H), put(T), block=97), Factor.of(put(H), put(T), intercept=True).spectrum()
        left_out = np.concatenate([back(output) for output, _, _ in left_out_outputs(spectrum, rows, 1e-4)])
        errors = over_deviations(spectrum, rows, 1e-4, back)
        found.append((left_out, errors, back(press(spectrum, rows, put(np.array([1e-4, 1.0]))))))
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "make", [singles, lambda m: (with_sentinel(1.0, 700, m)[0] + 1e10 * np.eye(700, m), with_sentinel(1.0, 700, m)[1])]
)
def test_work_does_not_grow_with_the_number_of_such_rows(make, monkeypatch):
    """Neither passes over the rows nor factorizations: 150 sentinels once took as many refits."""
    calls = []
    svd = np.linalg.svd
    monkeypatch.setattr(np.linalg, "svd", lambda *args, **options: calls.append(1) or svd(*args, **options))
    for n_single in (20, 300):
        H, T = make(n_single)
        spectrum = Factor.of(H, T, intercept=True).spectrum()
        calls.clear()
        rows, reads = counted(rows_of(H, T))
        found = press(spectrum, rows, np.array([1e-3, 1.0]))
        assert np.isfinite(found).all()
        assert len(reads) <= 4
        assert len(calls) <= 1
