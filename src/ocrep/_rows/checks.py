"""Every check of rows: inputs, targets, labels and weights, with the same error message for rows of every kind.

A message says where the row is (file, block or partition, and its number there), what is wrong with it, and what to do.
Where scikit-learn's own checks look for certain words, such as "Unknown label type", the message holds them too. Checks
are written so that NaN fails them, and look for the one bad row only once a cheap test of all rows has failed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from ocrep._linalg.arrays import SMALLEST, Array, array_namespace, device_of, to_host
from ocrep._rows.block import Block, as_real, host_array, keys_of, listed, on_device, on_device_of

# Names and not types, since pandas need not be installed.
_MISSING = ("NAType", "NaTType")
MANY_LABELS = 20
"""The most different integers that are taken for labels rather than quantities where the task is not given."""


def check_shape(shape: tuple[Any, ...], *, place: str = "") -> None:
    """X has rows and columns."""
    if len(shape) != 2:
        raise ValueError(
            f"{place}Expected 2D array, got {len(shape)}D array instead: X must be rows × columns. Reshape your data: "
            "one column is X.reshape(-1, 1), one row X.reshape(1, -1)."
        )
    if shape[1] == 0:
        raise ValueError(
            f"{place}Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required: give X at "
            "least one column besides targets and weights."
        )


def check_lengths(n_rows: int, *, place: str = "", **others: Any) -> None:
    """Targets and weights have as many rows as X."""
    for name, values in others.items():
        if values is not None and tuple(values.shape[:1]) != (n_rows,):
            raise ValueError(
                f"{place}X has {n_rows} rows, but {name} has the shape {tuple(values.shape)}: each row needs both."
            )


def check_counts(n_rows: int, weight_sum: float) -> None:
    """There are rows, and at least one of them counts."""
    if not n_rows:
        raise ValueError("Found array with 0 sample(s): there are no rows to learn from, and at least 1 is required.")
    if not weight_sum > 0.0:
        raise ValueError(
            "All sample weights are zero: at least one row must have a positive weight (class_weight included)."
        )


def check_numeric(name: str | int, kind: str, *, place: str = "", role: str = "inputs") -> None:
    """A column holds numbers; `kind` says in a word what it holds."""
    if kind not in ("numbers", "booleans", "unknown"):
        raise ValueError(
            f"{place}column {name!r} holds {kind}, but {role} must be numbers: encode it as numbers, or leave it out "
            "(in ocrep.scan by columns=[…])."
        )


def check_readable(name: str, values: Any, role: str | None = None) -> None:
    """An array has no masked entries, which would be read as numbers, and none of dates where numbers are needed."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array with masked entries, which are missing values: remove or impute such rows."
        )
    if role is not None and isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        raise ValueError(f"{name} holds dates or times, but {role} must be numbers: encode them as numbers first.")


def text_column(X: Any) -> int:
    """The first column of an array that cannot be read as numbers; 0 if all can."""
    for number, column in enumerate(np.asarray(X, dtype=object).T):
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            return number
    return 0


def check_columns(
    block: Block,
    n_inputs: int,
    columns: tuple[str, ...] | None,
    *,
    than: str,
    instead: str = "give ocrep.scan columns=[…], and they are found by name",
) -> None:
    """A block has the columns of the blocks before it."""
    if block.X.shape[1] != n_inputs:
        raise ValueError(f"{block.part} has {block.X.shape[1]} columns, but {than} has {n_inputs}.")
    if block.columns != columns:
        raise ValueError(
            f"{block.part} has the columns {listed(block.columns)}, but {than} {listed(columns)}: {instead}."
        )


