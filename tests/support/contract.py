"""scikit-learn's own checks as parameters of a test."""

import re
from importlib.util import find_spec

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks


def scikit_learn_checks(estimators):
    """As `parametrize_with_checks`, without checks on arrays of libraries that are not here, which would be skipped."""
    checks = parametrize_with_checks(estimators)
    names, cases = checks.args
    chosen = [case for case in cases if _can_run(*case)]
    return pytest.mark.parametrize(names, chosen, **checks.kwargs)


def _can_run(_, check):
    """Whether all libraries that a check names are installed; a check without options names none."""
    named = re.findall(r"array_api_strict|torch|cupy|dpnp", str(getattr(check, "keywords", "")))
    return all(find_spec(library) is not None for library in named)
