"""What is done with one partition, where it lies: a survey, a factor, a score; and how two such results merge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ocrep._features.random_layer import check_weights
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors
from ocrep._linalg.solve import factor_rows
from ocrep._rows.checks import is_missing
from ocrep._rows.survey import Survey

# What is of size M² and seldom needed by a worker.
_NOT_SENT = ("factor_", "folds_", "spectrum_", "choice_", "singular_values_")
DEVIATIONS = "standard deviations"


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """What every worker gets, once: the model as far as it is known, and the type that X declares."""

    model: Any
    dtype: np.dtype

    @classmethod
    def of(cls, model: Any, dtype: np.dtype, *, keep: tuple[str, ...] = ()) -> Sent:
        """Leave out what is large and not needed."""
        light = copy(model)
        for name in set(_NOT_SENT) - set(keep):
            light.__dict__.pop(name, None)
        return cls(light, dtype)


def survey(sent: Sent, rows: Any, number: int, start: int) -> Survey | None:
    """Range and labels of one partition; None if it has no rows."""
    del start
    model = sent.model
    with _naming(number):
        checked = _checked(sent, rows)
        if checked is None:
            return None
        X, y, weight = checked
        labels = model._labels_as_targets
        if labels:
            check_classification_targets(y)
            weight = _without_weightless_classes(model.class_weight, y, weight)
        return Survey.of(X, y, weight, labels=labels)


def factor(sent: Sent, rows: Any, number: int, start: int) -> Factor | FoldFactors | None:
    """The factor of one partition, or one per fold if the model wants them; None if no row counts.

    A Gram matrix that does not prove itself is refined here: the partition lies in memory, and is read again for
    nothing. What is proved of each partition is proved of all, since no factor of the whole is conditioned worse.
    """
    model = sent.model
    with _naming(number):
        checked = _checked(sent, rows)
        if checked is None or (checked[2] is not None and not checked[2].any()):
            return None
        X, y, weight = checked
        y = model._known_targets(y)
        weight = model._row_weights(X, y, weight, streamed=True)
        blocks = model._rows(X, y, weight).blocks
        folds = model._begin_folds()
        if folds is None:
            return factor_rows(blocks, intercept=model.fit_intercept, route=model.solver)[0]
        seen = FoldFactors(folds.plan, folds.factors, start).absorb(blocks(), intercept=model.fit_intercept)
        return FoldFactors(seen.plan, seen.factors, seen.n_read - start)


def merge_surveys(*parts: Survey | None) -> Survey | None:
    """The survey of all partitions."""
    return _merged(Survey.merge, parts)


def merge_factors(*parts: Factor | None) -> Factor | None:
    """The factor of all partitions."""
    return _merged(Factor.merge, parts)


def merge_folds(*parts: FoldFactors | None) -> FoldFactors | None:
    """The factors of all partitions, fold by fold."""

    def merge(one: FoldFactors, other: FoldFactors) -> FoldFactors:
        factors = tuple(merge_factors(*pair) for pair in zip(one.factors, other.factors, strict=True))
        return FoldFactors(one.plan, factors, one.n_read + other.n_read)

    return _merged(merge, parts)


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """How well predictions agree with y: sums that merge, one entry per target."""

    weight: float
    mean: np.ndarray
    spread: np.ndarray
    """Σ w(y − mean)²."""
    error: np.ndarray
    """Σ w(y − prediction)², or the weight of wrong labels."""

    @classmethod
    def of(cls, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None, *, labels: bool) -> Agreement:
        """Compare the rows of a partition."""
        w = np.ones(len(y)) if weight is None else weight
        if labels:
            y = (y != predicted).astype(np.float64)
            predicted = np.zeros_like(y)
        y, predicted = (a.reshape(len(a), -1).astype(np.float64) for a in (y, predicted))
        mean = w @ y / w.sum()
        return cls(float(w.sum()), mean, w @ (y - mean) ** 2, w @ (y - predicted) ** 2)

    def merge(self, other: Agreement) -> Agreement:
        """The sums over the rows of both."""
        weight = self.weight + other.weight
        away = other.mean - self.mean
        return Agreement(
            weight,
            self.mean + away * (other.weight / weight),
            self.spread + other.spread + away**2 * (self.weight * other.weight / weight),
            self.error + other.error,
        )

    @property
    def accuracy(self) -> float:
        """The share of right labels."""
        return float(1.0 - self.error[0] / self.weight)

    @property
    def r2(self) -> float:
        """R², averaged over targets; 1 or 0 for a constant target, as in scikit-learn."""
        constant = self.spread == 0.0
        ratio = self.error / np.where(constant, 1.0, self.spread)
        return float(np.mean(np.where(constant, np.where(self.error == 0.0, 1.0, 0.0), 1.0 - ratio)))


def agreement(sent: Sent, rows: Any, number: int, start: int) -> Agreement | None:
    """Compare what a fitted model predicts on one partition with its targets."""
    del start
    model = sent.model
    with _naming(number):
        checked = _checked(sent, rows)
        if checked is None or (checked[2] is not None and not checked[2].any()):
            return None
        _, y, weight = checked
        return Agreement.of(y, model.predict(rows[0]), weight, labels=model._labels_as_targets)


def merge_agreements(*parts: Agreement | None) -> Agreement | None:
    """The agreement over all partitions."""
    return _merged(Agreement.merge, parts)


def answer(
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
    with _naming(block_id[0] if block_id else partition_info["number"] if partition_info else 0):
        return _answer(block, model, like, what)


def _answer(block: Any, model: Any, like: np.ndarray, what: str) -> np.ndarray:
    values = model.predict(block, return_std=True)[1] if what == DEVIATIONS else getattr(model, what)(block)
    return values.astype(like.dtype, copy=False)


def _merged(merge: Any, parts: Any) -> Any:
    filled = [part for part in parts if part is not None]
    return reduce(merge, filled) if filled else None


@contextmanager
def _naming(number: int) -> Iterator[None]:
    """Say which partition it was that could not be used."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"Partition {number}: {error}") from error


