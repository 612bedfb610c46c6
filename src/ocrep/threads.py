"""Work on parts of the rows, on as many threads as BLAS would use."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# Starting a thread costs as much as a few ten thousand activations: smaller parts are not worth one.
PART_ENTRIES = 2**17


def thread_count() -> int:
    """As many as OPENBLAS_NUM_THREADS or OMP_NUM_THREADS say, else one for each core this process may use."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_parts(work: Callable[[slice], None], n_rows: int, row_entries: int) -> None:
    """Call `work` on slices that cover the rows; NumPy lets go of the interpreter while it computes."""
    parts = max(1, min(thread_count(), n_rows * row_entries // PART_ENTRIES))
    edges = [n_rows * i // parts for i in range(parts + 1)]
    slices = [slice(start, stop) for start, stop in zip(edges[:-1], edges[1:], strict=True)]
    if parts == 1:
        work(slices[0])
        return
    with ThreadPoolExecutor(parts) as pool:
        for done in [pool.submit(work, part) for part in slices]:
            done.result()
