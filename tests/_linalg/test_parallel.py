"""Sums by several workers: every item once, in order, on the threads that are free; BLAS is left as it was."""

import os
import signal
import subprocess
import sys
import threading
import time

import joblib
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from ocrep._linalg.parallel import at_once, one_blas_thread, share_items, worker_count


def test_the_number_of_workers_follows_limits_of_the_user_and_the_machine():
    with threadpool_limits(1, user_api="blas"):
        assert worker_count() == 1
    assert worker_count() <= joblib.cpu_count()


def test_accelerate_is_limited_by_its_own_variable(monkeypatch):
    """It does not say how many threads it uses."""
    monkeypatch.setattr(ThreadpoolController, "info", lambda self: [])
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "1")
    assert worker_count() == 1
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "many")
    assert worker_count() == joblib.cpu_count()


@pytest.mark.parametrize("variable", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
def test_the_number_of_workers_follows_the_variables_of_blas(variable):
    variables = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    code = "from ocrep._linalg.parallel import worker_count; import numpy; print(worker_count())"
    told = subprocess.run(
        [sys.executable, "-c", code], env={**variables, variable: "1"}, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "1"


def test_workers_in_use_are_not_given_out_again(workers):
    workers(4)
    left = []

    def step(state, item):
        left.append(worker_count())
        return item

    share_items(step, iter(range(6)), 3)
    assert set(left) == {1}
    assert worker_count() == 4
    assert at_once(lambda item: item + 1, [1, 2, 3]) == [2, 3, 4]


@pytest.mark.parametrize("waiting", [2, 5])
def test_so_many_items_wait_for_each_worker(workers, waiting):
    """Workers that do not begin before all these items have been read would wait forever if fewer could wait."""
    workers(2)
    enough = threading.Event()

    def items():
        for number in range(20):
            if number == 2 * waiting + 1:
                enough.set()
            yield number

    def step(state, item):
        assert enough.wait(60)
        return [*(state or []), item]

    found = share_items(step, items(), 2, waiting=waiting)
    assert found == [list(range(0, 20, 2)), list(range(1, 20, 2))]


def test_a_slow_worker_does_not_make_the_others_wait(workers):
    """The worker that has the first item goes on when all items of the other states are done: by the other worker."""
    workers(2)
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

    found = share_items(step, iter(range(12)), 2, waiting=6, states_each=2)
    assert found == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_workers_take_items_in_turn(workers, number):
    workers(number)

    def step(state, item):
        return [*(state or []), item]

    expected = [list(range(worker, 5, number)) for worker in range(min(number, 5))]
    assert share_items(step, iter(range(5)), number) == expected
    assert share_items(step, iter(()), number) == []


def test_an_error_in_a_worker_is_raised(workers):
    workers(2)

    def step(state, item):
        raise FloatingPointError(str(item))

    with pytest.raises(FloatingPointError, match=r"[01]"):
        share_items(step, iter(range(5)), 2)


def test_workers_share_the_threads_of_blas(workers):
    def step(state, item):
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    workers(2)
    assert share_items(step, iter(range(2)), 2) == [{1}, {1}]
    assert share_items(step, iter(range(4)), 4) == [{1}] * 2  # there are but two
    workers(4)
    assert share_items(step, iter(range(4)), 4) == [{1}] * 4
    assert max(max(found) for found in share_items(step, iter(range(2)), 2)) in (1, 2)  # BLAS may have but one


@pytest.mark.parametrize("source", ["worker", "reader", "interrupt"])
def test_a_failure_stops_all_workers_and_frees_blas(workers, source):
    workers(3)
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
        share_items(step, items(), 3)
    assert threading.active_count() == before
    assert len(done) < 30
    assert worker_count() == 3


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt, in processes too that were started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_the_last_items_are_worked_on_stops_all_workers(workers, interrupts):
    """All items have been read, and the caller waits for the workers: they would need 25 seconds more."""
    workers(2)
    before, done = threading.active_count(), []

    def step(state, item):
        done.append(item)
        if item == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if item >= 2:
            time.sleep(0.05)
        return item

    with pytest.raises(KeyboardInterrupt):
        share_items(step, iter(range(1000)), 2, waiting=1000)
    assert threading.active_count() == before
    assert len(done) < 500
    assert worker_count() == 2


def test_blas_can_be_held_back_to_one_thread_around_workers(workers):
    workers(4)

    def limits():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = limits()
    with one_blas_thread():
        assert limits() == {1}
        assert worker_count() == 4
        assert share_items(lambda state, item: item, iter(range(4)), 4) == [0, 1, 2, 3]
        assert limits() == {1}
    assert limits() == before
