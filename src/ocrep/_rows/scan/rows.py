"""`Stream`: the rows of a scan as one model sees them, checked, coded and cut to one size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from ocrep._linalg.blocks import block_rows
from ocrep._rows.checks import Triple, check_inputs, check_labels, check_numbers, check_weights, recut
from ocrep._rows.scan.scan import Scan
from ocrep._rows.scan.source import Block, Source
from ocrep._rows.survey import Survey


class Stream:
    """Rows as often as they can be read; `begin` must come first."""

    def __init__(self, model: Any, rows: Scan) -> None:
        self._model, self._scan = model, rows
        self._total = rows.source.n_rows()
        self._n_rows: int | None = None
        self._opened: Iterator[Block] | None = None
        self._range: tuple[np.ndarray, np.ndarray] | None = None
        self.class_factors: np.ndarray | None = None
        """What the rows of each class count for, if not the same."""
        self.height = 0
        """Rows per block."""
        self.n_parts = 0
        """How many parts (files) the current pass has begun."""

    @property
    def source(self) -> Source:
        """Where the rows come from."""
        return self._scan.source

    def begin(self) -> None:
        """Survey the rows as far as the model needs it, and fix its columns, its targets and its features."""
        model = self._model
        first = self._first_block()
        self._n_inputs, self._columns = first.X.shape[1], first.columns
        self._target_shape = () if model._labels_as_targets or first.y is None else first.y.shape[1:]
        survey = self._survey(first)
        self._dtype = survey.dtype
        self._refuse_no_weight(survey)
        model.n_features_in_ = survey.n_inputs
        model.__dict__.pop("feature_names_in_", None)
        if self._columns is not None and all(isinstance(name, str) for name in self._columns):
            model.feature_names_in_ = np.asarray(self._columns, dtype=object)
        example = np.zeros((1, *self._target_shape))
        model._learn_targets(example if survey.labels is None else survey.labels)
        if model._labels_as_targets:
            self.class_factors = self._class_factors(survey)
            example = np.zeros(1, dtype=np.intp)
        model._begin_features(survey.n_inputs, survey.dtype, lambda: survey.range)
        n_features = model._features(np.zeros((1, survey.n_inputs), dtype=survey.dtype)).shape[1]
        self.height = block_rows(n_features + model._encode(example).shape[1], survey.n_inputs)

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Blocks `(H, T, sample_weight)` of all rows."""
        return map(self.mapped, self.triples())

    def mapped(self, triple: Triple) -> tuple[Any, Any, Any]:
        """Features and coded targets of a block."""
        X, y, weight = triple
        return self._model._features(X), self._model._encode(y), weight

    def triples(self, skip: int = 0) -> Iterator[Triple]:
        """Blocks `(X, y, sample_weight)`, checked and coded, behind the first `skip` rows."""
        return recut(self._coded(skip), self.height)

    def _coded(self, skip: int) -> Iterator[Triple]:
        for block in self._pass(skip=skip):
            X = block.X.astype(self._dtype, copy=False) if self._dtype == np.float64 else block.X
            y, weight = self._targets(block), check_weights(block)
            if self._model._labels_as_targets:
                y = _codes(y, self._model.classes_, block)
            if self.class_factors is not None:
                weight = self.class_factors[y] if weight is None else weight * self.class_factors[y]
            yield X, y, weight

    def _pass(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All blocks with their inputs checked; says how far it has come, and that each pass has as many rows."""
        done, self.n_parts = skip, 0
        opened, self._opened = self._opened, None
        for block in self.source.blocks(inputs=inputs, skip=skip) if opened is None else opened:
            if inputs:
                check_inputs(block, self._n_inputs, self._columns)
                self._check_stated_range(block)
            self.n_parts = block.part_number + 1
            done += block.X.shape[0]
            yield block
            if self._scan.progress is not None:
                self._scan.progress(done, self._total)
        if self._n_rows not in (None, done):
            raise ValueError(
                f"The source gave {self._n_rows} rows when it was first read, and now {done}: it must start anew each "
                "time with the same rows."
            )
        self._n_rows = done

    def _first_block(self) -> Block:
        """The first rows; those of a source that is read once are kept for its only pass."""
        blocks = self.source.blocks()
        first = next(blocks, None)
        if first is None:
            raise ValueError("There are no rows to learn from: all files or blocks are empty.")
        if self.source.once:
            self._opened = chain([first], blocks)
        check_inputs(first, first.X.shape[1], first.columns)
        return first

    def _targets(self, block: Block) -> np.ndarray:
        return check_labels(block) if self._model._labels_as_targets else check_numbers(block, self._target_shape)

    def _survey(self, first: Block) -> Survey:
        """What is known of all rows: from files' statistics where they do, else by a pass over the columns needed."""
        labels, classes = self._model._labels_as_targets, self._scan.classes
        looked = self._survey_of(first, labels=False)
        ranged = self._ranged
        counted = labels and (classes is None or self._model.class_weight is not None)
        if not self.source.once and (ranged or counted):
            # Rows of a class that counts nothing have no part in the range, and files state that of all rows.
            stated = self.source.stated_range() if ranged and not (labels and self._model.class_weight) else None
            if ranged and stated is None:
                looked = Survey.merged(self._survey_of(block, labels=labels) for block in self._pass())
            else:
                self._range = stated
                low, high = stated or looked.range
                known = looked
                if counted:
                    known = Survey.merged(self._survey_of(block, labels=True) for block in self._pass(inputs=False))
                looked = replace(known, low=low, high=high, dtype=looked.dtype, columns=looked.columns)
        return looked if not labels or classes is None else _with_labels(looked, classes)

    def _survey_of(self, block: Block, *, labels: bool) -> Survey:
        y, weight = self._targets(block), check_weights(block)
        if labels and self._scan.classes is not None:
            _codes(y, self._scan.classes, block)
        given = getattr(self._model, "class_weight", None)
        if isinstance(given, dict):
            kinds, index = np.unique(y, return_inverse=True)
            by_row = np.array([float(given.get(label, 1.0)) for label in kinds.tolist()])[index]
            weight = by_row if weight is None else weight * by_row
        columns = block.columns if block.X.shape[1] else None
        return Survey.of(block.X, y, weight, labels=labels, columns=columns)

    def _class_factors(self, survey: Survey) -> np.ndarray | None:
        model, totals = self._model, survey.totals
        given = model.class_weight
        if given == "balanced":
            assert totals is not None
            factors = totals.sum() / (len(totals) * np.where(totals > 0, totals, np.inf))
        else:
            factors = None if given is None else model._given_class_factors(given)
        # The totals hold the weights of a dict already, and balancing takes none away.
        if totals is not None and np.count_nonzero(totals) < 2:
            counting = model.classes_[totals > 0].tolist()
            raise ValueError(
                f"The rows of positive weight hold only one class, {counting}: a classifier needs rows of at least "
                "two classes."
            )
        return factors

    def _refuse_no_weight(self, survey: Survey) -> None:
        if survey.weight_sum > 0.0:
            return
        if not self.source.once:
            raise ValueError("All sample weights are zero: at least one row must count.")
        if self._ranged:
            raise ValueError(
                "The first block of a stream gives the inputs' range, but it has no row of positive weight: "
                "give the model input_scaling=(low, high)."
            )

    @property
    def _ranged(self) -> bool:
        """Whether the model needs the inputs' range."""
        return isinstance(getattr(self._model, "input_scaling", None), str)

    def _check_stated_range(self, block: Block) -> None:
        """The range was taken from files' statistics: what lies outside shows that they are wrong."""
        if self._range is None:
            return
        low, high = self._range
        outside = (block.X.min(axis=0) < low) | (block.X.max(axis=0) > high)
        if outside.any():
            raise ValueError(
                f"{block.part}: column {block.column(int(np.flatnonzero(outside)[0]))} holds values outside the range "
                "that the files' statistics state: write the files anew, or give the model input_scaling=(low, high)."
            )


def _with_labels(survey: Survey, classes: np.ndarray) -> Survey:
    """The given classes instead of those found, with their weights."""
    if survey.labels is None or survey.totals is None:
        return replace(survey, labels=classes, totals=None)
    totals = np.zeros(len(classes))
    totals[np.searchsorted(classes, survey.labels)] = survey.totals
    return replace(survey, labels=classes, totals=totals)


def _codes(labels: np.ndarray, classes: np.ndarray, block: Block) -> np.ndarray:
    """Each label's place among the classes."""
    try:
        codes = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        wrong = np.flatnonzero(classes[codes] != labels)
    except TypeError:
        codes, wrong = np.empty(0, dtype=np.intp), np.zeros(1, dtype=np.intp)
    if len(wrong):
        row = int(wrong[0])
        (label,) = labels[row : row + 1].tolist()
        raise ValueError(
            f"{block.row(row)}: the label {label!r} is not among the classes {classes.tolist()}: "
            "give ocrep.scan all labels as classes=[…]."
        )
    return codes