def checked(
    block: Block,
    *,
    labels: bool,
    groups: bool = False,
    shape: tuple[int, ...] | None = None,
    inputs: bool = True,
    whole: bool = False,
) -> Block:
    """Rows with finite inputs, targets as labels or numbers, weights, and the keys of their groups if they need some.

    `shape` is the shape of earlier targets without their rows; `inputs=False` says that X was not read, and `whole`
    that these are all rows.
    """
    if inputs:
        check_shape(block.X.shape, place=block.place)
    others = {"y": block.y, "sample_weight": block.weight, "groups": block.groups}
    check_lengths(block.X.shape[0], place=block.place, **others)
    weight = check_weights(block)
    keys = check_groups(block, groups)
    if whole:
        n_rows = block.X.shape[0]
        check_counts(n_rows, n_rows if weight is None else float(array_namespace(weight).sum(weight)))
    if inputs:
        check_inputs(block)
    y = check_labels(block) if labels else check_numbers(block)
    block = replace(block, y=y, weight=weight, groups=keys)
    if shape is not None:
        check_target_shape(block, shape, where="in the first rows")
    return block


def _first(marked: Array) -> int | None:
    """The number of the first marked entry, those of a row next to each other; None if there is none."""
    xp = array_namespace(marked)
    if not bool(xp.any(marked)):
        return None
    return int(xp.argmax(xp.astype(xp.reshape(marked, (-1,)), xp.int8)))


def check_inputs(block: Block) -> None:
    """All inputs are finite."""
    values = block.X.data if sparse.issparse(block.X) else block.X
    xp = array_namespace(values)
    # The sum is finite if all are, but for overflow: only then is each looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(values, dtype=xp.float64))):
            return
    first = _first(~xp.isfinite(values))
    if first is None:
        return
    if sparse.issparse(block.X):
        row = int(np.searchsorted(block.X.indptr, first, side="right")) - 1
        column = int(block.X.indices[first])
    else:
        row, column = divmod(first, block.X.shape[1])
    what = "NaN (a missing value)" if bool(xp.isnan(xp.reshape(values, (-1,))[first])) else "infinity"
    raise ValueError(
        f"{block.row(row)}column {block.column(column)} holds {what}: remove or impute such rows. "
        "Input X contains NaN or infinity."
    )


def check_weights(block: Block) -> Array | None:
    """Weights as float64, one per row: finite and ≥ 0."""
    if block.weight is None:
        return None
    weight = _as_float64(block.weight, f"{block.place}the weights must be numbers.")
    if tuple(weight.shape) != (block.X.shape[0],):
        raise ValueError(
            f"{block.place}sample_weight has the shape {tuple(weight.shape)}, but X has {block.X.shape[0]} rows: "
            "give one weight per row."
        )
    row = _first(~((weight >= 0.0) & (weight < 1.0 / SMALLEST)))
    if row is not None:
        value = float(weight[row])
        if 0.0 <= value < math.inf:
            raise ValueError(f"{block.row(row)}the weight is {value}, whose squares overflow: scale all weights down.")
        raise ValueError(f"{block.row(row)}the weight is {value}, but weights must be finite and ≥ 0.")
    return weight


def check_groups(block: Block, wanted: bool) -> np.ndarray | None:
    """The keys of the groups, one per row and none missing, if folds go by groups."""
    groups = block.groups
    if wanted and groups is None:
        raise ValueError(
            f"{block.place}The folds go by groups, but these rows have none: give groups= to fit or ocrep.scan."
        )
    if groups is not None and not wanted:
        raise ValueError(
            f"{block.place}Groups were given, but gamma has no folds that go by groups: use gamma='kfold' or "
            "'ocrep_cv', or leave groups out."
        )
    if groups is None:
        return None
    if groups.ndim != 1:
        raise ValueError(f"{block.place}groups has the shape {groups.shape}: give one group per row.")
    # NaN and NaT are the values that differ from themselves.
    missing = groups != groups if groups.dtype.kind in "fmM" else [is_missing(group) for group in groups.tolist()]
    if np.any(missing):
        raise ValueError(f"{block.row(int(np.argmax(missing)))}the group is missing: remove such rows.")
    try:
        return keys_of(groups)
    except TypeError:
        raise ValueError(f"{block.place}groups must be numbers or texts, one per row.") from None


