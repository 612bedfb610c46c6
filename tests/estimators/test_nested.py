"""Fits inside other parallel work: the same answers, no more threads than asked for, and forks that work."""

import multiprocessing
import threading

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from ocrep import PinvRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(40_000, 4))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(len(X))


def fit(gamma="kfold"):
    return PinvRegressor(60, gamma=gamma, random_state=0).fit(X, Y)


def test_eight_threads_that_fit_at_once_share_the_workers(workers):
    workers(4)
    expected, started, found = fit(), threading.active_count(), []
    counts = []

    def work():
        found.append(fit())
        counts.append(threading.active_count())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The eight callers, and never more workers than cores.
    assert max(counts) <= started + 8 + 4
    # Each had as many workers as were free, and Gram matrices summed in another order prove γ to 1e-6.
    for model in found:
        np.testing.assert_allclose(model.predict(X[:50]), expected.predict(X[:50]), atol=2e-9)
        assert model.gamma_ == pytest.approx(expected.gamma_, rel=1e-6)
    assert threading.active_count() == started


def test_grid_search_in_processes_gives_the_same_answers():
    search = GridSearchCV(PinvRegressor(20, random_state=0), {"gamma": ["ocrep", "kfold"]}, cv=2, n_jobs=2)
    alone = GridSearchCV(PinvRegressor(20, random_state=0), {"gamma": ["ocrep", "kfold"]}, cv=2)
    scores = [s.fit(X[:4000], Y[:4000]).cv_results_["mean_test_score"] for s in (search, alone)]
    np.testing.assert_allclose(*scores, rtol=1e-9)


def test_a_limit_of_the_user_counts():
    at_work = set()

    def activation(Z):
        at_work.add(threading.current_thread())
        return np.tanh(Z)

    with threadpool_limits(1, user_api="blas"):
        one = PinvRegressor(60, activation=activation, gamma="ocrep", random_state=0).fit(X, Y)
    assert at_work == {threading.main_thread()}
    several = PinvRegressor(60, activation="tanh", gamma="ocrep", random_state=0).fit(X, Y)
    # Predictions are of size 1, and some are close to zero.
    np.testing.assert_allclose(one.predict(X[:50]), several.predict(X[:50]), atol=2e-9)


def _in_child(queue):
    queue.put(fit("ocrep").gamma_)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_a_fork_right_after_a_fit_works(workers):
    workers(4)
    expected = fit("ocrep").gamma_
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == pytest.approx(expected, rel=1e-9)
    child.join(60)
    assert child.exitcode == 0
