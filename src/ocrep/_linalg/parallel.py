"""Workers: threads that share rows, as many as BLAS would use, with BLAS held back while they work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import pairwise
from threading import Condition, Event, Lock, Thread
from typing import Any, TypeVar

from joblib import cpu_count

State = TypeVar("State")
Item = TypeVar("Item")
Result = TypeVar("Result")
# 1 MB of float64: what a core holds for itself.
CHUNK_ENTRIES = 2**17
# Fewer rows at a time would cost more in calls than they save in memory.
_FEWEST_ROWS = 16
# Python does not see an interrupt that comes right before it waits for a lock: so many seconds later it looks again.
_PATIENCE = 0.2
# Starting a thread costs about as much as a chunk.
_CHUNKS_PER_THREAD = 2


def worker_count() -> int:
    """How many threads may work at a time: as many as BLAS would use, less those that are at work already.

    So a user's `threadpool_limits`, the variables of any BLAS, the CPU affinity and the limits of a container count,
    and workers of joblib or Dask that were given one thread stay on one.
    """
    return _BLAS.free_workers()


def on_chunks(worker: Callable[[int], Callable[[slice], None]], n_rows: int, row_entries: int) -> None:
    """Call workers on slices that cover the rows; NumPy lets go of the interpreter while it computes.

    `worker(height)` makes the worker of one thread, with a workspace of its own for as many rows as come at a time.
    Where rows are cut does not depend on the number of threads, and so neither does the last bit of the result.
    """
    size = max(_FEWEST_ROWS, CHUNK_ENTRIES // row_entries)
    chunks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    with _BLAS.divided_among(len(chunks) // _CHUNKS_PER_THREAD) as threads:
        if threads < 2:
            _work_through(worker(size), chunks)
            return
        edges = [len(chunks) * i // threads for i in range(threads + 1)]
        with ThreadPoolExecutor(threads) as pool:
            shares = [chunks[start:stop] for start, stop in pairwise(edges)]
            for done in [pool.submit(_work_through, worker(size), share) for share in shares]:
                done.result()


def accumulate(
    step: Callable[[State | None, Item], State],
    items: Iterable[Item],
    workers: int,
    start: State | None = None,
    *,
    waiting: int = 2,
    states_each: int = 1,
) -> list[State]:
    """Fold items into as many states as there are workers, or a multiple of that; the states come back in their order.

    There are fewer workers where others are at work meanwhile. The first state is `start`, so that one worker is a
    plain fold. The states take turns at the items, and which item goes where does not depend on timing: the same number
    of workers gives the same bits. Who works on a state does: whoever is free, so that with several states for each
    worker a slow one does not make the others wait. At most `waiting` items wait for each worker. If a worker or the
    reading of items fails, the others stop after the item they work on.
    """
    with _BLAS.divided_among(workers) as workers:
        states: list[State | None] = [start, *[None] * (workers * states_each - 1)] if workers > 1 else [start]
        if workers < 2:
            for item in items:
                states[0] = step(states[0], item)
        else:
            _run_workers(step, items, states, workers, waiting)
    return [state for state in states if state is not None]


def _run_workers(
    step: Callable[[Any, Item], Any], items: Iterable[Item], states: list[Any], workers: int, waiting: int
) -> None:
    """Fold items into the states, on as many threads as there are workers."""
    turns = _Turns(len(states), workers * waiting)
    failures: list[BaseException] = []

    def work(done: Event) -> None:
        mine = None
        while (turn := turns.next(after=mine)) is not None:
            mine, item = turn
            try:
                states[mine] = step(states[mine], item)
            except BaseException as failure:
                failures.append(failure)
                turns.stop()
        done.set()

    # Not `join`: in CPython 3.11, one that is interrupted takes its thread for ended.
    ends = [Event() for _ in range(workers)]
    threads = [Thread(target=work, args=(done,), daemon=True) for done in ends]
    for thread in threads:
        thread.start()
    try:
        for item in items:
            if not turns.add(item):
                break
        turns.close()
        for done in ends:
            while not done.wait(_PATIENCE):
                pass
    except BaseException as failure:  # of the reading, or an interrupt
        failures.append(failure)
        turns.stop()
        for done in ends:
            done.wait()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class _Turns:
    """Items that wait for states, which take turns at them; a state is worked on by one thread at a time."""

    def __init__(self, n_states: int, most: int) -> None:
        self._waiting: list[deque[Any]] = [deque() for _ in range(n_states)]
        self._free, self._open, self._added, self._room = [True] * n_states, True, 0, most
        lock = Lock()
        self._some, self._space = Condition(lock), Condition(lock)

    def add(self, item: Any) -> bool:
        """Let one more item wait, as soon as there is room; False if nobody will work on it."""
        with self._space:
            while not self._space.wait_for(lambda: self._room > 0 or not self._open, _PATIENCE):
                pass
            if self._open:
                self._waiting[self._added % len(self._waiting)].append(item)
                self._added, self._room = self._added + 1, self._room - 1
                self._some.notify()
            return self._open

    def next(self, *, after: int | None) -> tuple[int, Any] | None:
        """The state with the most items that nobody works on, and the first of them; None if there are no more.

        `after` is the state that the caller has worked on.
        """
        with self._some:
            if after is not None:
                self._free[after] = True
                self._some.notify()
            while (mine := self._longest()) is None:
                if not self._open and not any(self._waiting):
                    self._some.notify_all()
                    return None
                self._some.wait()
            self._free[mine], self._room = False, self._room + 1
            self._space.notify()
            return mine, self._waiting[mine].popleft()

    def _longest(self) -> int | None:
        ready = [n for n, items in enumerate(self._waiting) if items and self._free[n]]
        return max(ready, key=lambda n: len(self._waiting[n])) if ready else None

    def close(self) -> None:
        """Say that no more items come."""
        with self._some:
            self._open = False
            self._some.notify_all()

    def stop(self) -> None:
        """Let no more items be worked on."""
        with self._some:
            self._open = False
            for items in self._waiting:
                items.clear()
            self._some.notify_all()
            self._space.notify_all()


def at_once(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """function(item) of each item, in order, each on a thread of its own, with one thread of BLAS."""
    with _BLAS.divided_among(len(items)) as workers:
        if workers < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, items))


def one_blas_thread() -> AbstractContextManager[None]:
    """BLAS on one thread: several gain nothing in small problems, and would keep their cores busy for a while after."""
    return _BLAS.held_back()


def _work_through(work: Callable[[slice], None], chunks: list[slice]) -> None:
    for chunk in chunks:
        work(chunk)


class _Blas:
    """BLAS limited to one thread while anybody works in several: OpenBLAS does one job of many threads at a time."""

    def __init__(self) -> None:
        self._lock, self._users, self._in_use = Lock(), 0, 0
        self._limit: Any = None
        self._threads = 1
        """How many threads BLAS used before it was limited."""

    def free_workers(self) -> int:
        with self._lock:
            return self._free()

    def _free(self) -> int:
        return max(1, (self._threads if self._users else _blas_threads()) - self._in_use)

    @contextmanager
    def divided_among(self, most: int) -> Iterator[int]:
        """At most so many workers, asked for and taken in one step, so that callers at once do not all get them."""
        with self._lock:
            workers = min(most, self._free())
            if workers > 1:
                self._enter(workers)
        try:
            yield workers
        finally:
            if workers > 1:
                with self._lock:
                    self._leave(workers)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        with self._lock:
            self._enter(0)
        try:
            yield
        finally:
            with self._lock:
                self._leave(0)

    def _enter(self, workers: int) -> None:
        if self._users == 0:
            self._threads = _blas_threads()
            self._limit = _controller().limit(limits=1, user_api="blas")
        self._users += 1
        self._in_use += workers

    def _leave(self, workers: int) -> None:
        self._users -= 1
        self._in_use -= workers
        if self._users == 0:
            self._limit.restore_original_limits()


_BLAS = _Blas()


def _blas_threads() -> int:
    """The threads that BLAS uses now, but no more than there are cores for this process.

    Apple's Accelerate cannot be asked: its own variable counts.
    """
    told = [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]
    if not told:
        value = os.environ.get("VECLIB_MAXIMUM_THREADS", "")
        told = [int(value)] if value.isdigit() and int(value) > 0 else []
    return max(1, min([cpu_count(), *told]))


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