def is_missing(label: Any) -> bool:
    """Whether a label is missing: None, NaN, or what pandas puts in their place."""
    return label is None or (isinstance(label, float) and label != label) or type(label).__name__ in _MISSING


def check_labels(block: Block) -> Array:
    """Targets as labels, one per row, whole numbers or texts, none missing; or as indicators of several labels."""
    y = check_targets(block.y)
    if y.ndim == 2 and y.shape[1] == 1:
        warn_of_column()
        y = y[:, 0]
    if y.ndim == 2 and y.shape[1] > 1:
        return _check_indicators(y, block)
    if y.ndim != 1:
        raise ValueError(
            f"{block.place}y has the shape {tuple(y.shape)}, but a classifier needs one label per row, or a column "
            "of 0 and 1 for each label. Unknown label type."
        )
    if not isinstance(y, np.ndarray):  # on a device labels are numbers
        xp = array_namespace(y)
        if xp.isdtype(y.dtype, "real floating"):
            _check_whole(y, block)
        return xp.astype(y, xp.int64)
    if y.dtype.kind in "OmM":
        missing = [is_missing(label) for label in y.tolist()] if y.dtype.kind == "O" else np.isnat(y)
        if np.any(missing):
            row = int(np.argmax(missing))
            raise ValueError(f"{block.row(row)}the label is missing: remove such rows. Input y contains NaN.")
    if y.dtype.kind == "f":
        _check_whole(y, block)
    return y


def _check_indicators(y: Array, block: Block) -> Array:
    """Columns of 0 and 1, which say whether a row has the label of the column."""
    xp = array_namespace(y) if not isinstance(y, np.ndarray) else np
    # Written so that NaN and texts fail too.
    first = _first(~((y == 0) | (y == 1)))
    if first is not None:
        row, column = divmod(first, y.shape[1])
        raise ValueError(
            f"{block.row(row)}y has {y.shape[1]} columns, each of which says whether a row has a label, but column "
            f"{column} holds {to_host(y[row : row + 1, column])[0]!s} and not 0 or 1: give one label per row, or "
            "indicators. Unknown label type: multiclass-multioutput."
        )
    return xp.astype(y, xp.int8)


def check_numbers(block: Block) -> Array:
    """Targets as finite numbers."""
    y = check_targets(block.y)
    check_readable(f"{block.place}y", y, "the targets of a regression")
    if isinstance(y, np.ndarray) and y.dtype.kind not in "biuf":
        y = _as_float64(y, f"{block.place}the targets must be numbers: regression cannot learn texts or categories.")
    if y.ndim not in (1, 2):
        raise ValueError(
            f"{block.place}y has the shape {tuple(y.shape)}, but regression needs one number per row, or one "
            "column per target."
        )
    xp = array_namespace(y)
    first = _first(~xp.isfinite(y))
    if first is not None:
        row = first if y.ndim == 1 else first // y.shape[1]
        raise ValueError(f"{block.row(row)}the target is NaN or infinity: remove such rows. Input y contains NaN.")
    return y


def check_target_shape(block: Block, shape: tuple[int, ...], *, where: str) -> None:
    """Targets have the shape of others, without their rows."""
    if tuple(block.y.shape[1:]) != shape:
        raise ValueError(
            f"{block.place}y has the shape {tuple(block.y.shape)}, but {where} it has "
            f"{f'{shape[0]} columns' if shape else 'one axis'}."
        )


def warn_of_first_block(survey: Any) -> None:
    """Columns that are constant in the first block of a stream, whose range scales all rows, never count."""
    constant = np.flatnonzero(survey.low == survey.high)
    if not len(constant):
        return
    place = int(constant[0])
    name = repr(survey.columns[place]) if survey.columns else str(place)
    others = f" and {len(constant) - 1} more have" if len(constant) > 1 else " has"
    warnings.warn(
        f"Column {name}{others} one value only in the first block, whose range scales all rows: later values would "
        "not count. Give input_scaling=(low, high), or a first block in which all columns vary.",
        stacklevel=5,  # whoever calls `fit` or `partial_fit`
    )


