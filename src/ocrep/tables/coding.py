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

from ocrep._files.convert import ColumnKind, as_kind, coded_texts
from ocrep._rows.survey import Range
from ocrep.tables.rows import Selected
from ocrep.tables.survey import TableSurvey

MISSING = "(missing)"  # the category that stands for a missing text


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """Numbers and booleans with the median in gaps, then a 0/1 column for each text but the most frequent.

    A column for that one would follow from the others: next to an intercept or another column of texts, a network with
    a direct link would be singular, which takes several times as long to train. A text that was not seen in training
    counts as the most frequent one.
    """

    kinds: dict[str, ColumnKind]
    medians: dict[str, float]
    """Of the numbers and booleans; NaN for a column that is empty in training, which is filled with 0."""
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
        medians = {name: m for name, m in survey.medians().items() if name in kinds and kinds[name] != "text"}
        texts = {name: _texts(survey, name) for name, kind in kinds.items() if kind == "text"}
        columns = [survey.columns[name] for name in medians]
        # A column without a value is filled with zeros.
        low = [column.low if column.n_present else 0.0 for column in columns]
        high = [column.high if column.n_present else 0.0 for column in columns]
        n_others = sum(len(known) - 1 for known in texts.values())
        of_inputs = np.array([*low, *[0.0] * n_others]), np.array([*high, *[1.0] * n_others])
        dtype = np.dtype(np.float32 if all(column.narrow for column in columns) else np.float64)
        return cls(kinds, medians, texts, of_inputs, dtype, fitted_transformer(kinds, medians, texts, dtype))

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
        n, p = rows.n_rows, len(self.medians)
        values, places = np.ones((n, p + len(self.texts))), np.empty((n, p + len(self.texts)), dtype=np.int32)
        for j, column in enumerate(self._numbers(rows)):
            values[:, j], places[:, j] = column, j
        for j, column in enumerate(self._places(rows), p):
            places[:, j] = column
        filled = places >= 0
        starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
        return sparse.csr_matrix((values[filled], places[filled], starts), shape=(n, self.width))

    def _numbers(self, rows: Selected) -> Iterator[np.ndarray]:
        """The numbers and booleans, one column after the other, with their gaps filled."""
        for name, median in self.medians.items():
            values = rows.of(as_kind(rows.block.columns[name], self.kinds[name], name, rows.block.start))
            if np.isnan(values.min(initial=0.0)):
                values = np.where(np.isnan(values), self.dtype.type(np.nan_to_num(median)), values)
            yield values

    def _places(self, rows: Selected) -> Iterator[np.ndarray]:
        """For each text column the input that is 1; −1 for the most frequent text, and those not seen in training."""
        first = len(self.medians)
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
    kinds: dict[str, ColumnKind], medians: dict[str, float], texts: dict[str, list[str]], dtype: np.dtype
) -> ColumnTransformer:
    """The transformer of a table whose columns have these medians and these texts.

    It is fitted to a few rows that have them: as many rows as the column with the most texts.
    """
    n_rows = max([1, *map(len, texts.values())])
    columns = {}
    for name in kinds:
        if name in texts:
            known = texts[name]
            columns[name] = np.array([known[i % len(known)] for i in range(n_rows)], dtype=object)
        else:
            columns[name] = np.full(n_rows, medians[name], dtype=dtype)
    frame = pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()})
    imputed = SimpleImputer(strategy="median", keep_empty_features=True)
    filled = SimpleImputer(strategy="constant", fill_value=MISSING)
    one_hot = OneHotEncoder(categories=list(texts.values()), drop="first", handle_unknown="ignore")
    coded = Pipeline([("fill", filled), ("one_hot", one_hot)])
    steps = [("numbers", imputed, list(medians)), ("texts", coded, list(texts))]
    transformer = ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=False)
    transformer.fit(frame)
    return transformer
