"""Blocks so small that the few rows of a test make many of them. No other test knows where the package cuts rows."""

import pytest


def use_small_blocks(entries, setattr=setattr):
    """Let a block hold about `entries` numbers, wherever rows are cut."""
    import ocrep._linalg.parallel

    setattr(ocrep._linalg.parallel, "BLOCK_ENTRIES", entries)
    # A patch of a place that nobody reads would go unnoticed.
    assert ocrep._linalg.parallel.block_rows(1) == entries
    assert next(ocrep._linalg.parallel.slices_of(entries + 1, 1)) == slice(0, entries)


@pytest.fixture
def small_blocks(monkeypatch):
    """`small_blocks(entries)` lets a block hold about `entries` numbers in the fits that follow in this test."""
    return lambda entries: use_small_blocks(entries, monkeypatch.setattr)
