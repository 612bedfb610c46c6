"""Work on small chunks of rows that stay in a core's cache, on as many threads as BLAS would use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

# 512 kB of float64: what a core holds for itself.
CHUNK_ENTRIES = 2**16
# Fewer rows at a time would cost more in calls than they save in memory.
_FEWEST_ROWS = 16
# Starting a thread costs about as much as a chunk.
_CHUNKS_PER_THREAD = 2


def thread_count() -> int:
    """As many as OPENBLAS_NUM_THREADS or OMP_NUM_THREADS say, else one for each core this process may use."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_chunks(work: Callable[[slice], None], n_rows: int, row_entries: int) -> None:
    """Call `work` on slices that cover the rows; NumPy lets go of the interpreter while it computes.

    Where rows are cut does not depend on the number of threads, and so neither does the last bit of the result.
    """
    size = max(_FEWEST_ROWS, CHUNK_ENTRIES // row_entries)
    chunks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    threads = min(thread_count(), len(chunks) // _CHUNKS_PER_THREAD)
    if threads < 2:
        _work_through(work, chunks)
        return
    edges = [len(chunks) * i // threads for i in range(threads + 1)]
    with _BLAS.one_thread_each(), ThreadPoolExecutor(threads) as pool:
        shares = [chunks[start:stop] for start, stop in pairwise(edges)]
        for done in [pool.submit(_work_through, work, share) for share in shares]:
            done.result()


def _work_through(work: Callable[[slice], None], chunks: list[slice]) -> None:
    for chunk in chunks:
        work(chunk)


class _Blas:
    """BLAS told to use one thread per caller, as long as anybody works on chunks: more would fight for the cores."""

    def __init__(self) -> None:
        self._lock, self._users, self._limit = Lock(), 0, None

    @contextmanager
    def one_thread_each(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit = _controller().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._limit is not None:
                    self._limit.restore_original_limits()


_BLAS = _Blas()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
