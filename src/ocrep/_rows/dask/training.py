"""`fit` on Dask collections: one pass for ranges and labels if they are needed, one for the factor."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ocrep import rules
from ocrep._features.random_layer import Range
from ocrep._rows.dask import worker
from ocrep._rows.dask.partitions import Partitions, described
from ocrep._rows.dask.worker import Sent
from ocrep._rows.survey import Survey


def fit(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Train a model on rows where they lie; what comes here is one survey and one factor, or one per fold."""
    _refuse_what_reads_rows(model)
    partitions = Partitions.of(X, y, sample_weight)
    columns, dtype = described(X)
    validate_data(model, columns, skip_check_array=True, reset=True)

    @cache
    def surveyed() -> Survey:
        return _survey(partitions, Sent.of(model, dtype))

    model._learn_targets(surveyed().labels if model._labels_as_targets else np.zeros((1,) * y.ndim))
    # Ranges may be given, and then a regressor needs one pass only.
    model._begin_features(model.n_features_in_, dtype, lambda: _range(surveyed()))
    sent = Sent.of(model, dtype)
    if model._labels_as_targets:
        sent.model.class_weight = _class_weights(model, surveyed())
    _factor(model, partitions, sent)
    model._decide(rows=None)


def _survey(partitions: Partitions, sent: Sent) -> Survey:
    survey = partitions.merged("survey", sent, worker.survey, worker.merge_surveys)
    if survey is None:
        raise ValueError("The Dask collections hold no rows: there is nothing to learn from.")
    return survey


def _range(survey: Survey) -> Range:
    if survey.weight_sum == 0.0:
        raise ValueError("All sample weights are zero: at least one row must count.")
    return survey.range


def _class_weights(model: Any, survey: Survey) -> dict[Any, float] | None:
    """The factor of each class, settled here from the totals: a partition knows only its own rows."""
    assert survey.totals is not None
    codes = np.arange(len(model.classes_))
    # One row per class that carries the weight of all its rows: what is refused of those is refused of all.
    model._row_weights(codes[:, None], codes, survey.totals)
    if model.class_weight is None:
        return None
    factors = model._class_factors(codes, survey.totals, streamed=False)
    return dict(zip(model.classes_.tolist(), factors.tolist(), strict=True))


def _factor(model: Any, partitions: Partitions, sent: Sent) -> None:
    folds = model._begin_folds()
    merge = worker.merge_factors if folds is None else worker.merge_folds
    seen = partitions.merged("factor", sent, worker.factor, merge)
    if seen is None:
        raise ValueError("The Dask collections hold no rows of positive weight: there is nothing to learn from.")
    model.folds_ = None if folds is None else seen
    model.factor_ = seen if folds is None else seen.merged()
    model._settle_size()
    model.spectrum_ = model.factor_.spectrum()


def _refuse_what_reads_rows(model: Any) -> None:
    """Rows stay where they are, so what would read them one by one here is not to be had."""
    if rules.resolve(model.gamma).needs == "rows":
        raise ValueError(
            f"gamma={model.gamma!r} reads the rows once more, and with Dask they stay with the workers: use 'kfold', "
            "which is exact cross-validation too, or 'gcv'."
        )
    if getattr(model, "calibrate", None) is not None:
        raise ValueError(
            f"calibrate={model.calibrate!r} reads the rows once more, and with Dask they stay with the workers: set "
            "calibrate=None, or calibrate on a sample with scikit-learn's CalibratedClassifierCV."
        )
