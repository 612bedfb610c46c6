"""`Numbers` and `Labels`: how targets become numbers to fit, and what the rows of each class weigh."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, device_of, to_device_of, to_host
from ocrep._rows.block import Block
from ocrep._rows.checks import check_target_shape, check_two_classes
from ocrep._rows.survey import RowSample, Survey

# ------------------------------------------------------------------------------
# `Indicators`: targets of rows that may have several labels, a column of 0 and 1 for each.


@dataclass(frozen=True, slots=True)
class Indicators:
    """One column for each label, 0 or 1 in every row, coded ±1: as many classifications of two classes."""

    n_labels: int
    labels: ClassVar[bool] = True
    several: ClassVar[bool] = True

    @property
    def classes(self) -> np.ndarray:
        """The numbers of the labels, as in scikit-learn."""
        return np.arange(self.n_labels)

    def code(self, block: Block) -> Block:
        """Checked rows in the form that `encode` takes."""
        check_target_shape(block, (self.n_labels,), where="in the first rows")
        return block

    def encode(self, y: Array) -> Array:
        """T: +1 where a row has the label, −1 elsewhere."""
        xp = array_namespace(y)
        return 2.0 * xp.astype(y, xp.float64) - 1.0

    def fingerprint(self) -> str:
        """Indicators are coded in one way only."""
        return f"{self.n_labels} indicators"


# ------------------------------------------------------------------------------

_SEVERAL_WEIGHTS = "class_weight={} weighs a row by its label, and these rows have several labels: use sample_weight."


@dataclass(frozen=True, slots=True)
class Numbers:
    """Targets of a regression: numbers, one column or several."""

    one_dimensional: bool = True
    """Whether y has one axis, and predictions too."""
    labels: ClassVar[bool] = False
    several: ClassVar[bool] = False
    """Whether a row may have several labels."""

    def learn(self, survey: Survey) -> Numbers:
        """Take the shape of the targets from a survey."""
        return Numbers(one_dimensional=survey.target_shape == ())

    def code(self, block: Block) -> Block:
        """Checked rows in the form that `encode` takes."""
        return block

    def encode(self, y: Array) -> Array:
        """T, one column per target, laid out the same wherever it came from: products then round the same."""
        T = array_namespace(y).reshape(y, (y.shape[0], -1))
        return np.ascontiguousarray(T) if isinstance(T, np.ndarray) else T

    def fingerprint(self) -> str:
        """Numbers are coded in one way only."""
        return f"numbers, {1 if self.one_dimensional else 2} axes"


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Targets of a classification: labels, coded ±1 in one column per class, or in one for two classes."""

    class_weight: dict[Any, float] | str | None = None
    classes: np.ndarray | None = None
    """All labels, sorted; None until they are learned."""
    factors: np.ndarray | None = None
    """What each class's rows are multiplied by, if classes have weights of their own."""
    labels: ClassVar[bool] = True
    several: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given = self.class_weight
        if not (given is None or isinstance(given, dict) or (isinstance(given, str) and given == "balanced")):
            raise ValueError(f"class_weight={given!r} must be 'balanced', a dict, or None.")
        weights = given.values() if isinstance(given, dict) else ()
        if not all(isinstance(weight, Real) and 0.0 <= weight < math.inf for weight in weights):
            raise ValueError(f"class_weight={given} must hold finite numbers ≥ 0.")

    def weigh(self, y: Array, weight: Array | None) -> Array | None:
        """Multiply the weights of rows by the given weights of their labels, before all labels are known."""
        assert isinstance(self.class_weight, dict)
        if y.ndim > 1:
            raise ValueError(_SEVERAL_WEIGHTS.format(self.class_weight))
        return _weighed(y, weight, self.class_weight)

    def weighted(self, sample: RowSample) -> RowSample:
        """The sample with the weights of classes."""
        if self.classes is None or self.factors is None:
            return sample
        factors = dict(zip(self.classes.tolist(), self.factors.tolist(), strict=True))
        assert sample.y is not None
        return replace(sample, weight=_weighed(sample.y, sample.weight, factors))

    def learn(self, survey: Survey) -> Labels | Indicators:
        """Take the classes, unless they were given, and the weight of their rows from a survey."""
        if survey.target_shape:
            return self._several(survey)
        classes = survey.labels if self.classes is None else self.classes
        assert classes is not None
        check_more_than_one("y", classes)
        if survey.totals is not None and self.classes is None:
            check_two_classes(classes[survey.totals > 0])
        return replace(self, classes=classes, factors=self._factors(classes, survey.totals))

    def _several(self, survey: Survey) -> Indicators:
        """Targets that turned out to be indicators of several labels."""
        targets = Indicators(survey.target_shape[0])
        if self.class_weight is not None:
            raise ValueError(_SEVERAL_WEIGHTS.format(self.class_weight))
        given = survey.labels if self.classes is None else self.classes
        if given is not None and not np.array_equal(given, targets.classes):
            raise ValueError(
                f"classes={given.tolist()} lists labels of which each row has one, but y has {targets.n_labels} "
                "columns of indicators: leave classes out."
            )
        return targets

    def _factors(self, classes: np.ndarray, totals: np.ndarray | None) -> np.ndarray | None:
        """One factor per class; "balanced" makes the weights of all classes add up to the same."""
        given = self.class_weight
        if given is None:
            return None
        if not isinstance(given, dict):
            assert totals is not None
            return totals.sum() / (len(totals) * np.where(totals > 0, totals, np.inf))
        labels = classes.tolist()
        unknown = sorted(set(given) - set(labels), key=str)
        if unknown:
            raise ValueError(f"class_weight names classes that are not in y: {unknown}.")
        return np.array([float(given.get(label, 1.0)) for label in labels])

    def code(self, block: Block) -> Block:
        """Checked rows with labels as class numbers, and weights multiplied by those of the classes."""
        codes = self._codes(block)
        weight = block.weight
        if self.factors is not None:
            by_row = array_namespace(codes).take(to_device_of(codes, self.factors), codes, axis=0)
            weight = by_row if weight is None else weight * by_row
        return replace(block, y=codes, weight=weight)

    def _codes(self, block: Block) -> Array:
        classes, y = self.classes, block.y
        assert classes is not None
        check_target_shape(block, (), where="in the first rows")
        if isinstance(y, np.ndarray) and (y.dtype.kind in "biuf") != (classes.dtype.kind in "biuf"):
            self._raise_unknown(block, 0)
        xp = array_namespace(y) if not isinstance(y, np.ndarray) else np
        known = to_device_of(y, classes)
        codes = xp.searchsorted(known, y)
        codes = xp.where(codes < known.shape[0], codes, 0 * codes)
        wrong = xp.take(known, codes, axis=0) != y
        if bool(xp.any(wrong)):
            self._raise_unknown(block, int(xp.argmax(xp.asarray(wrong, dtype=xp.int8))))
        return codes

    def _raise_unknown(self, block: Block, row: int) -> None:
        assert self.classes is not None
        (label,) = to_host(block.y[row : row + 1]).tolist()
        raise ValueError(
            f"{block.row(row)}the label {label!r} is not among the classes {self.classes.tolist()}: "
            "name all labels as classes=[…]."
        )

    def encode(self, codes: Array) -> Array:
        """T of class numbers: +1 in the column of the class, −1 elsewhere; one column for two classes."""
        assert self.classes is not None
        xp, n_classes = array_namespace(codes), len(self.classes)
        columns = xp.arange(1 if n_classes == 2 else 0, n_classes, dtype=codes.dtype, device=device_of(codes))
        return 2.0 * xp.astype(codes[:, None] == columns, xp.float64) - 1.0

    def unweighted(self) -> Labels:
        return replace(self, factors=None)

    def fingerprint(self) -> str:
        """What decides the coding: classes and their weights."""
        return repr([None if values is None else values.tolist() for values in (self.classes, self.factors)])


def _weighed(y: Array, weight: Array | None, factors: dict[Any, float]) -> Array:
    """Multiply the weights of rows by the factors of their labels; a label without one counts as it is."""
    xp = array_namespace(y) if not isinstance(y, np.ndarray) else np
    by_row = xp.ones(y.shape, dtype=xp.float64, device=device_of(y)) if xp is not np else np.ones(len(y))
    for label, factor in factors.items():
        if isinstance(y, np.ndarray):
            by_row = np.where(y == label, float(factor), by_row)
        elif isinstance(label, Real) and float(label).is_integer():  # `learn` names others, which are not in y
            by_row = xp.where(y == int(float(label)), xp.full_like(by_row, float(factor)), by_row)
    return by_row if weight is None else weight * by_row


def check_more_than_one(where: str, classes: np.ndarray) -> None:
    """Raise unless there are at least two classes."""
    if len(classes) < 2:
        raise ValueError(
            f"{where} holds only one class, {classes.tolist()}: a classifier needs rows of at least two classes."
        )
