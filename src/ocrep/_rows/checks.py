"""What a block of rows must be, with sentences that name its file or number, its row and its column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._linalg.arrays import SMALLEST
from ocrep._rows.scan.source import Block, shown

Triple = tuple[Any, np.ndarray, "np.ndarray | None"]
# Names and not types, since pandas need not be installed.
_MISSING = ("NAType", "NaTType")


def check_inputs(
    block: Block, n_inputs: int, columns: tuple[str, ...] | None, *, than: str = "the first block"
) -> None:
    """Refuse other columns than those that came before, and numbers that are not finite."""
    if block.X.shape[1] != n_inputs:
        raise ValueError(f"{block.part} has {block.X.shape[1]} columns, but {than} has {n_inputs}.")
    if block.columns != columns:
        raise ValueError(
            f"{block.part} has the columns {shown(block.columns)}, but {than} {shown(columns)}: "
            "give ocrep.scan columns=[…], and they are found by name."
        )
    values = block.X.data if sparse.issparse(block.X) else block.X
    # The sum is finite if all are, but for overflow: only then is each looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = _first(block.X, bad)
        what = "NaN (a missing value)" if np.isnan(values[bad][0]) else "infinity"
        raise ValueError(
            f"{block.row(row)}: column {block.column(column)} holds {what}: remove or impute such rows. "
            "Input X contains NaN or infinity."
        )


def check_weights(block: Block) -> np.ndarray | None:
    """Weights as float64: one per row, finite and ≥ 0."""
    if block.weight is None:
        return None
    try:
        weight = np.asarray(block.weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{block.part}: the weights are no numbers.") from None
    if weight.shape != (block.X.shape[0],):
        raise ValueError(f"{block.part}: sample_weight has the shape {weight.shape}, but one weight per row is needed.")
    bad = ~((weight >= 0.0) & (weight < 1.0 / SMALLEST))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"{block.row(row)}: the weight is {weight[row]}, but weights must be finite and ≥ 0.")
    return weight


def is_missing(label: Any) -> bool:
    """Whether a label is none: None, NaN, or what pandas puts in their place."""
    return label is None or (isinstance(label, float) and label != label) or type(label).__name__ in _MISSING


def check_labels(block: Block) -> np.ndarray:
    """Targets as labels, one per row: whole numbers or texts, none missing."""
    y = _refuse_none(block)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"{block.part}: y has the shape {y.shape}, but a classifier needs one label per row.")
    if y.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(~(y == np.floor(y)))
        if len(bad):
            row = int(bad[0])
            raise ValueError(
                f"{block.row(row)}: the label {y[row]} is no whole number: a classifier needs discrete labels, and "
                "for continuous targets there is a regressor. Unknown label type: continuous."
            )
    if y.dtype.kind == "O":
        missing = next((row for row, label in enumerate(y.tolist()) if is_missing(label)), None)
        if missing is not None:
            raise ValueError(f"{block.row(missing)}: the label is missing: remove such rows. Input y contains NaN.")
    return y


def check_numbers(block: Block, shape: tuple[int, ...] | None) -> np.ndarray:
    """Targets as finite numbers; `shape` is that of the first block's, without its rows."""
    y = _refuse_none(block)
    if y.dtype.kind not in "biuf":
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{block.part}: the targets are no numbers, and regression needs numbers.") from None
    if y.ndim not in (1, 2) or (shape is not None and y.shape[1:] != shape):
        raise ValueError(f"{block.part}: y has the shape {y.shape}, but the first rows have {(shape or ('…',))}.")
    bad = ~np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"{block.row(row)}: the target is NaN or infinity: remove such rows. Input y contains NaN.")
    return y


def _refuse_none(block: Block) -> np.ndarray:
    if block.y is None:
        raise ValueError("The rows have no targets: name their column as target=, or give blocks (X, y).")
    return block.y


def recut(blocks: Iterable[Triple], rows: int) -> Iterator[Triple]:
    """Cut and join blocks `(X, y, weight)` to `rows` rows each; the last may be shorter.

    So the price and the rounding do not depend on how the rows came.
    """
    waiting: list[Triple] = []
    have = 0
    for X, y, weight in blocks:
        start, n = 0, X.shape[0]
        while have + n - start >= rows:
            end = start + rows - have
            waiting.append(_slice(X, y, weight, start, end))
            yield _joined(waiting)
            waiting, have, start = [], 0, end
        if start < n:
            # A copy, so that the little that waits does not keep the large block that it came from.
            waiting.append(_slice(X, y, weight, start, n, copy=start > 0))
            have += n - start
    if waiting:
        yield _joined(waiting)


def _slice(X: Any, y: np.ndarray, weight: np.ndarray | None, start: int, end: int, *, copy: bool = False) -> Triple:
    if start == 0 and end == X.shape[0]:
        return X, y, weight
    part = X[start:end], y[start:end], None if weight is None else weight[start:end]
    return tuple(None if values is None else values.copy() for values in part) if copy else part  # type: ignore[return-value]


def _joined(parts: list[Triple]) -> Triple:
    if len(parts) == 1:
        return parts[0]
    X, y, weight = zip(*parts, strict=True)
    stacked = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    weights = None
    if any(w is not None for w in weight):
        weights = np.concatenate([np.ones(len(t)) if w is None else w for w, t in zip(weight, y, strict=True)])
    return stacked, np.concatenate(y), weights


def _first(X: Any, bad: np.ndarray) -> tuple[int, int]:
    if sparse.issparse(X):
        at = int(np.flatnonzero(bad)[0])
        return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
    row, column = np.unravel_index(int(np.flatnonzero(bad.ravel())[0]), bad.shape)
    return int(row), int(column)
