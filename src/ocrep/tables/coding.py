"""From the rows of a table to the inputs of a network.

`Coding` says what becomes of each column, block by block, and as a fitted transformer for data frames: both give the
same numbers. `TablePart` is a set of rows to train on with its own survey and coding: all rows of a problem, or the
rows that are not held out, so that nothing is learned from held-out rows. `TableSource` is how `fit` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ocrep._files.convert import DATE_KINDS, ColumnKind, as_kind, coded_texts
from ocrep._files.formats import DataError, changed_file
from ocrep._layers.columns import DateParts, date_part, days_since_1970
from ocrep._linalg.folds import mixed
from ocrep._rows.block import Block, skip_rows
from ocrep._rows.sources import Source
from ocrep._rows.survey import Range
from ocrep.tables.problem import Problem, TableRows
from ocrep.tables.split import Split
from ocrep.tables.survey import ColumnSurvey, Selected, TableSurvey, survey_of

MISSING = "(missing)"  # the category that stands for a missing text


@dataclass(frozen=True, slots=True)
class Dates:
    """What becomes of a column of dates."""

    median: float
    """The day that stands for a missing date."""
    latest: float
    """The last day in training, from which ages are counted."""
    parts: tuple[str, ...]
    """The parts that differ among the rows of training."""
    ranges: tuple[tuple[float, float], ...]
    """The least and the largest value of each part in training."""

    @classmethod
    def of(cls, column: ColumnSurvey, median: float) -> Dates:
        """The parts of a column as its survey found it; none if training has no date."""
        if not column.n_present:
            return cls(0.0, 0.0, (), ())
        years = date_part(np.array([column.low, column.high]), "year", 0.0).tolist()
        values = {"year": years, "month": column.months, "weekday": column.weekdays}
        ends = {part: (float(min(found)), float(max(found))) for part, found in values.items()}
        ends["age"] = (0.0, column.high - column.low)
        varied = {part: range for part, range in ends.items() if range[0] < range[1]}
        return cls(median, column.high, tuple(varied), tuple(varied.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """Numbers and booleans with the median in gaps, parts of dates, a 0/1 column for each text but the most frequent.

    A column for that one would follow from the others: next to an intercept or another column of texts, a network with
    a direct link would be singular, which takes several times as long to train. A text that was not seen in training
    counts as the most frequent one.
    """

    kinds: dict[str, ColumnKind]
    medians: dict[str, float]
    """Of the numbers and booleans; NaN for a column that is empty in training, which is filled with 0."""
    dates: dict[str, Dates]
    """What is computed of each column of dates."""
    texts: dict[str, list[str]]
    """The texts of each text column: the most frequent one, then the others, sorted."""
    range: Range
    """The least and the largest value of each input in training."""
    dtype: np.dtype
    """float32 if that holds all numbers and booleans, else float64."""
    transformer: ColumnTransformer
    """The same coding for data frames, fitted."""

    @classmethod
    def of(cls, survey: TableSurvey, kinds: dict[str, ColumnKind]) -> Coding:
        """The coding that follows from a survey of the training rows."""
        found = survey.medians()
        medians = {name: m for name, m in found.items() if kinds.get(name) in ("number", "boolean")}
        dates = {name: Dates.of(survey.columns[name], found[name]) for name in kinds if kinds[name] in DATE_KINDS}
        texts = {name: _texts(survey, name) for name, kind in kinds.items() if kind == "text"}
        columns = [survey.columns[name] for name in medians]
        # A column without a value is filled with zeros.
        low = [column.low if column.n_present else 0.0 for column in columns]
        high = [column.high if column.n_present else 0.0 for column in columns]
        for lowest, highest in (ends for column in dates.values() for ends in column.ranges):
            low.append(lowest)
            high.append(highest)
        n_others = sum(len(known) - 1 for known in texts.values())
        of_inputs = np.array([*low, *[0.0] * n_others]), np.array([*high, *[1.0] * n_others])
        dtype = np.dtype(np.float32 if not dates and all(column.narrow for column in columns) else np.float64)
        transformer = fitted_transformer(kinds, medians, dates, texts, dtype)
        return cls(kinds, medians, dates, texts, of_inputs, dtype, transformer)

    @property
    def n_numbers(self) -> int:
        """The number of inputs that do not come from texts."""
        return len(self.medians) + sum(len(column.parts) for column in self.dates.values())

    @property
    def width(self) -> int:
        """The number of inputs."""
        return len(self.range[0])

    def inputs(self, rows: Selected, *, dense: bool = False) -> Any:
        """The inputs of some rows: what the transformer gives, or a dense array of it."""
        return self._sparse(rows) if self.transformer.sparse_output_ and not dense else self._dense(rows)

    def _dense(self, rows: Selected) -> np.ndarray:
        X = np.zeros((rows.n_rows, self.width), dtype=np.float64 if self.texts else self.dtype)
        for j, values in enumerate(self._numbers(rows)):
            X[:, j] = values
        ones = X.reshape(-1)
        first = np.arange(len(X)) * self.width
        for places in self._places(rows):
            ones[(first + places)[places >= 0]] = 1.0
        return X

    def _sparse(self, rows: Selected) -> Any:
        n = rows.n_rows
        p = self.n_numbers
        values = np.ones((n, p + len(self.texts)))
        places = np.empty((n, p + len(self.texts)), dtype=np.int32)
        for j, column in enumerate(self._numbers(rows)):
            values[:, j] = column
            places[:, j] = j
        for j, column in enumerate(self._places(rows), p):
            places[:, j] = column
        filled = places >= 0
        starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
        return sparse.csr_matrix((values[filled], places[filled], starts), shape=(n, self.width))

    def _numbers(self, rows: Selected) -> Iterator[np.ndarray]:
        """The numbers, booleans and parts of dates, one column after the other, with their gaps filled."""
        for name, median in self.medians.items():
            values = rows.of(as_kind(rows.block.columns[name], self.kinds[name], name, rows.block.start))
            if np.isnan(values.min(initial=0.0)):
                values = np.where(np.isnan(values), self.dtype.type(np.nan_to_num(median)), values)
            yield values
        for name, column in self.dates.items():
            moments = as_kind(rows.block.columns[name], self.kinds[name], name, rows.block.start)
            days = days_since_1970(rows.of(moments))
            days = np.where(np.isnan(days), column.median, days)
            yield from (date_part(days, part, column.latest) for part in column.parts)

    def _places(self, rows: Selected) -> Iterator[np.ndarray]:
        """For each text column the input that is 1; −1 for the most frequent text, and for one not seen in training."""
        first = self.n_numbers
        for name, known in self.texts.items():
            place_of = {text: first + number for number, text in enumerate(known[1:])}
            codes, words = coded_texts(rows.block.columns[name])
            places = [place_of.get(word, -1) for word in (*words, MISSING)]  # a missing text has the last code
            yield np.array(places)[rows.of(codes)]
            first += len(place_of)


def _texts(survey: TableSurvey, name: str) -> list[str]:
    """The texts of a column, the most frequent one first."""
    column = survey.columns[name]
    counts = {text: count for text, (count, _) in column.texts.found.items()}
    if column.n_present < survey.n_rows:
        counts[MISSING] = counts.get(MISSING, 0) + survey.n_rows - column.n_present
    first = min(counts, key=lambda text: (-counts[text], text))
    return [first, *sorted(counts.keys() - {first})]


def fitted_transformer(
    kinds: dict[str, ColumnKind],
    medians: dict[str, float],
    dates: dict[str, Dates],
    texts: dict[str, list[str]],
    dtype: np.dtype,
) -> ColumnTransformer:
    """The transformer of a table whose columns have these medians, dates and texts.

    It is fitted to a few rows that have them, as many as the column with the most texts, so that scikit-learn itself
    sets all that its transformers know, in every version of it.
    """
    n_rows = max([1, *map(len, texts.values())])
    columns = {}
    for name in kinds:
        if name in texts:
            known = texts[name]
            columns[name] = np.array([known[i % len(known)] for i in range(n_rows)], dtype=object)
        elif name in dates:
            columns[name] = np.full(n_rows, "NaT", dtype="M8[us]")
        else:
            columns[name] = np.full(n_rows, medians[name], dtype=dtype)
    frame = pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()})
    imputed = SimpleImputer(strategy="median", keep_empty_features=True)
    filled = SimpleImputer(strategy="constant", fill_value=MISSING)
    one_hot = OneHotEncoder(categories=list(texts.values()), drop="first", handle_unknown="ignore")
    coded = Pipeline([("fill", filled), ("one_hot", one_hot)])
    parts = DateParts(
        [column.median for column in dates.values()],
        [column.latest for column in dates.values()],
        [list(column.parts) for column in dates.values()],
    )
    steps = [("numbers", imputed, list(medians)), ("dates", parts, list(dates)), ("texts", coded, list(texts))]
    transformer = ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=False)
    transformer.fit(frame)
    return transformer


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
        classes = None
        counts = np.array([survey.n_rows])
        if rows.target.classes is not None:
            classes, counts = rows.target.labels(survey.target)
        return cls(rows, survey, Coding.of(survey, rows.kinds), classes, counts)

    def baseline(self) -> DummyClassifier | DummyRegressor:
        """The best constant prediction: it knows only the targets of these rows."""
        if self.classes is None:
            mean = self.survey.target.total / self.survey.n_rows
            return DummyRegressor(strategy="constant", constant=mean).fit([[0.0]], [mean])
        return DummyClassifier().fit(self.classes, self.classes, sample_weight=self.counts)

    def sample(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """About `size` rows as numbers, all if they are not more, with their targets; by one pass over the file."""
        share = size / self.survey.n_rows
        found = []
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


@dataclass(frozen=True, slots=True, eq=False)
class TableSource(Source):
    """Coded rows with their targets, for `fit`; what the survey found is not computed again."""

    rows: TableRows
    coding: Coding
    total: int

    range_is_observed = True

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All rows, in the file's blocks."""
        return skip_rows(self._blocks(inputs), skip)

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """The same rows, for prediction."""
        return self._blocks(True)

    def n_rows(self) -> int:
        """As many as the survey counted."""
        return self.total

    def stated_range(self) -> Range:
        """The range that the survey found."""
        return self.coding.range

    def fingerprints(self) -> tuple[str, ...]:
        """Path, size and time of the file."""
        return (self.rows.file.fingerprint,)

    def _blocks(self, inputs: bool) -> Iterator[Block]:
        done = 0
        name = str(self.rows.file.path)
        for rows in self.rows.blocks(inputs=inputs):
            X = self.coding.inputs(rows) if inputs else np.empty((rows.n_rows, 0))
            yield Block(X, rows.y, None, name, start=rows.block.start)
            done += rows.n_rows
        if done != self.total:
            raise changed_file(self.rows.file.path)


def split_problem(problem: Problem, test: float, seed: int) -> tuple[TablePart, TableRows]:
    """Return the rows to train on, surveyed by a pass over the file, and the rows that are held out."""
    rows = problem.rows
    target = rows.target
    counts = np.array([problem.n_rows]) if target.classes is None else target.labels(problem.survey.target)[1]
    split = Split.of(counts, test, seed)
    training = rows.side(split, held_out=False)
    kinds = {**rows.kinds, target.name: target.kind}
    part = TablePart.of(training, survey_of(training.blocks(), kinds, target.name))
    if part.classes is not None and len(part.classes) < 2:
        raise DataError("The training part holds only one class: use a smaller test part, or more rows.")
    return part, rows.side(split, held_out=True)