def _checked(sent: Sent, rows: Any) -> tuple[Any, np.ndarray, np.ndarray | None] | None:
    """The rows as scikit-learn checks them, of the columns and the type that the collection declared."""
    X, y, *weights = rows
    heights = [part.shape[0] for part in rows]
    if len(set(heights)) > 1:
        raise ValueError(f"X, y and sample_weight must have the same number of rows; they have {heights}.")
    if not heights[0]:
        return None
    # Checked as new data, on a copy: other threads check other partitions with this very model.
    seen = copy(sent.model)
    if seen._labels_as_targets:
        _refuse_missing_labels(y)
    X, y = seen._check_rows(X, y, reset=True)
    _check_columns(_columns(seen), _columns(sent.model))
    if X.dtype != sent.dtype:
        raise ValueError(f"the values are {X.dtype}, but the collection declares {sent.dtype}: use astype.")
    return X, y, _checked_weights(weights[0], X) if weights else None


def _refuse_missing_labels(y: Any) -> None:
    labels = np.asarray(y).ravel()
    missing = next((i for i, label in enumerate(labels.tolist()) if is_missing(label)), None)
    if missing is not None:
        raise ValueError(f"row {missing + 1}: the label is missing: remove such rows. Input y contains NaN.")


def _checked_weights(weight: Any, X: Any) -> np.ndarray:
    """Weights ≥ 0; here, unlike in the whole, all may be zero."""
    weight = np.asarray(weight)
    checked = check_weights(weight, X) if np.count_nonzero(weight) else None
    return np.zeros(len(weight)) if checked is None else checked


def _columns(model: Any) -> list[Any]:
    return list(getattr(model, "feature_names_in_", range(model.n_features_in_)))


def _check_columns(mine: list[Any], declared: list[Any]) -> None:
    if mine != declared:
        told = [f"{len(c)} columns {c[:8]}" for c in (mine, declared)]
        raise ValueError(f"the rows have {told[0]}, but the collection declares {told[1]}.")


def _without_weightless_classes(class_weight: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
    """Rows of a class whose weight is 0 do not count, not even for the range."""
    given = class_weight if isinstance(class_weight, dict) else {}
    weightless = [label for label, factor in given.items() if factor == 0]
    if not weightless:
        return weight
    return np.where(np.isin(y, weightless), 0.0, 1.0 if weight is None else weight)
