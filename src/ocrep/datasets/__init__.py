"""The paper's eight data sets by name: `load` one, list their `names`, or read about them with `info`.

The package contains seven of them; Delta Ailerons is read from the folder in the environment variable `OCREP_DATA`,
or downloaded on first use. Only `load` imports NumPy. `load_penguins` gives a table with text, a date and gaps.
"""

from ocrep.datasets.loader import load, load_penguins
from ocrep.datasets.registry import DataSet, info, names

__all__ = ["DataSet", "info", "load", "load_penguins", "names"]
