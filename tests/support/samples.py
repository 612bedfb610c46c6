"""Samples of rows: which rows they hold, and how large they are. No other test knows where their size is read."""

import pytest


def sample_of(X, y, n_rows):
    """The rows on which candidates are compared where there are more than `n_rows`."""
    from ocrep._rows.block import Block
    from ocrep._rows.survey import RowSample

    sample = RowSample.of(Block(X, y, None), n_rows, None, labels=False)
    return sample.X, sample.y


@pytest.fixture
def short_rounds(monkeypatch):
    """A first round of successive halving on 100 rows, so that few rows have two rounds."""
    monkeypatch.setattr("ocrep._training.selection.FIRST_ROUND", 100)


@pytest.fixture
def small_samples(monkeypatch):
    """`small_samples(n)` lets layers that look at rows look at a sample of at most n in this test."""

    def use(n_rows):
        import ocrep._layers.random_layer
        import ocrep._training.recipe

        for module in (ocrep._training.recipe, ocrep._layers.random_layer):
            monkeypatch.setattr(module, "SAMPLE_ROWS", n_rows)

    return use
