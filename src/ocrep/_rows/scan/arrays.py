"""Arrays that lie on disk (memory maps, HDF5, Zarr, and whatever else has a shape and can be sliced) as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from scipy import sparse

from ocrep._linalg.blocks import slices_of
from ocrep._rows.block import Block
from ocrep._rows.checks import check_lengths, check_shape
from ocrep._rows.scan.source import Source, as_inputs


def is_on_disk(X: Any) -> bool:
    """Whether X is an array to be read slice by slice: a memory map, or like an array but of no array library."""
    if isinstance(X, np.memmap):
        return True
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X) or is_array_api_obj(X):
        return False
    like_array = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    # Data frames and series have names; CuPy, JAX and others that live on devices are array-API objects.
    return like_array and not any(hasattr(X, name) for name in ("columns", "iloc", "toarray", "__array_namespace__"))


class ArraySource(Source):
    """X, and y, weights and groups of as many rows, read slice by slice."""

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        self._X, self._y = X.tocsr() if sparse.issparse(X) else X, _sliceable(y)
        # One number as the weight of all rows is what scikit-learn allows too.
        self._weight = _sliceable(np.full(X.shape[0], sample_weight) if np.isscalar(sample_weight) else sample_weight)
        self._groups = _sliceable(groups)

    def check(self) -> None:
        check_shape(tuple(self._X.shape))
        check_lengths(self._X.shape[0], y=self._y, sample_weight=self._weight, groups=self._groups)

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """Slices of a few megabytes; slices, not fancy indices, since HDF5 and Zarr read those fast."""
        n, width = self._X.shape
        for part in slices_of(n - skip, width):
            at = slice(part.start + skip, part.stop + skip)
            yield Block(
                as_inputs(self._X[at]) if inputs else np.empty((at.stop - at.start, 0)),
                None if self._y is None else np.asarray(self._y[at]),
                None if self._weight is None else np.asarray(self._weight[at]),
                start=at.start,
                groups=None if self._groups is None else np.asarray(self._groups[at]),
            )

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """Slices of X; an array's columns have no names."""
        self.check()
        for part in slices_of(*self._X.shape):
            yield Block(as_inputs(self._X[part]), None, None, start=part.start)

    def n_rows(self) -> int:
        return int(self._X.shape[0])


def _sliceable(values: Any) -> Any:
    """Arrays on disk as they are; anything else, such as lists and series, as an array."""
    return values if values is None or is_on_disk(values) else np.asarray(values)
