"""Features and targets as a fit hands them to linear algebra and to rules: encoded rows, and one factor per fold."""

from dataclasses import replace

from ocrep._linalg.rows import EncodedRows, summarize_part
from ocrep._linalg.solve import ByFold
from ocrep._rows.block import Block
from ocrep._rows.memory import encoded_arrays


def encoded_rows(H, T, weight=None, *, fold=None, labels=False, block=None) -> EncodedRows:
    """Rows whose features are H, in blocks of `block` rows; `fold` says their folds, else H decides them."""
    rows = encoded_arrays(Block(H, T[:, None] if T.ndim == 1 else T, weight, fold=fold), labels=labels)
    return rows if block is None else replace(rows, encoder=replace(rows.encoder, block_size=block))


def fold_factors(rows, plan, *, intercept):
    """One factor per fold, by reflections."""
    return summarize_part(rows.encoder, ByFold.reflections(intercept, plan), rows.rows).factored().folds


def counted(rows):
    """The same rows, and a list that grows by one each time that they are read from the beginning."""
    reads = []
    source = rows.rows
    blocks = source.blocks

    def reading(*args):
        reads.append(1)
        return blocks(*args)

    source.blocks = reading
    source.n_in_memory = None  # so that they are not read anew to be cut for workers
    return rows, reads
