"""How many workers fits use. No other test knows where the package asks for their number."""

import pytest


def use_workers(number, setattr=setattr):
    """Let fits use as many workers as on a machine with `number` cores."""
    from ocrep._linalg import parallel

    setattr(parallel, "_blas_threads", lambda: number)


@pytest.fixture
def workers(monkeypatch):
    """`workers(n)` lets the fits that follow in this test use n workers."""
    return lambda number: use_workers(number, monkeypatch.setattr)
