"""Settings and fixtures that every test shares."""

import os

# scikit-learn's own checks skip their array-API part unless SciPy is told, before its import, to support it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings
from support.samples import short_rounds, small_samples
from support.small_blocks import small_blocks
from support.workers import workers

__all__ = ["short_rounds", "small_blocks", "small_samples", "workers"]

# The same examples on every run, and no deadline: machines are shared.
settings.register_profile("ocrep", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("ocrep")


@pytest.fixture
def rng():
    """The same random numbers for a test, whichever tests ran before it in the same process."""
    return np.random.default_rng(0)
