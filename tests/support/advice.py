"""A mark for tests whose targets are noise, or whose γ lies at an end of its range on purpose."""

import pytest

some_advice = pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")
"""Some of the fits of the test give advice on γ, which is not what it tests (`rules/test_advice.py` does)."""
