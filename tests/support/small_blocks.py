"""Blocks so small that the few rows of a test make many of them."""

import ocrep._linalg.blocks
import ocrep._training.learned

ENTRIES = "BLOCK_ENTRIES"


def use_small_blocks(monkeypatch, entries):
    """Let a block hold about so many numbers, wherever rows are cut."""
    for module in (ocrep._linalg.blocks, ocrep._training.learned):
        monkeypatch.setattr(module, ENTRIES, entries)
    # A patch of a place that nobody reads would go unnoticed.
    assert ocrep._training.learned.block_rows(1) == entries
    assert next(ocrep._linalg.blocks.slices_of(entries + 1, 1)) == slice(0, entries)
