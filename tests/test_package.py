"""The package itself: what importing it costs, what it offers, and that its examples are true."""

import doctest
import importlib
import subprocess
import sys

import pytest

import ocrep

HEAVY = ("pandas", "pyarrow", "matplotlib", "dask", "torch", "polars", "pooch")


def modules_after(code):
    script = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_loads_no_library():
    assert not modules_after("import ocrep; ocrep.__version__; dir(ocrep)") & {
        "numpy",
        "scipy",
        "sklearn",
        *HEAVY,
    }


def test_using_the_estimators_loads_nothing_heavy():
    code = """
from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, TikhonovRegressor, RandomLayer, datasets
X, y = datasets.load("iris", return_X_y=True)
PinvClassifier(10).fit(X, y).predict(X)
TikhonovRegressor().fit(X, y).predict(X)
"""
    # scikit-learn itself looks for pandas on import; what counts is what we add to it.
    assert not (modules_after(code) - modules_after("import sklearn.base")) & set(HEAVY)


def test_every_public_name_is_there():
    for name in ocrep.__all__:
        assert getattr(ocrep, name) is not None
    assert dir(ocrep) == sorted(ocrep.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ocrep.nonsense


@pytest.mark.parametrize("module", ["ocrep.layer", "ocrep.estimators"])
def test_examples_in_docstrings(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
