"""`Coding`: from the columns of a table to the inputs of a network, block by block, and as a fitted transformer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ocrep._files.convert import DATE_KINDS, ColumnKind, as_kind, coded_texts
from ocrep._layers.columns import DateParts, date_part, days_since_1970
from ocrep._rows.survey import Range
from ocrep.tables.rows import Selected
from ocrep.tables.survey import ColumnSurvey, TableSurvey

MISSING = "(missing)"  # the category that stands for a missing text


@dataclass(frozen=True, slots=True)
class Dates:
    """What becomes of a column of dates."""

    median: float
    """The day that stands for a missing date."""
    latest: float
    """The last day in training, from which ages are counted."""
    parts: tuple[str, ...]
    """Those that are not the same in all rows of training."""
    ranges: tuple[tuple[float, float], ...]
    """The least and the largest value of each of them in training."""

    @classmethod
    def of(cls, column: ColumnSurvey, median: float) -> Dates:
        """As a survey of the column tells; without a date in training there are no parts."""
        if not column.n_present:
            return cls(0.0, 0.0, (), ())
        years = date_part(np.array([column.low, column.high]), "year", 0.0).tolist()
        values = {"year": years, "month": column.months, "weekday": column.weekdays}
        ends = {part: (float(min(found)), float(max(found))) for part, found in values.items()}
        ends["age"] = (0.0, column.high - column.low)
        varied = {part: range for part, range in ends.items() if range[0] < range[1]}
        return cls(median, column.high, tuple(varied), tuple(varied.values()))

    @staticmethod
    def transformer(columns: dict[str, Dates]) -> DateParts:
        """The same for data frames."""
        medians, latest = ([getattr(column, name) for column in columns.values()] for name in ("median", "latest"))
        return DateParts(medians, latest, [list(column.parts) for column in columns.values()])


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
        """The coding that a survey of the training rows tells."""
        found = survey.medians()
        medians = {name: m for name, m in found.items() if kinds.get(name) in ("number", "boolean")}
        dates = {name: Dates.of(survey.columns[name], found[name]) for name in kinds if kinds[name] in DATE_KINDS}
        texts = {name: _texts(survey, name) for name, kind in kinds.items() if kind == "text"}
        columns = [survey.columns[name] for name in medians]
        # A column without a value is filled with zeros.
        low = [column.low if column.n_present else 0.0 for column in columns]
        high = [column.high if column.n_present else 0.0 for column in columns]
        for lowest, highest in (ends for column in dates.values() for ends in column.ranges):
            low, high = [*low, lowest], [*high, highest]
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
        ones, first = X.reshape(-1), np.arange(len(X)) * self.width
        for places in self._places(rows):
            ones[(first + places)[places >= 0]] = 1.0
        return X

    def _sparse(self, rows: Selected) -> Any:
        n, p = rows.n_rows, self.n_numbers
        values, places = np.ones((n, p + len(self.texts))), np.empty((n, p + len(self.texts)), dtype=np.int32)
        for j, column in enumerate(self._numbers(rows)):
            values[:, j], places[:, j] = column, j
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
        """For each text column the input that is 1; −1 for the most frequent text, and those not seen in training."""
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

    It is fitted to a few rows that have them: as many rows as the column with the most texts.
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
    steps = [("numbers", imputed, list(medians)), ("dates", Dates.transformer(dates), list(dates))]
    steps += [("texts", coded, list(texts))]
    transformer = ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=False)
    transformer.fit(frame)
    return transformer
