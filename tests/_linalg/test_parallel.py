"""Work on chunks: every row once, the same result on any number of threads, BLAS left as it was."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, TikhonovRegressor
from ocrep._linalg import parallel
from ocrep._linalg.gram import GramSums
from ocrep._linalg.parallel import (
    BLOCK_ENTRIES,
    THREAD_ENTRIES,
    WIDEST_SHARED,
    WORKER_ENTRIES,
    accumulate,
    chunk_rows,
    item_rows,
    on_chunks,
    one_blas_thread,
    worker_count,
    workers_for,
)
from ocrep._linalg.parallel import CHUNK_ENTRIES as CHUNK
from ocrep._linalg.passes import reflected_rows


@pytest.fixture
def threads(monkeypatch):
    def use(number):
        monkeypatch.setattr(parallel, "_blas_threads", lambda: number)

    return use


@pytest.mark.parametrize("number", [1, 2, 3, 8])
@pytest.mark.parametrize("n_rows", [0, 1, 5, 1000, 4097])
def test_every_row_is_worked_on_once(threads, number, n_rows):
    threads(number)
    seen = np.zeros(n_rows, dtype=int)

    def work(chunk):
        seen[chunk] += 1

    on_chunks(lambda height: work, n_rows, THREAD_ENTRIES // 100)
    assert (seen == 1).all()


def test_several_threads_share_the_work_and_blas_is_left_as_it_was(threads):
    def blas_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    threads(3)
    before, during, names = blas_threads(), [], set()

    def work(chunk):
        names.add(threading.current_thread().name)
        during.append(blas_threads())
        # Another caller begins and ends while this one is at work.
        on_chunks(lambda height: lambda part: None, 100, THREAD_ENTRIES)

    on_chunks(lambda height: work, 9 * 16, THREAD_ENTRIES)
    assert len(names) > 1
    assert during == [[1] * len(before)] * 9
    assert blas_threads() == before


def test_an_error_in_a_thread_is_raised(threads):
    threads(2)

    def work(chunk):
        if chunk.start >= 80:
            raise FloatingPointError("here")

    with pytest.raises(FloatingPointError, match="here"):
        on_chunks(lambda height: work, 10 * 16, THREAD_ENTRIES)


def test_the_number_of_workers_follows_limits_of_the_user_and_the_machine(monkeypatch):
    with threadpool_limits(1, user_api="blas"):
        assert worker_count() == 1
    monkeypatch.setattr(parallel, "cpu_count", lambda: 1)
    assert worker_count() == 1


@pytest.mark.parametrize("variable", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
def test_the_number_of_workers_follows_the_variables_of_blas(variable):
    variables = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    code = "from ocrep._linalg.parallel import worker_count; import numpy; print(worker_count())"
    told = subprocess.run(
        [sys.executable, "-c", code], env={**variables, variable: "1"}, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "1"


def test_accelerate_is_limited_by_its_own_variable(monkeypatch):
    class Silent:
        def info(self):
            return []

    monkeypatch.setattr(parallel, "_controller", Silent)
    monkeypatch.setattr(parallel, "cpu_count", lambda: 8)
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "3")
    assert parallel._blas_threads() == 3
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "many")
    assert parallel._blas_threads() == 8


def test_workers_in_use_are_not_given_out_again(threads):
    threads(4)
    left = []

    def step(state, item):
        left.append(worker_count())
        return item

    parallel.accumulate(step, iter(range(6)), 3)
    assert set(left) == {1}
    assert worker_count() == 4
    assert parallel.at_once(lambda item: item + 1, [1, 2, 3]) == [2, 3, 4]


@pytest.mark.parametrize("waiting", [2, 5])
def test_so_many_items_wait_for_each_worker(threads, waiting):
    """Workers that do not begin before all these items have been read would wait forever if fewer could wait."""
    threads(2)
    enough = threading.Event()

    def items():
        for number in range(20):
            if number == 2 * waiting + 1:
                enough.set()
            yield number

    def step(state, item):
        assert enough.wait(60)
        return [*(state or []), item]

    found = accumulate(step, items(), 2, waiting=waiting)
    assert found == [list(range(0, 20, 2)), list(range(1, 20, 2))]


def test_a_slow_worker_does_not_make_the_others_wait(threads):
    """The worker that has the first item goes on when all items of the other states are done: by the other worker."""
    threads(2)
    others, lock, done = threading.Event(), threading.Lock(), []

    def step(state, item):
        if item == 0:
            assert others.wait(60)
        elif item % 4:
            with lock:
                done.append(item)
                if len(done) == 9:
                    others.set()
        return [*(state or []), item]

    found = accumulate(step, iter(range(12)), 2, waiting=6, states_each=2)
    assert found == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]


@pytest.mark.parametrize("activation", ["sigmoid", "relu", "hardlimit", "gaussian", "identity"])
@pytest.mark.parametrize("direct_link", [False, True])
def test_layers_are_the_same_to_the_last_bit_on_any_number_of_threads(threads, activation, direct_link):
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 5))
    layer = RandomLayer(300, activation=activation, direct_link=direct_link, random_state=0).fit(X)
    results = []
    for number in (1, 2, 4):
        threads(number)
        results.append(layer.transform(X))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_predictions_are_the_same_to_the_last_bit_on_any_number_of_threads(threads):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 5))
    y = X[:, :2] + rng.standard_normal((4000, 2))
    model = PinvRegressor(200, random_state=0).fit(X, y)
    threads(1)
    one = model.predict(X)
    threads(3)
    np.testing.assert_array_equal(model.predict(X), one)


def test_single_precision_predicts_nearly_the_same():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 5)) + 1e4
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
    model = PinvRegressor(100, random_state=0).fit(X, y)
    single = model.as_float32()
    assert single.coef_.dtype == single.layer_.map_.weights.dtype == np.float32
    assert model.coef_.dtype == model.layer_.map_.weights.dtype == np.float64
    difference = np.abs(single.predict(X) - model.predict(X)).max()
    assert 0.0 < difference <= 1e-6 * max(1.0, np.linalg.norm(model.coef_))
    with pytest.raises(ValueError, match="for prediction only"):
        single.partial_fit(X, y)
    labels = (y > 0).astype(int)
    classifier = PinvClassifier(100, random_state=0).fit(X, labels)
    assert (classifier.as_float32().predict(X) == classifier.predict(X)).mean() > 0.999


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_workers_take_items_in_turn(threads, workers):
    threads(workers)

    def step(state, item):
        return [*(state or []), item]

    expected = [list(range(worker, 5, workers)) for worker in range(min(workers, 5))]
    assert accumulate(step, iter(range(5)), workers) == expected
    assert accumulate(step, iter(()), workers) == []
    begun = accumulate(step, iter(range(5)), workers, [-1])
    assert begun == [[-1, *expected[0]], *expected[1:]]


def test_an_error_in_a_worker_is_raised(threads):
    threads(2)

    def step(state, item):
        raise FloatingPointError(str(item))

    with pytest.raises(FloatingPointError, match=r"[01]"):
        accumulate(step, iter(range(5)), 2)


@pytest.mark.parametrize("weight_init", ["uniform", "orthogonal"])
@pytest.mark.parametrize("solver", ["auto", "qr"])
def test_fits_agree_on_any_number_of_threads_and_repeat_to_the_last_bit(threads, solver, weight_init):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60_000, 3))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(60_000)
    found = []
    for number in (1, 3, 3):
        threads(number)
        model = PinvRegressor(60, weight_init=weight_init, solver=solver, fit_intercept=True, random_state=0).fit(X, y)
        found.append((model.gamma_, model.coef_))
    assert found[1][0] == found[2][0]
    np.testing.assert_array_equal(found[1][1], found[2][1])
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-6 * np.abs(found[0][1]).max())


def test_workers_and_their_memory_are_bounded_however_many_threads_there_are(threads):
    for number, workers in ((1, 1), (2, 2), (16, 16)):
        threads(number)
        assert workers_for(500, 3 * CHUNK // 500) == workers
    threads(1000)
    for n_features, n_rows, n_held in ((500, 5000, 1), (300, 4500, 3), (1024, 2560, 1)):
        each = n_rows * n_features + (n_held + 1) * n_features**2
        assert workers_for(n_features, n_rows, n_held) * each <= WORKER_ENTRIES
    assert workers_for(WIDEST_SHARED, 8) > 1
    assert workers_for(WIDEST_SHARED + 1, 8) == 1


def test_workers_share_the_threads_of_blas(threads):
    def step(state, item):
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    threads(2)
    assert accumulate(step, iter(range(2)), 2) == [{1}, {1}]
    assert accumulate(step, iter(range(4)), 4) == [{1}] * 2  # there are but two
    threads(4)
    assert accumulate(step, iter(range(4)), 4) == [{1}] * 4
    assert max(max(found) for found in accumulate(step, iter(range(2)), 2)) in (1, 2)  # BLAS may have but one


def test_blas_is_limited_once_for_all_callers_and_let_free_by_the_last(monkeypatch):
    told = []

    class Limit:
        def restore_original_limits(self):
            told.append("free")

    class Controller:
        def limit(self, *, limits, user_api):
            told.append((limits, user_api))
            return Limit()

    monkeypatch.setattr(parallel, "_controller", Controller)
    monkeypatch.setattr(parallel, "_blas_threads", lambda: 6)
    blas = parallel._Blas()
    first, second = blas.divided_among(4), blas.divided_among(3)
    assert first.__enter__() == 4
    assert second.__enter__() == 2  # no more are free
    first.__exit__(None, None, None)
    assert told == [(1, "blas")]
    second.__exit__(None, None, None)
    assert told == [(1, "blas"), "free"]
    with blas.divided_among(12) as workers:
        assert workers == 6
        with blas.divided_among(5) as more:
            assert more == 1
        assert told[2:] == [(1, "blas")]
    assert told[3:] == ["free"]


@pytest.mark.parametrize("source", ["worker", "reader", "interrupt"])
def test_a_failure_stops_all_workers_and_frees_blas(threads, source):
    threads(3)
    before, done = threading.active_count(), []

    def items():
        for number in range(1000):
            if number == 20 and source != "worker":
                raise KeyboardInterrupt if source == "interrupt" else OSError("file 20")
            yield number

    def step(state, item):
        if item == 20:
            raise OSError("file 20")
        done.append(item)
        return item

    with pytest.raises(KeyboardInterrupt if source == "interrupt" else OSError):
        accumulate(step, items(), 3)
    assert threading.active_count() == before
    assert len(done) < 30
    assert worker_count() == 3


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt, in processes too that were started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_the_last_items_are_worked_on_stops_all_workers(threads, interrupts):
    """All items have been read, and the caller waits for the workers: they would need 25 seconds more."""
    threads(2)
    before, done = threading.active_count(), []

    def step(state, item):
        done.append(item)
        if item == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if item >= 2:
            time.sleep(0.05)
        return item

    with pytest.raises(KeyboardInterrupt):
        accumulate(step, iter(range(1000)), 2, waiting=1000)
    assert threading.active_count() == before
    assert len(done) < 500
    assert worker_count() == 2


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_a_fit_that_is_interrupted_leaves_the_model_as_it_was(threads, failure, monkeypatch):
    threads(2)
    X = np.random.default_rng(0).uniform(-1, 1, size=(60_000, 8))
    model = PinvRegressor(60, random_state=0).fit(X, X[:, 0])
    before, n_threads, calls = dict(vars(model)), threading.active_count(), itertools.count()
    add = GramSums.add

    def fails(sums, *block):
        if next(calls) == 3:
            raise failure
        return add(sums, *block)

    monkeypatch.setattr(GramSums, "add", fails)
    with pytest.raises(failure):
        model.fit(X, X[:, 1])
    assert vars(model) == before
    assert threading.active_count() == n_threads
    assert worker_count() == 2


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("n_held", [1, 3])
@pytest.mark.parametrize("n_features", [50, 300, 500])
def test_chunks_grow_with_the_workers_as_far_as_memory_allows(copies, n_held, n_features):
    heights = [chunk_rows(n_features, workers, copies=copies, n_held=n_held) for workers in (1, 2, 4, 8, 16)]
    assert heights[0] == heights[1] == CHUNK // n_features
    for workers, height in zip((4, 8, 16), heights[2:], strict=True):
        assert heights[0] <= height <= BLOCK_ENTRIES // n_features
        held = copies * height * n_features + (n_held + 1) * n_features**2
        assert height == heights[0] or workers * held <= WORKER_ENTRIES
    if copies == 1:
        assert heights[2] > heights[1]


@given(st.integers(1, 5000), st.integers(1, 16), st.integers(1, 5), st.integers(1, 10**6))
def test_every_worker_takes_as_many_items_of_equal_height(chunk, workers, n_folds, n_rows):
    height = item_rows(chunk, workers, n_folds, n_rows)
    assert 1 <= height <= max(1, n_folds * chunk)
    n_items = -(-n_rows // height)
    rounds = -(-n_items // workers)
    # No worker has more rows than its share and what rounding adds to each of its items.
    assert rounds * height <= n_rows / workers + rounds + height * (n_items < workers)
    assert item_rows(chunk, workers, n_folds, None) >= height


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kappa", [1e1, 1e8])
def test_workers_never_write_into_the_rows_that_they_were_given(threads, kappa, intercept, weighted):
    """Workers overwrite features that they form themselves, and features that the user brings are not theirs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 40))
    X[:, 1] = X[:, 0] + X[:, 1] / kappa
    y, weight = X[:, :5].sum(axis=1), rng.integers(0, 3, len(X)).astype(float) if weighted else None
    before, found = X.copy(), []
    for number, solver in ((1, "qr"), (1, "auto"), (3, "auto")):
        threads(number)
        model = TikhonovRegressor("ocrep", fit_intercept=intercept, solver=solver).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(X, before)
        found.append((model.gamma_, model.predict(X[:50])))
    for gamma, predictions in found[1:]:
        assert gamma == pytest.approx(found[0][0], rel=1e-6)
        np.testing.assert_allclose(predictions, found[0][1], atol=1e-8)


def test_blas_can_be_held_back_to_one_thread_around_workers(threads):
    threads(4)

    def limits():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = limits()
    with one_blas_thread():
        assert limits() == {1}
        assert worker_count() == 4
        assert accumulate(lambda state, item: item, iter(range(4)), 4) == [0, 1, 2, 3]
        assert limits() == {1}
    assert limits() == before


@pytest.mark.parametrize("workers", [1, 2, 8, 16, 64])
@pytest.mark.parametrize("width", [3, 100, 500, 1000])
def test_reflections_take_one_to_four_rows_per_column_so_that_all_workers_have_room(width, workers):
    height = reflected_rows(width, workers, copies=2)
    assert width <= height <= 4 * width
    held = 2 * height * width + 3 * width**2
    assert height == width or workers * held <= WORKER_ENTRIES


def test_reflections_of_500_features_use_16_workers(monkeypatch):
    monkeypatch.setattr(parallel, "_blas_threads", lambda: 16)
    assert workers_for(500, 2 * reflected_rows(500, 16, copies=2)) == 16
