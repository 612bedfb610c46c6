"""Predictions on Dask collections as lazy Dask arrays, and scores of which only sums come here."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ocrep._rows.dask import worker
from ocrep._rows.dask.partitions import Partitions, described, lazily
from ocrep._rows.dask.worker import Sent


def predict(model: Any, X: Any, what: str, *, n_columns: int | None = None, dtype: Any = None) -> Any:
    """A lazy array of one of the model's answers on X: one axis or `n_columns`, of X's own type or `dtype`."""
    declared = _declared(model, X)
    like = np.empty((0,) if n_columns is None else (0, n_columns), dtype=declared if dtype is None else dtype)
    sent = Sent.of(model, declared, keep=("spectrum_",) if what == worker.DEVIATIONS else ())
    return lazily(partial(worker.answer, what=what), X, sent.model, like)


def score(model: Any, X: Any, y: Any, sample_weight: Any) -> worker.Agreement:
    """How well predictions agree with y."""
    declared = _declared(model, X)
    partitions = Partitions.of(X, y, sample_weight)
    total = partitions.merged("score", Sent.of(model, declared), worker.agreement, worker.merge_agreements)
    if total is None:
        raise ValueError("The Dask collections hold no rows of positive weight: there is nothing to score.")
    return total


def _declared(model: Any, X: Any) -> np.dtype:
    """Check the columns now, before anything is computed, and give the type of X."""
    check_is_fitted(model)
    columns, dtype = described(X)
    validate_data(model, columns, skip_check_array=True, reset=False)
    return dtype
