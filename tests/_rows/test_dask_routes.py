"""Dask partitions take every route that rows in memory take: sums merge, and one proof at the end decides."""

from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest

from ocrep import TikhonovRegressor, rules
from ocrep._linalg.gram import PROVED_CONDITION

N, M, HEIGHT = 2400, 24, 200


@pytest.fixture(autouse=True)
def on_threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def problem(kappa, *, noise=0.5, seed=0):
    """H with singular values from 1 to 1/κ beside an offset, and a target of which a part is outside its range."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((N, M + 1)))
    V, _ = np.linalg.qr(rng.standard_normal((M, M)))
    signal = rng.standard_normal(M) * (np.arange(M) < 3)
    return (Q[:, :M] * np.geomspace(1.0, 1.0 / kappa, M)) @ V.T, Q[:, :M] @ signal + noise * Q[:, M]


class Counted:
    """Rows as Dask arrays, which count how often each partition is made."""

    def __init__(self, H, t, weight=None, heights=(HEIGHT,) * (N // HEIGHT)):
        self.reads = []
        edges = np.cumsum([0, *heights])
        parts = [
            da.map_blocks(self._made, i, H[a:b], dtype=float, chunks=((b - a,), (M,)), meta=np.empty((0, 0)))
            for i, (a, b) in enumerate(pairwise(edges))
        ]
        self.X = da.concatenate(parts)
        self.y = da.from_array(t, chunks=(heights,))
        self.weight = () if weight is None else (da.from_array(weight, chunks=(heights,)),)

    def _made(self, number, rows):
        self.reads.append(number)
        return rows

    def fit(self, **options):
        self.reads.clear()
        return TikhonovRegressor(**options).fit(self.X, self.y, *self.weight)

    @property
    def n_passes(self):
        """How often the last partition was made; a first block is not looked for there."""
        return self.reads.count(max(self.reads))


ROUTES = {
    "gram": (1e2, 1),
    "gram, at its limit": (0.7 * PROVED_CONDITION, 1),
    "gram, then refined": (1.4 * PROVED_CONDITION, 2),
    "refined by the first block": (1e8, 1),
    "reflections": (1e14, 1),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_every_route_gives_the_answer_of_reflections_in_memory(route, fit_intercept, weighted):
    kappa, n_passes = ROUTES[route]
    H, t = problem(kappa)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    rows = Counted(H, t, weight)
    for gamma in (1e-4, "kfold"):
        model = rows.fit(gamma=gamma, fit_intercept=fit_intercept)
        here = TikhonovRegressor(gamma, fit_intercept=fit_intercept, solver="qr").fit(H, t, weight)
        assert rows.n_passes == n_passes
        np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-6)
        exact = np.linalg.svd(H, compute_uv=False)[0]
        np.testing.assert_allclose(
            model.spectrum_.sigma, here.spectrum_.sigma, rtol=1e-6, atol=100 * M * np.finfo(float).eps * exact
        )
        np.testing.assert_allclose(model.predict(H), here.predict(H), atol=1e-7 * np.abs(t).max())


def test_rows_that_only_the_whole_shows_to_be_ill_conditioned_are_read_once_more():
    """Two features differ in the first partition and hardly in the others: the sums fail their proof, not the block."""
    H, t = problem(10.0)
    H[:, 1] = np.where(np.arange(N) < HEIGHT, 1e-9 * H[:, 1], 1e3 * H[:, 1])
    H[:, 1] += H[:, 0]
    H[HEIGHT:, 0] *= 1e-4
    rows = Counted(H, t)
    model = rows.fit(gamma=1e-8)
    here = TikhonovRegressor(1e-8, solver="qr").fit(H, t)
    assert rows.n_passes == 2
    np.testing.assert_allclose(model.spectrum_.sigma, here.spectrum_.sigma, rtol=1e-7)


@pytest.mark.parametrize(
    ("heights", "looks"), [((0, 3, 0, 1, 996, 1400), 1), ((10,) * 240, 0), ((2400,), 1), ((1, 2399), 1)]
)
def test_a_first_block_is_found_however_the_rows_are_cut(heights, looks):
    """`looks` counts those for a first block that reach the last partition; the Gram matrices then need one pass."""
    H, t = problem(1e2)
    rows = Counted(H, t, heights=heights)
    model, here = rows.fit(gamma="kfold"), TikhonovRegressor("kfold").fit(H, t)
    np.testing.assert_allclose(model.gamma_, here.gamma_, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-6, atol=1e-9)
    assert rows.n_passes == looks + 1


def test_first_partitions_that_do_not_count_give_no_shift():
    """Far from the others, their mean would cost the sums eight digits."""
    H, t = problem(1e2)
    far = np.arange(N) < 3 * HEIGHT
    weight = np.where(far, 0.0, 1.0)
    rows = Counted(np.where(far[:, None], H + 1e8, H), t, weight)
    model = rows.fit(gamma=1e-3)
    here = TikhonovRegressor(1e-3).fit(H[~far], t[~far])
    np.testing.assert_allclose(model.spectrum_.sigma, here.spectrum_.sigma, rtol=1e-11)
    assert rows.n_passes == 1


def test_solver_gram_raises_where_the_whole_proves_too_little():
    H, t = problem(1e8)
    with pytest.raises(ValueError, match="solver='gram' cannot promise"):
        Counted(H, t).fit(gamma="ocrep", solver="gram")


@pytest.mark.parametrize("kappa", [1e2, 1e8])
def test_one_answer_whatever_the_cuts_and_the_order_of_the_partitions(kappa):
    H, t = problem(kappa)
    plan = rules.KFold(n_folds=4, seed=3)
    one = Counted(H, t).fit(gamma=plan)
    order = np.random.default_rng(0).permutation(N)
    other = Counted(H[order], t[order], heights=(700, 300, 1400)).fit(gamma=plan)
    np.testing.assert_allclose(other.gamma_, one.gamma_, rtol=1e-6)
    gammas = np.logspace(-6, 0, 7)
    errors = [model.folds_.squared_errors(gammas) for model in (one, other)]
    np.testing.assert_allclose(*errors, rtol=1e-8)


@pytest.mark.parametrize(("gamma", "n_passes"), [(1e-3, 1), (1e-12, 2)])
def test_the_held_out_error_is_verified_where_the_rows_lie(gamma, n_passes):
    H, t = problem(1e4, noise=2.0)
    rows = Counted(H, t)
    rule = rules.KFold(grid=[gamma])
    model, here = rows.fit(gamma=rule), TikhonovRegressor(rule, solver="qr").fit(H, t)
    assert rows.n_passes == n_passes
    assert model.choice_.held_out_error == pytest.approx(here.choice_.held_out_error, rel=1e-10)