def check_within(block: Block, low: np.ndarray, high: np.ndarray, observed: tuple[np.ndarray, np.ndarray]) -> None:
    """The range of a block's rows lies within the range that a survey found."""
    least, largest = observed
    outside = (least < low) | (largest > high)
    if outside.any():
        column = int(np.argmax(outside))
        value = least[column] if least[column] < low[column] else largest[column]
        raise ValueError(
            f"{block.place}column {block.column(column)} holds {value:g}, outside the range {low[column]:g} to "
            f"{high[column]:g} that was surveyed: survey all parts, or give the model input_scaling=(low, high)."
        )


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Say in errors which part of the rows could not be used."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(str(error) if str(error).startswith(part) else f"{part}: {error}") from error


def check_two_classes(counting: Any) -> None:
    """Rows of positive weight hold at least two classes."""
    check_counts(1, len(counting))
    if len(counting) < 2:
        raise ValueError(
            f"The rows of positive weight hold only one class, {counting.tolist()}: a classifier needs rows of at "
            "least two classes."
        )


def check_targets(y: Any) -> Any:
    """There are targets."""
    if y is None:
        raise ValueError(
            "A model requires y to be passed, but the target y is None: give y, name its column as target=, or give "
            "blocks (X, y)."
        )
    return y


def warn_of_column() -> None:
    """Labels in one column are taken as labels, with scikit-learn's warning."""
    message = "A column-vector y was passed when a 1d array was expected: use y.ravel() to get one label per row."
    warnings.warn(message, DataConversionWarning, stacklevel=3)


def _check_whole(y: Array, block: Block) -> None:
    xp = array_namespace(y)
    row = _first(~(xp.isfinite(y) & (y == xp.floor(y))))
    if row is None:
        return
    label = float(y[row])
    if math.isnan(label):
        raise ValueError(f"{block.row(row)}the label is missing: remove such rows. Input y contains NaN.")
    raise ValueError(
        f"{block.row(row)}the label {label} is not a whole number: a classifier needs discrete labels, and a "
        "regressor learns continuous targets. Unknown label type: continuous."
    )


def _as_float64(values: Any, otherwise: str) -> Array:
    if not isinstance(values, np.ndarray):
        xp = array_namespace(values)
        return xp.astype(values, xp.float64)
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(otherwise) from None


# ------------------------------------------------------------------------------
# Inputs without targets, as `transform` and `predict` get them: in memory or on a device.


def checked_inputs(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Check inputs as scikit-learn does; inputs on a device are not copied to the host."""
    if not on_device(X):
        check_readable("X", X, "inputs")
        return validate_data(estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
    X = as_real(X, "X")
    check_shape(X.shape)
    check_counts(X.shape[0], X.shape[0])
    check_inputs(Block(X, None, None))
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
    elif estimator.n_features_in_ != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def checked_weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights as float64 where X is: finite, ≥ 0 and not all zero; a number stands for the weight of each row."""
    if sample_weight is None:
        return None
    weight = as_weights(sample_weight, X)
    checked = check_weights(Block(X, None, weight))
    assert checked is not None
    check_counts(X.shape[0], float(array_namespace(checked).sum(checked)))
    return checked


def as_weights(sample_weight: Any, X: Any) -> Array:
    """One weight per row, in the library and on the device of X."""
    if not on_device(X):
        if np.isscalar(sample_weight):
            return np.full(X.shape[0], sample_weight)
        check_readable("sample_weight", sample_weight, "weights")
        return np.asarray(host_array(sample_weight))
    if isinstance(sample_weight, int | float):
        xp = array_namespace(X)
        return xp.full((X.shape[0],), float(sample_weight), dtype=xp.float64, device=device_of(X))
    return on_device_of(X, "sample_weight", sample_weight)
