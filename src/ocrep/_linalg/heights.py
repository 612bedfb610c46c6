"""How many rows each worker takes at a time, and how many workers there are: as many as memory and caches allow."""

from __future__ import annotations

import math

from ocrep._linalg.blocks import BLOCK_ENTRIES
from ocrep._linalg.parallel import worker_count

# All workers together hold at most this much, about 370 MB.
WORKER_ENTRIES = 44 * 2**20
# Beyond this many columns a block keeps all threads of BLAS busy by itself.
WIDEST_SHARED = 1024
# 5 MB of float64: so many features are formed at a time by one worker, or by each of two. More would leave the caches.
CHUNK_ENTRIES = 5 * 2**17
# 32 MB of float64: so much of the rows, as they were read, waits for workers at most. The more, the less they wait for
# each other.
_WAITING_ENTRIES = 2**22
# So many sums for each worker, so that a slow one can be helped; of folds, each would hold several matrices.
STATES_EACH = 2
# Folds of equal shares differ by chance: so much less is taken, that none is a little too large.
_FOLD_MARGIN = 0.9


def workers_for(n_features: int, n_rows: int, n_held: int = 1) -> int:
    """How many workers may hold `n_rows` rows of H, copies included, and `n_held` matrices M × M each.

    One thread per block scales where several threads in one factorization do not. But wide blocks keep the threads of
    BLAS busy by themselves, and a GPU is one worker.
    """
    if n_features > WIDEST_SHARED:
        return 1
    entries = n_rows * n_features + _matrices(n_held) * n_features**2
    return max(1, min(worker_count(), WORKER_ENTRIES // entries))


def chunk_rows(width: int, workers: int = 1, *, copies: int = 1, n_held: int = 1) -> int:
    """Of how many rows a worker forms `width` features at a time.

    After each operation on arrays a thread must get hold of the interpreter again, for which it waits up to 0.1 ms. So
    the more workers there are, the larger their operations must be, as far as memory allows.
    """
    most = min(CHUNK_ENTRIES * (workers + 2) // 4, BLOCK_ENTRIES)
    return max(1, max(CHUNK_ENTRIES, min(most, room(width, workers, copies, n_held))) // width)


def room(width: int, workers: int, copies: int, n_held: int) -> int:
    """Entries of features that each of so many workers may hold."""
    return (WORKER_ENTRIES // workers - _matrices(n_held) * width**2) // copies


def _matrices(n_held: int) -> int:
    """How many matrices M × M a worker holds: those of its states, and a product that is added to one."""
    return 1 + max(n_held, STATES_EACH)


def item_rows(chunk: int, workers: int, n_folds: int, n_rows: int | None) -> int:
    """How many rows a worker takes at a time: of each fold about a chunk, and each worker as many if all are known."""
    most = chunk if n_folds == 1 else max(1, int(_FOLD_MARGIN * n_folds * chunk))
    return most if not n_rows else math.ceil(n_rows / (workers * math.ceil(n_rows / (workers * most))))


def items_waiting(workers: int, rows: int, n_inputs: int) -> int:
    """How many items of so many rows may wait for each worker."""
    return max(2, _WAITING_ENTRIES // (workers * rows * (n_inputs + 2)))
