"""Workers: threads that share rows, as many as BLAS would use, with BLAS limited to one thread while they work.

How many. One thread per block of rows scales with the cores, where several threads in one factorization or one product
of M columns do not; NumPy and LAPACK let go of the interpreter while they compute. So rows are shared among as many
workers as BLAS has threads, and BLAS is limited to one thread meanwhile: threads of both would multiply to cores², and
OpenBLAS does one job of many threads at a time. One object, `_BLAS`, counts the workers of the whole process, so that
callers at the same time, or a worker that asks for workers, share the cores too. A user's limits count (threadpoolctl,
the variables of BLAS, CPU affinity, containers). Blocks of more than 1,024 columns keep all threads of BLAS busy by
themselves: one worker.

How much at a time. A worker holds c copies of a chunk of n rows × M features, and the M × M matrices of its summaries.
All workers together stay below 44·2²⁰ numbers, 370 MB, whatever the number of cores. One or two workers form chunks of
5 MB, which stay in the caches. After each operation on arrays a thread must get the interpreter back, for which it
waits up to 0.1 ms: so with w workers chunks grow by (w + 2)/4, up to 16 MB, as far as the memory above allows. With k
folds, an item that a worker takes has rows of all folds, so it is 0.9·k chunks: each fold then gets about one chunk,
rarely a little more than one. Where the number of rows is known, items are made equal, so that all workers end
together.

Same bits. Items are dealt out to states in turns, by their number and not by who is free, so that the same number of
workers gives the same sums in the same order, to the last bit.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Condition, Event, Lock, RLock, Thread
from typing import Any, TypeVar

from joblib import cpu_count

State = TypeVar("State")
Item = TypeVar("Item")
Result = TypeVar("Result")

# About 16 MB of float64: large enough for BLAS-3 to run at full speed, small enough to stay near the caches.
BLOCK_ENTRIES = 2**21
# 2 MB of float64: numbers that are converted to float64 or hashed are taken in pieces of this size.
PIECE_ENTRIES = 2**18
# 8 MB of float64 for each thread that predicts. 1 MB would stay in a core's own cache, but then calls are so short that
# threads wait for the interpreter: sixteen predicted more slowly than eight.
THREAD_ENTRIES = 2**20
# Fewer rows at a time would cost more in calls than they save in memory.
_FEWEST_ROWS = 16
# Starting a thread costs about as much as a chunk.
_CHUNKS_PER_THREAD = 2
# Python does not see an interrupt that comes right before it waits for a lock, so it looks again after this time.
_INTERRUPT_CHECK_SECONDS = 0.2
# All workers together hold at most this much, about 370 MB.
WORKER_ENTRIES = 44 * 2**20
# Beyond this many columns a block keeps all threads of BLAS busy by itself.
WIDEST_SHARED = 1024
# 5 MB of float64: the features that one worker, or each of two, forms at a time. More would leave the caches.
CHUNK_ENTRIES = 5 * 2**17
# 32 MB of float64: the rows, as they were read, that wait for workers at most. The more, the less workers wait for
# each other.
_WAITING_ENTRIES = 2**22
# Summaries per worker, so that a slow worker can be helped. With folds each summary holds several matrices: then one.
STATES_EACH = 2
# Folds of equal shares differ in size by chance: a little less is taken, so that no fold gets a second, tiny chunk.
_FOLD_MARGIN = 0.9


# ------------------------------------------------------------------------------
# How much memory this process may still take.


_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Bytes that could be taken without swapping, or that a container still allows; None where neither is known."""
    sizes = []
    for line in _read(_MEMINFO).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            sizes.append(int(value.split()[0]) * 1024)
    limit = _read(_CGROUP / "memory.max").strip()
    used = _read(_CGROUP / "memory.current").strip()
    if limit.isdigit() and used.isdigit():  # the limit may be the word "max"
        sizes.append(max(0, int(limit) - int(used)))
    return min(sizes, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


# ------------------------------------------------------------------------------
# How many rows at a time.


def slices_of(n: int, entries_each: int) -> Iterator[slice]:
    """Slices of `n` things, each of which needs `entries_each` numbers, so that no slice needs more than a block."""
    return row_slices(n, max(1, BLOCK_ENTRIES // max(1, entries_each)))


def row_slices(n_rows: int, rows: int) -> Iterator[slice]:
    """Slices of `rows` rows that cover `n_rows`."""
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def block_rows(n_features: int, n_others: int = 0, *, on_device: bool = False) -> int:
    """Rows per block of H of `n_features`, with `n_others` inputs and targets.

    At least four times the features, so that re-triangularizing R with each block adds at most a quarter. A device
    takes 16 times as many: it has the memory, and each block costs it a hundred launches.
    """
    return max(4 * n_features, (16 if on_device else 1) * BLOCK_ENTRIES // (n_features + n_others))


# ------------------------------------------------------------------------------
# Threads that share rows, and the limit on BLAS while they work.


def worker_count() -> int:
    """How many threads may work at a time: as many as BLAS would use, less the workers that there are already.

    So a user's `threadpool_limits`, the variables of any BLAS, the CPU affinity and the limits of a container count,
    and workers of joblib or Dask that were given one thread stay on one.
    """
    return _BLAS.free_workers()


def on_chunks(worker: Callable[[int], Callable[[slice], None]], n_rows: int, row_entries: int) -> None:
    """Call workers on slices that cover the rows; NumPy lets go of the interpreter while it computes.

    `worker(size)` makes the worker of one thread, with a workspace of its own for slices of up to `size` rows.
    Where rows are cut does not depend on the number of threads, and so neither does the last bit of the result.
    """
    size = max(_FEWEST_ROWS, THREAD_ENTRIES // row_entries)
    chunks = list(row_slices(n_rows, size))

    def work_through(work: Callable[[slice], None], share: list[slice]) -> None:
        for chunk in share:
            work(chunk)

    with _BLAS.divided_among(len(chunks) // _CHUNKS_PER_THREAD) as threads:
        if threads < 2:
            work_through(worker(size), chunks)
            return
        edges = [len(chunks) * i // threads for i in range(threads + 1)]
        with ThreadPoolExecutor(threads) as pool:
            shares = [chunks[start:stop] for start, stop in pairwise(edges)]
            for done in [pool.submit(work_through, worker(size), share) for share in shares]:
                done.result()


def share_items(
    step: Callable[[State | None, Item], State],
    items: Iterable[Item],
    workers: int,
    *,
    waiting: int = 2,
    states_each: int = 1,
) -> list[State]:
    """Fold items into as many states as there are workers, or a multiple of that; the states come back in their order.

    There are fewer workers where others are at work meanwhile; one worker is a plain fold. The states take turns at the
    items, and which item goes where does not depend on timing: the same number of workers gives the same bits. Who
    works on a state does: whoever is free, so that with several states for each worker a slow one does not make the
    others wait. At most `waiting` items wait for each worker. If a worker or the reading of items fails, the others
    stop after the item they work on.
    """
    with _BLAS.divided_among(workers) as workers:
        states: list[State | None] = [None] * (workers * states_each if workers > 1 else 1)
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
            while not done.wait(_INTERRUPT_CHECK_SECONDS):
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
        self._free = [True] * n_states
        self._open = True
        self._added = 0
        self._room = most
        lock = Lock()
        self._some = Condition(lock)
        self._space = Condition(lock)

    def add(self, item: Any) -> bool:
        """Let one more item wait, as soon as there is room; False if nobody will work on it."""
        with self._space:
            while not self._space.wait_for(lambda: self._room > 0 or not self._open, _INTERRUPT_CHECK_SECONDS):
                pass
            if self._open:
                self._waiting[self._added % len(self._waiting)].append(item)
                self._added += 1
                self._room -= 1
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
            while not (ready := [n for n, items in enumerate(self._waiting) if items and self._free[n]]):
                if not self._open and not any(self._waiting):
                    self._some.notify_all()
                    return None
                self._some.wait()
            mine = max(ready, key=lambda n: len(self._waiting[n]))
            self._free[mine] = False
            self._room += 1
            self._space.notify()
            return mine, self._waiting[mine].popleft()

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


class _Blas:
    """BLAS limited to one thread while several workers compute, and the number of these workers in the process."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._users = 0
        """Callers that have limited BLAS; the last of them lifts the limit."""
        self._in_use = 0
        """Workers of all callers."""
        self._limit: Any = None
        self._threads = 1
        """How many threads BLAS used before it was limited."""

    def free_workers(self) -> int:
        with self._lock:
            return max(1, (self._threads if self._users else _blas_threads()) - self._in_use)

    @contextmanager
    def divided_among(self, most: int) -> Iterator[int]:
        """At most `most` workers, counted and taken under one lock, so that two callers do not get the same ones."""
        with self._lock:
            workers = min(most, self.free_workers())
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
    threads = [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]
    if not threads:
        value = os.environ.get("VECLIB_MAXIMUM_THREADS", "")
        threads = [int(value)] if value.isdigit() and int(value) > 0 else []
    return max(1, min([cpu_count(), *threads]))


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# ------------------------------------------------------------------------------
# How many rows each worker takes at a time, and how many workers there are: as many as memory and caches allow.


def workers_for(n_features: int, n_rows: int, n_held: int = 1) -> int:
    """How many workers may hold `n_rows` rows of H, copies included, and `n_held` matrices M × M each."""
    if n_features > WIDEST_SHARED:
        return 1
    entries = n_rows * n_features + _matrices(n_held) * n_features**2
    return max(1, min(worker_count(), WORKER_ENTRIES // entries))


def chunk_rows(width: int, workers: int = 1, *, copies: int = 1, n_held: int = 1) -> int:
    """Rows of which a worker forms `width` features at a time: the more workers, the more rows, as memory allows."""
    most = min(CHUNK_ENTRIES * (workers + 2) // 4, BLOCK_ENTRIES)
    return max(1, max(CHUNK_ENTRIES, min(most, room(width, workers, copies, n_held))) // width)


def room(width: int, workers: int, copies: int, n_held: int) -> int:
    """Entries that each of the workers may hold for one of its copies of a chunk of features."""
    return (WORKER_ENTRIES // workers - _matrices(n_held) * width**2) // copies


def _matrices(n_held: int) -> int:
    """Matrices M × M that a worker holds: one or more for each of its summaries, and a product that is added."""
    return 1 + max(n_held, STATES_EACH)


def item_rows(chunk: int, workers: int, n_folds: int, n_rows: int | None) -> int:
    """Rows that a worker takes at a time: about a chunk of each fold, and equal shares if all rows are known."""
    most = chunk if n_folds == 1 else max(1, int(_FOLD_MARGIN * n_folds * chunk))
    if not n_rows:
        return most
    n_turns = math.ceil(n_rows / (workers * most))
    return math.ceil(n_rows / (workers * n_turns))


def items_waiting(workers: int, rows: int, n_inputs: int) -> int:
    """How many items of `rows` rows may wait for each worker."""
    return max(2, _WAITING_ENTRIES // (workers * rows * (n_inputs + 2)))
