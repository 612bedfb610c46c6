"""`TablePart`: rows to train on, with all that a survey tells of them; and the split of a problem into two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from ocrep._files.formats import DataError
from ocrep._linalg.folds import mixed
from ocrep.tables.coding import Coding
from ocrep.tables.problem import Problem
from ocrep.tables.rows import TableRows
from ocrep.tables.source import TableSource
from ocrep.tables.split import Split
from ocrep.tables.survey import TableSurvey, survey_of


@dataclass(frozen=True, slots=True, eq=False)
class TablePart:
    """Rows to train on: all of a problem, or those that are not held out."""

    rows: TableRows
    survey: TableSurvey
    coding: Coding
    classes: np.ndarray | None
    """The classes that these rows hold; None for a regression."""
    counts: np.ndarray
    """The number of rows of each class, or of all."""

    @classmethod
    def of(cls, rows: TableRows, survey: TableSurvey) -> TablePart:
        """The part that a survey describes."""
        classes, counts = None, np.array([survey.n_rows])
        if rows.target.classes is not None:
            classes, counts = rows.target.labels(survey.target)
        return cls(rows, survey, Coding.of(survey, rows.kinds), classes, counts)

    def baseline(self) -> DummyClassifier | DummyRegressor:
        """What knows only the targets of these rows."""
        if self.classes is None:
            mean = self.survey.target.total / self.survey.n_rows
            return DummyRegressor(strategy="constant", constant=mean).fit([[0.0]], [mean])
        return DummyClassifier().fit(self.classes, self.classes, sample_weight=self.counts)

    def sample(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """About `size` rows as numbers, all if they are not more, with their targets; by one pass over the file."""
        share, found = size / self.survey.n_rows, []
        for rows in self.rows.blocks():
            taken = np.ones(rows.n_rows, dtype=bool)
            if share < 1.0:
                taken = mixed(rows.row_numbers().astype(np.uint64)) < np.uint64(share * 2.0**64)
            if taken.any():
                found.append((self.coding.inputs(rows.those(taken), dense=True), rows.y[taken]))
        X, y = zip(*found, strict=True)
        return np.concatenate(X), np.concatenate(y)

    def source(self) -> TableSource:
        """The rows as `fit` reads them."""
        return TableSource(self.rows, self.coding, self.survey.n_rows)


def split_problem(problem: Problem, test: float, seed: int) -> tuple[TablePart, TableRows]:
    """Return the rows to train on, surveyed by a pass over the file, and those that are held out."""
    rows, target = problem.rows, problem.rows.target
    counts = np.array([problem.n_rows]) if target.classes is None else target.labels(problem.survey.target)[1]
    split = Split.of(counts, test, seed)
    training = rows.side(split, held_out=False)
    kinds = {**rows.kinds, target.name: target.kind}
    part = TablePart.of(training, survey_of(training.blocks(), kinds, target.name))
    if part.classes is not None and len(part.classes) < 2:
        raise DataError("The training part holds only one class: use a smaller test part, or more rows.")
    return part, rows.side(split, held_out=True)
