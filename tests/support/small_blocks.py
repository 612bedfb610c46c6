"""Blocks so small that the few rows of a test make many of them."""

import ocrep._linalg.parallel
import ocrep._training.recipe

ENTRIES = "BLOCK_ENTRIES"


def use_small_blocks(monkeypatch, entries):
    """Let a block hold about so many numbers, wherever rows are cut."""
    for module in (ocrep._linalg.parallel, ocrep._training.recipe):
        monkeypatch.setattr(module, ENTRIES, entries)
    # A patch of a place that nobody reads would go unnoticed.
    assert ocrep._training.recipe.block_rows(1) == entries
    assert next(ocrep._linalg.parallel.slices_of(entries + 1, 1)) == slice(0, entries)
