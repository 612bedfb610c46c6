"""How many rows each worker takes at a time: as many as memory and caches allow, and as many as the others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.encoded import encoded_rows

from ocrep._linalg.parallel import BLOCK_ENTRIES, WIDEST_SHARED, WORKER_ENTRIES, chunk_rows, item_rows, workers_for
from ocrep._linalg.parallel import CHUNK_ENTRIES as CHUNK
from ocrep._linalg.solve import ByFold


def reflected_rows(n_features, workers):
    """Rows that a worker reduces by reflections at a time."""
    rows = encoded_rows(np.ones((1, n_features)), np.ones((1, 1)))
    return ByFold.reflections(False, None).chunk_size(rows.encoder, workers)


def test_workers_and_their_memory_are_bounded_however_many_threads_there_are(workers):
    for number in (1, 2, 16):
        workers(number)
        assert workers_for(500, 3 * CHUNK // 500) == number
    workers(1000)
    for n_features, n_rows, n_held in ((500, 5000, 1), (300, 4500, 3), (1024, 2560, 1)):
        each = n_rows * n_features + (n_held + 1) * n_features**2
        assert workers_for(n_features, n_rows, n_held) * each <= WORKER_ENTRIES
    assert workers_for(WIDEST_SHARED, 8) > 1
    assert workers_for(WIDEST_SHARED + 1, 8) == 1


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


@pytest.mark.parametrize("workers", [1, 2, 8, 16, 64])
@pytest.mark.parametrize("width", [3, 100, 500, 1000])
def test_reflections_take_one_to_four_rows_per_column_so_that_all_workers_have_room(width, workers):
    height = reflected_rows(width, workers)
    assert width <= height <= 4 * width
    held = 2 * height * width + 3 * width**2
    assert height == width or workers * held <= WORKER_ENTRIES


def test_reflections_of_500_features_use_16_workers(workers):
    workers(16)
    assert workers_for(500, 2 * reflected_rows(500, 16)) == 16
