"""Training and prediction on rows that come block by block from a `Scan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from ocrep import rules
from ocrep._linalg.leave_one_out import Rows
from ocrep._rows.checks import check_inputs
from ocrep._rows.scan.arrays import ArraySource, is_on_disk
from ocrep._rows.scan.iterables import IterableSource
from ocrep._rows.scan.rows import Stream
from ocrep._rows.scan.scan import Scan, refuse_plans
from ocrep._rows.scan.source import Source
from ocrep._training.checkpoint import Journal, refuse_unwritable
from ocrep._training.resumable import Passes, model_mark


def scan_of(X: Any, y: Any, sample_weight: Any) -> Scan | None:
    """X as a scan, if it is one or an array on disk; None for arrays in memory."""
    if isinstance(X, Scan):
        if y is not None or sample_weight is not None:
            raise ValueError("ocrep.scan names targets and weights itself: give fit nothing but the scan.")
        return X
    if is_on_disk(X) and y is not None:
        return Scan(ArraySource(X, y, sample_weight))
    return None


def fit_scan(model: Any, rows: Scan) -> None:
    """Train a model on rows that need not fit into memory."""
    _refuse_parameters(model, rows)
    rows.source.prepare()
    stream = Stream(model, rows)
    stream.begin()
    once = rows.source.once
    again = None if once else Rows(stream.blocks, labels=model._labels_as_targets)
    journal = None
    if rows.checkpoint is not None:
        mark = model_mark(model, stream.class_factors, getattr(model, "feature_names_in_", None))
        journal = Journal(rows.checkpoint, rows.checkpoint_every, mark)
    if once or journal is not None:
        Passes(model, stream, journal).learn(once=once)
    else:
        model._learn(again)
    if not model.factor_.weight_sum > 0.0:
        raise ValueError("All sample weights are zero: at least one row must count.")
    model._decide(again)
    if journal is not None:
        journal.remove()


def predicted_blocks(model: Any, source: Any) -> Iterator[np.ndarray]:
    """The model's predictions, one array for each block of rows as they come."""
    names = getattr(model, "feature_names_in_", None)
    # The names are matched here, and blocks go on as arrays, which scikit-learn would complain of.
    bare = copy(model)
    bare.__dict__.pop("feature_names_in_", None)
    for block in _inputs_of(source).inputs(None if names is None else tuple(names)):
        check_inputs(block, model.n_features_in_, block.columns, than="the model")
        yield bare.predict(block.X)


def _inputs_of(source: Any) -> Source:
    if isinstance(source, Scan):
        return source.source
    refuse_plans(source, "predict_blocks")
    if isinstance(source, np.ndarray) or sparse.issparse(source) or is_on_disk(source):
        return ArraySource(source)
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return IterableSource([source])
    if isinstance(source, Iterable) and not isinstance(source, str | bytes):
        return IterableSource(source)
    raise TypeError(
        f"predict_blocks cannot read a {type(source).__name__}: give ocrep.scan(…), an array, or an iterable of blocks."
    )


def _refuse_parameters(model: Any, rows: Scan) -> None:
    """Refuse before anything is read what could not be done afterwards."""
    labels = model._labels_as_targets
    if labels and isinstance(model.class_weight, str) and model.class_weight != "balanced":
        raise ValueError(f"class_weight={model.class_weight!r} must be 'balanced', a dict, or None.")
    if rows.checkpoint is not None and getattr(model, "random_state", 0) is None:
        raise ValueError(
            "A checkpoint is of use only to a network that is drawn the same again: give the model random_state=0, "
            "or another whole number."
        )
    if rows.checkpoint is not None:
        refuse_unwritable(rows.checkpoint)
    if not rows.source.once:
        return
    why = "but these rows can be read only once"
    remedy = "give ocrep.scan a list or a function that starts anew, or"
    if labels and rows.classes is None:
        raise ValueError(f"A classifier must know all labels from the start, {why}: give ocrep.scan classes=[…].")
    if labels and model.class_weight == "balanced":
        raise ValueError(f"class_weight='balanced' counts all rows first, {why}: {remedy} give a dict of weights.")
    if labels and model.calibrate is not None:
        raise ValueError(f"calibrate={model.calibrate!r} reads the rows again, {why}: {remedy} set calibrate=None.")
    if isinstance(getattr(model, "n_hidden", None), str):
        raise ValueError(
            f"n_hidden={model.n_hidden!r} needs all rows to choose the size, {why}: {remedy} give a number."
        )
    if rules.resolve(model.gamma).needs == "rows":
        raise ValueError(f"gamma={model.gamma!r} reads the rows again, {why}: {remedy} use 'gcv' or 'kfold'.")
