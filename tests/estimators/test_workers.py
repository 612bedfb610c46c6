"""Fits on several workers: the answers of one, errors as on one, and BLAS and the rows left as they were."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, TikhonovRegressor

X = np.random.default_rng(0).uniform(-1, 1, size=(40_000, 4))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("solver", ["auto", "qr"])
def test_workers_share_the_rows_and_blas_has_one_thread_each(workers, solver):
    workers(3)
    before, during, at_work, busy = blas_threads(), [], set(), threading.Lock()

    def activation(Z):
        at_work.add(threading.current_thread())
        if busy.acquire(blocking=False):  # another fit begins and ends while this one is at work
            RandomLayer(3, random_state=0).fit_transform(X[:9])
            busy.release()
        during.append(blas_threads())
        return np.tanh(Z)

    PinvRegressor(60, activation=activation, solver=solver, gamma="ocrep", random_state=0).fit(X, X[:, 0])
    assert len(at_work) > 2
    assert during[1:] == [[1] * len(before)] * (len(during) - 1)  # the first block is looked at by all threads
    assert blas_threads() == before
    assert not any(thread.is_alive() for thread in at_work - {threading.main_thread()})


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("solver", ["auto", "qr"])
def test_a_fit_that_is_interrupted_leaves_the_model_as_it_was(workers, solver, failure):
    workers(2)
    calls = []

    def activation(Z):
        calls.append(threading.current_thread())
        if failing and threading.current_thread() is not threading.main_thread():
            raise failure
        return np.tanh(Z)

    failing, n_threads, blas = False, threading.active_count(), blas_threads()
    model = PinvRegressor(60, activation=activation, solver=solver, gamma="ocrep", random_state=0).fit(X, X[:, 0])
    before, failing = dict(vars(model)), True
    with pytest.raises(failure):
        model.fit(X, X[:, 1])
    assert vars(model) == before
    assert threading.active_count() == n_threads
    assert blas_threads() == blas


@pytest.mark.parametrize("activation", ["sigmoid", "relu", "hardlimit", "gaussian", "identity"])
@pytest.mark.parametrize("n_rows", [1, 5, 4097])
def test_layers_are_the_same_to_the_last_bit_on_any_number_of_workers(workers, activation, n_rows):
    layer = RandomLayer(300, activation=activation, direct_link=True, random_state=0).fit(X)
    workers(1)
    expected = layer.transform(X[:n_rows])
    for number in (2, 3, 8):
        workers(number)
        np.testing.assert_array_equal(layer.transform(X[:n_rows]), expected)


def test_predictions_are_the_same_to_the_last_bit_on_any_number_of_threads(workers):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 5))
    y = X[:, :2] + rng.standard_normal((4000, 2))
    model = PinvRegressor(200, random_state=0).fit(X, y)
    workers(1)
    one = model.predict(X)
    workers(3)
    np.testing.assert_array_equal(model.predict(X), one)


def test_single_precision_predicts_nearly_the_same():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 5)) + 1e4
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(2000)
    model = PinvRegressor(100, random_state=0).fit(X, y)
    single = model.as_float32()
    assert single.output_coef_.dtype == single.layer_.map_.weights.dtype == np.float32
    assert model.output_coef_.dtype == model.layer_.map_.weights.dtype == np.float64
    difference = np.abs(single.predict(X) - model.predict(X)).max()
    assert 0.0 < difference <= 1e-6 * max(1.0, np.linalg.norm(model.output_coef_))
    with pytest.raises(ValueError, match="for prediction only"):
        single.partial_fit(X, y)
    labels = (y > 0).astype(int)
    classifier = PinvClassifier(100, random_state=0).fit(X, labels)
    assert (classifier.as_float32().predict(X) == classifier.predict(X)).mean() > 0.999


@pytest.mark.parametrize("weight_init", ["uniform", "orthogonal"])
@pytest.mark.parametrize("solver", ["auto", "qr"])
def test_fits_agree_on_any_number_of_threads_and_repeat_to_the_last_bit(workers, solver, weight_init):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60_000, 3))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(60_000)
    found = []
    for number in (1, 3, 3):
        workers(number)
        model = PinvRegressor(60, weight_init=weight_init, solver=solver, fit_intercept=True, random_state=0).fit(X, y)
        found.append((model.gamma_, model.output_coef_))
    assert found[1][0] == found[2][0]
    np.testing.assert_array_equal(found[1][1], found[2][1])
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-6 * np.abs(found[0][1]).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kappa", [1e1, 1e8])
def test_workers_never_write_into_the_rows_that_they_were_given(workers, kappa, intercept, weighted):
    """Workers overwrite features that they form themselves, and features that the user brings are not theirs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 40))
    X[:, 1] = X[:, 0] + X[:, 1] / kappa
    y, weight = X[:, :5].sum(axis=1), rng.integers(0, 3, len(X)).astype(float) if weighted else None
    before, found = X.copy(), []
    for number, solver in ((1, "qr"), (1, "auto"), (3, "auto")):
        workers(number)
        model = TikhonovRegressor("ocrep", fit_intercept=intercept, solver=solver).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(X, before)
        found.append((model.gamma_, model.predict(X[:50])))
    for gamma, predictions in found[1:]:
        assert gamma == pytest.approx(found[0][0], rel=1e-6)
        np.testing.assert_allclose(predictions, found[0][1], atol=1e-8)
