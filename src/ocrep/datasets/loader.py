"""Load a data set by name as a scikit-learn Bunch of fresh arrays.

NumPy is imported where arrays are made, so that the names and sizes of data sets can be listed without it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
from importlib.resources import files
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from ocrep.datasets.registry import PENGUINS, DataSet, find

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sklearn.utils import Bunch

# ------------------------------------------------------------------------------
# Delta Ailerons, the data set that is not bundled: find the user's copy or download one, and check it.

FEATURE_NAMES = ("RollRate", "PitchRate", "currPitch", "currRoll", "diffRollRate")
CSV = "delta_ailerons.csv"
ARFF = "delta.ailerons.arff"
COMMIT = "c59f172882592bb58982cc54d2d3c8a2b57e9b73"
FOLDER_URL = f"https://raw.githubusercontent.com/renatopp/arff-datasets/{COMMIT}/regression/"
# Of the numbers as float64, not of a file: it does not depend on line endings or number formats, and one checksum
# serves CSV and ARFF. It depends on the order of the rows, as splits of the data do.
SHA256 = "c3c44e36626834999bbaa34e550a0aa41c2d9ee88b4e2f3cb7aac3c280fc547a"


def fetch() -> NDArray[np.float64]:
    """Return the 7129 × 6 numbers (5 inputs, then the target) from the user's folder or from a download.

    If `OCREP_DATA` is set, only that folder is searched: a wrong path there raises an error and does not start a
    download.
    """
    if os.environ.get("OCREP_DATA"):
        folder = Path(os.environ["OCREP_DATA"]).expanduser()
        for path in (folder / CSV, folder / ARFF):
            if path.is_file():
                return read(path, f"Replace it with {CSV}, or with {ARFF} from {FOLDER_URL}{ARFF}")
        raise FileNotFoundError(
            f"OCREP_DATA names the folder {folder}, which holds neither {CSV} nor {ARFF}. Put one of them there, "
            "or unset OCREP_DATA to have Delta Ailerons downloaded."
        )
    path = _download()
    try:
        return read(path, "The file was deleted: the next call downloads it again")
    except ValueError:
        path.unlink(missing_ok=True)
        raise


def read(path: Path, remedy: str) -> NDArray[np.float64]:
    """Read a CSV or ARFF file and check its numbers; if they are wrong, `remedy` is part of the error message."""
    try:
        text = path.read_text(encoding="utf-8")
        values = parse_arff(text) if path.suffix == ".arff" else parse_csv(text)
        if checksum(values) != SHA256:
            raise ValueError(f"the checksum of its numbers is not the known one (shape read: {values.shape})")
    except ValueError as exc:
        raise ValueError(f"{path} is not the Delta Ailerons data: {exc}. {remedy}.") from exc
    return values


def parse_csv(text: str) -> NDArray[np.float64]:
    """Return the numbers below the header row, separated by commas or spaces."""
    import numpy as np

    rows = [line.replace(",", " ").split() for line in text.splitlines()[1:] if line.strip()]
    # + 0.0 turns -0.0 into 0.0: files may contain either, and their checksums differ.
    return np.array(rows, dtype=np.float64) + 0.0


def parse_arff(text: str) -> NDArray[np.float64]:
    """Return the numbers below the line `@data`; lines that begin with % are comments."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("%"))
    table = "\n".join(dropwhile(lambda line: line.strip().lower() != "@data", lines))
    if not table:
        raise ValueError("it has no @data line")
    return parse_csv(table)


def checksum(values: NDArray[np.float64]) -> str:
    """Return the SHA-256 of the numbers as little-endian float64, row by row."""
    import numpy as np

    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()


def _download() -> Path:
    remedy = f'Set OCREP_DATA to a folder with {CSV}, or be online on first use, with pooch: pip install "ocrep[data]".'
    try:
        import pooch
    except ImportError as exc:
        raise FileNotFoundError(f"Delta Ailerons is not bundled, and pooch is not installed. {remedy}") from exc
    try:
        store = pooch.create(path=pooch.os_cache("ocrep"), base_url=FOLDER_URL, registry={ARFF: None})
        return Path(store.fetch(ARFF))
    except OSError as exc:  # also the base class of all errors of requests
        raise FileNotFoundError(f"Delta Ailerons is not bundled, and its download failed ({exc}). {remedy}") from exc


# ------------------------------------------------------------------------------
# All data sets.

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

    if not record.bundled:
        values = fetch()
        return {"data": values[:, :-1].copy(), "target": values[:, -1].copy(), "feature_names": list(FEATURE_NAMES)}
    packed = files("ocrep.datasets").joinpath("data", f"{record.name}.csv.gz").read_bytes()
    header, *rows = csv.reader(gzip.decompress(packed).decode().splitlines())
    X = np.array([[SEX.get(cell, cell) for cell in row[:-1]] for row in rows], dtype=np.float64)
    target = np.array([row[-1] for row in rows])
    inputs = {"data": X, "feature_names": header[:-1]}
    if record.task == "regression":
        return inputs | {"target": target.astype(np.float64)}
    target_names, codes = np.unique(target, return_inverse=True)
    return inputs | {"target": codes.astype(np.int64), "target_names": target_names}


def load_penguins() -> Any:
    """Load the raw table of the Palmer penguins: 344 birds, with text, a date and gaps (needs pandas).

    Returns
    -------
    pandas.DataFrame
        The 17 columns as they were written down; `attrs["DESCR"]` has origin, citation and licence (CC0).

    See Also
    --------
    load : The paper's data sets, as numbers.

    Examples
    --------
    >>> from ocrep.datasets import load_penguins
    >>> frame = load_penguins()
    >>> frame.shape, int(frame["Comments"].isna().sum())
    ((344, 17), 290)
    """
    try:
        import pandas as pd
    except ImportError as exc:
        raise ImportError('load_penguins needs pandas: pip install "ocrep[data]".') from exc
    with files("ocrep.datasets").joinpath("data", f"{PENGUINS.name}.csv.gz").open("rb") as packed:
        frame = pd.read_csv(packed, compression="gzip")
    frame.attrs["DESCR"] = PENGUINS.describe()
    return frame
