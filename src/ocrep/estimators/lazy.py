"""Answers on Dask collections: predictions as lazy Dask arrays, and scores of which only sums come here."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ocrep._rows import open_rows
from ocrep._rows.block import Block, Triple
from ocrep._rows.checks import check_counts, naming
from ocrep._rows.rows import Part
from ocrep._rows.survey import Needs
from ocrep._training.agreement import Agreement
from ocrep.estimators.base import ClosedForm

Model = TypeVar("Model", bound=ClosedForm)

# Attributes of size M² that a worker seldom needs.
_LARGE = ("factor_", "folds_", "spectrum_", "choice_", "singular_values_")
DEVIATIONS = "standard deviations"
# Rows that a worker predicts at a time while it scores.
_ROWS = 2**16


def predict_lazily(model: ClosedForm, X: Any, what: str, *, n_columns: int | None = None, dtype: Any = None) -> Any:
    """A lazy array of one of the model's answers on X: one axis or `n_columns`, of X's own type or `dtype`."""
    from ocrep._rows.dask.partitions import lazily

    declared = _declared_dtype(model, X)
    like = np.empty((0,) if n_columns is None else (0, n_columns), dtype=declared if dtype is None else dtype)
    keep = ("spectrum_",) if what == DEVIATIONS else ()
    return lazily(partial(_answer, what=what), _light(model, keep), X, like)


def score_lazily(model: ClosedForm, X: Any, y: Any, sample_weight: Any, *, labels: bool) -> Agreement:
    """How well predictions agree with y."""
    _declared_dtype(model, X)
    bare = _light(model)
    bare.__dict__.pop("feature_names_in_", None)
    agreement = open_rows(X, y, sample_weight).accumulate(partial(_agreement, bare, labels), Agreement.merge)
    check_counts(1, agreement.weight)
    return agreement


def _agreement(model: ClosedForm, labels: bool, part: Part) -> Agreement | None:
    """The agreement over the rows of one partition; None if it has no rows."""
    if not part.check(Needs(labels=labels, range=False)):
        return None
    total = None
    for X, y, weight in part.triples(_plain, _ROWS):
        found = Agreement.of(y, model.predict(X), weight, labels=labels)
        total = found if total is None else total.merge(found)
    return total


def _plain(block: Block) -> Triple:
    return block.X, block.y, block.weight


def _answer(
    block: Any,
    model: Any,
    like: np.ndarray,
    *,
    what: str,
    block_id: tuple[int, ...] | None = None,
    partition_info: dict[str, Any] | None = None,
) -> np.ndarray:
    """What a fitted model says of one block, in the type of `like`; a block may have no rows.

    Dask itself fills in where the block is: `block_id` for arrays, `partition_info` for dataframes.
    """
    if block.shape[0] == 0:
        return like
    number = block_id[0] if block_id else partition_info["number"] if partition_info else 0
    with naming(f"Partition {number}"):
        values = model.predict(block, return_std=True)[1] if what == DEVIATIONS else getattr(model, what)(block)
        return values.astype(like.dtype, copy=False)


def _declared_dtype(model: ClosedForm, X: Any) -> np.dtype:
    """Check the columns now, before anything is computed, and give the type of X."""
    from ocrep._rows.dask.partitions import described

    check_is_fitted(model)
    columns, dtype = described(X)
    validate_data(model, columns, skip_check_array=True, reset=False)
    return dtype


def _light(model: Model, keep: tuple[str, ...] = ()) -> Model:
    """A copy for workers, without what is large and not needed."""
    light = copy(model)
    for name in set(_LARGE) - set(keep):
        light.__dict__.pop(name, None)
    return light
