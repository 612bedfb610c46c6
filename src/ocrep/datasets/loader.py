"""Load a data set by name as a scikit-learn Bunch of fresh arrays."""

from __future__ import annotations

import csv
import gzip
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, overload

from ocrep.datasets.registry import DataSet, find

if TYPE_CHECKING:
    from sklearn.utils import Bunch

# The codes of Abalone's sex, the only input that is not a number, in the order of UCI's list.
SEX = {"M": 0.0, "F": 1.0, "I": 2.0}


@overload
def load(name: str, *, return_X_y: Literal[False] = False, as_frame: bool = False) -> Bunch: ...
@overload
def load(name: str, *, return_X_y: Literal[True], as_frame: bool = False) -> tuple[Any, Any]: ...
def load(name: str, *, return_X_y: bool = False, as_frame: bool = False) -> Bunch | tuple[Any, Any]:
    """Load one of the paper's data sets.

    Parameters
    ----------
    name : str
        One of the names in `ocrep.datasets.names()`.
    return_X_y : bool, default=False
        Return `(data, target)` instead of a Bunch.
    as_frame : bool, default=False
        Give `data` as a pandas DataFrame and `target` as a Series (needs pandas).

    Returns
    -------
    Bunch
        `data` (float64, n × d), `target` (float64 for regression, int64 class codes for classification),
        `feature_names`, `target_names` (classification only; code k is `target_names[k]`), `task`, `name`,
        `frame` (inputs and target together with `as_frame`, else None) and `DESCR` (origin, citation,
        licence, coding).

    See Also
    --------
    info : A table of all data sets.

    Notes
    -----
    Abalone's categorical input `sex` is one number, M = 0, F = 1, I = 2, so that there are 8 inputs as in the
    paper. Delta Ailerons is not bundled: it is read from `delta_ailerons.csv` or `delta.ailerons.arff` in the
    folder in the environment variable `OCREP_DATA`; where that is not set, pooch downloads it once.

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> X.shape
    (506, 13)
    """
    from sklearn.utils import Bunch

    record = find(name)
    bunch = Bunch(task=record.task, name=record.name, frame=None, DESCR=record.describe(), **_columns(record))
    if as_frame:
        try:
            import pandas as pd
        except ImportError as exc:
            raise ImportError('as_frame=True needs pandas: pip install "ocrep[data]".') from exc
        bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names)
        bunch.target = pd.Series(bunch.target, name="target")
        bunch.frame = pd.concat([bunch.data, bunch.target], axis=1)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _columns(record: DataSet) -> dict[str, Any]:
    """Data, target and their names, by the names of the Bunch."""
    import numpy as np

    from ocrep.datasets import delta_ailerons

    if not record.bundled:
        values = delta_ailerons.fetch()
        names = list(delta_ailerons.FEATURE_NAMES)
        return {"data": values[:, :-1].copy(), "target": values[:, -1].copy(), "feature_names": names}
    packed = files("ocrep.datasets").joinpath("data", f"{record.name}.csv.gz").read_bytes()
    header, *rows = csv.reader(gzip.decompress(packed).decode().splitlines())
    X = np.array([[SEX.get(cell, cell) for cell in row[:-1]] for row in rows], dtype=np.float64)
    inputs, target = {"data": X, "feature_names": header[:-1]}, np.array([row[-1] for row in rows])
    if record.task == "regression":
        return inputs | {"target": target.astype(np.float64)}
    target_names, codes = np.unique(target, return_inverse=True)
    return inputs | {"target": codes.astype(np.int64), "target_names": target_names}
