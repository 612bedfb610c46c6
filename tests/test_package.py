"""The package itself: what importing it costs, what it offers, and that its examples are true."""

import importlib.metadata
import importlib.util
import subprocess
import sys
import types
from pathlib import Path

import pytest
from support.pages import run_page

import ocrep

README = Path(__file__).resolve().parent.parent / "README.md"
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


def test_type_checkers_see_the_names_that_there_are():
    stub = types.ModuleType("stub")
    exec(Path(ocrep.__file__).with_suffix(".pyi").read_text(encoding="utf-8"), vars(stub))
    offered = {name for name in vars(stub) if not name.startswith("__")}
    assert {"__version__", *offered} == set(ocrep.__all__)
    assert set(vars(stub)["__annotations__"]) == {"__version__"}
    for name in offered:
        assert getattr(ocrep, name) is getattr(stub, name)


def test_public_modules_are_imported_by_their_names():
    names = ["datasets", "displays", "literature", "onnx", "parts", "report", "rules", "significance"]
    code = f"import ocrep\nfor name in {names}:\n    print(type(getattr(ocrep, name)).__name__)\n"
    code += "".join(f"from ocrep import {name}\n" for name in names)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["module"] * len(names)


def test_the_version_is_the_same_everywhere():
    assert importlib.metadata.version("ocrep") == ocrep.__version__
    assert f"version: {ocrep.__version__}\n" in (README.parent / "CITATION.cff").read_text(encoding="utf-8")


def test_the_readme_prints_what_it_says(capsys):
    assert run_page("README.md", capsys, alone=True) == 1
