"""Samples so small that they do not hold all rows of a test. No other test knows where their size is read."""

import pytest


@pytest.fixture
def small_samples(monkeypatch):
    """`small_samples(n)` lets layers that look at rows look at a sample of at most n in this test."""

    def use(n_rows):
        import ocrep._layers.pairs
        import ocrep._training.recipe

        for module in (ocrep._training.recipe, ocrep._layers.pairs):
            monkeypatch.setattr(module, "SAMPLE_ROWS", n_rows)

    return use
