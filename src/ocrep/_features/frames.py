"""`FrameInputs`: a transformer that gives the columns of any data frame the kinds they had in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted


class FrameInputs(TransformerMixin, BaseEstimator):
    """Columns of a pandas, polars or Arrow table as a pandas frame of floats, moments and texts, NaN where missing.

    Parameters
    ----------
    kinds : dict
        The columns that are inputs, in order, each with "number", "boolean", "text", "date", "day-first date" or
        "month-first date".
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn nothing: all is given."""
        self.feature_names_in_ = np.asarray(list(self.kinds), dtype=object)
        self.n_features_in_ = len(self.kinds)
        return self

    def transform(self, X: Any) -> Any:
        """Select and convert the columns; raises a `DataError`, a `ValueError`, that names a value of another kind."""
        check_is_fitted(self)
        import pandas

        from ocrep._files.convert import as_kind
        from ocrep._files.formats import check_columns
        from ocrep._files.frame_reader import as_table

        table = as_table(X)
        check_columns("The frame", self.kinds, table.column_names)
        arrays = {name: as_kind(table[name].combine_chunks(), kind, name, 0) for name, kind in self.kinds.items()}
        # With an explicit dtype pandas keeps the objects; otherwise it would copy them to a string type.
        return pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in arrays.items()})

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns."""
        return self.feature_names_in_
