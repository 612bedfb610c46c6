"""Rows in blocks: how many at a time, a checked block [H | T], and blocks that can be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ocrep._linalg.arrays import SMALLEST, Array, array_namespace, as_float64, device_of

# Features, targets and weights of some rows.
Encoded: TypeAlias = tuple[Any, Any, Any]

# About 16 MB of float64: large enough for BLAS-3 to run at full speed, small enough to stay near the caches.
BLOCK_ENTRIES = 2**21


def block_rows(n_columns: int, n_inputs: int = 0) -> int:
    """Rows per block for [H | T] of `n_columns`, made from `n_inputs`.

    At least four times the columns, so that re-triangularizing R with each block adds at most a quarter.
    """
    return max(4 * n_columns, BLOCK_ENTRIES // (n_columns + n_inputs))


def slices_of(n: int, entries_each: int) -> Iterator[slice]:
    """Slices of `n` things, each of which needs `entries_each` numbers, so that none needs more than a block."""
    yield from row_slices(n, max(1, BLOCK_ENTRIES // max(1, entries_each)))


def row_slices(n_rows: int, rows: int) -> Iterator[slice]:
    """Slices of `rows` rows that cover `n_rows`."""
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def _unchanged(block: Encoded) -> Encoded:
    return block


@dataclass(frozen=True, slots=True, eq=False)
class RowBlocks:
    """Rows that can be read again from the beginning, and the map that turns what is read into `(H, T, sample_weight)`.

    Reading is apart from the map, so that workers can do the second while one thread does the first.
    """

    read: Callable[[], Iterator[Any]]
    encode: Callable[[Any], Encoded] = _unchanged
    labels: bool = False
    """Whether T codes classes as ±1."""

    def blocks(self) -> Iterator[Encoded]:
        """All rows as blocks `(H, T, sample_weight)`."""
        return map(self.encode, self.read())


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Rows of features H and targets T, and what they count for."""

    H: Array
    T: Array
    weight: Array | None

    @classmethod
    def of(cls, H: Any, T: Any, sample_weight: Any = None) -> RowBlock:
        """Check shapes and weights; T of shape (n,) becomes one column."""
        H, T = as_float64(H), as_float64(T)
        T = T[:, None] if T.ndim == 1 else T
        if H.ndim != 2 or T.ndim != 2 or H.shape[0] != T.shape[0]:
            raise ValueError(
                f"H must be rows × features and T rows × targets with as many rows; got shapes {H.shape} and {T.shape}."
            )
        weight = None if sample_weight is None else as_float64(sample_weight)
        if weight is not None:
            _check_weights(weight, H.shape[0])
        return cls(H, T, weight)

    @property
    def n_positive(self) -> int:
        """Rows of positive weight."""
        if self.weight is None:
            return self.H.shape[0]
        xp = array_namespace(self.weight)
        return int(xp.sum(xp.astype(self.weight > 0, xp.int64)))

    @property
    def weight_sum(self) -> float:
        """The sum of the weights; without weights, the number of rows."""
        if self.weight is None:
            return float(self.H.shape[0])
        return float(array_namespace(self.weight).sum(self.weight))

    @property
    def whole_weights(self) -> bool:
        """Whether all weights are whole numbers."""
        if self.weight is None:
            return True
        xp = array_namespace(self.weight)
        # Beyond 2³¹ every float64 is nearly a whole number, and none is a frequency.
        return bool(xp.all((self.weight == xp.floor(self.weight)) & (self.weight < 2.0**31)))

    def mean(self) -> Array:
        """Weighted column means of [H | T], zeros when no row counts."""
        xp = array_namespace(self.H)
        if self.weight_sum == 0.0:
            return self.zeros()
        if self.weight is None:
            means = [xp.mean(part, axis=0) for part in (self.H, self.T)]
        else:
            means = [xp.matmul(self.weight / self.weight_sum, part) for part in (self.H, self.T)]
        return xp.concat(means)

    def zeros(self) -> Array:
        """One zero per column of [H | T]."""
        xp = array_namespace(self.H)
        return xp.zeros((self.H.shape[1] + self.T.shape[1],), dtype=xp.float64, device=device_of(self.H))

    def parts(self, shift: Array, intercept: bool) -> tuple[Array, Array]:
        """√w·(H − s) and √w·[1 | T − s]; without an intercept √w·H and √w·T, copied only if there are weights."""
        xp = array_namespace(self.H)
        H, rest = self.H, self.T
        if intercept:
            M = H.shape[1]
            ones = xp.ones((H.shape[0], 1), dtype=xp.float64, device=device_of(H))
            H, rest = H - shift[:M], xp.concat([ones, rest - shift[M:]], axis=1)
        if self.weight is None:
            return H, rest
        root = xp.sqrt(self.weight)[:, None]
        return root * H, root * rest

    def design(self, shift: Array, intercept: bool) -> Array:
        """√w·[1 | H − s | T − s] in one array."""
        xp = array_namespace(self.H)
        first = int(intercept)
        H, rest = self.parts(shift, intercept)
        return xp.concat([rest[:, :first], H, rest[:, first:]], axis=1)

    def check_finite(self) -> None:
        """Raise unless all entries are finite."""
        xp = array_namespace(self.H)
        if not all(bool(xp.all(xp.isfinite(part))) for part in (self.H, self.T)):
            raise ValueError("H or T holds NaN or infinity: remove or impute such rows.")


def _check_weights(weight: Array, n_rows: int) -> None:
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one entry per row, shape ({n_rows},); got {weight.shape}.")
    xp = array_namespace(weight)
    if not bool(xp.all((weight >= 0.0) & (weight < 1.0 / SMALLEST))):
        raise ValueError("sample_weight holds negative, NaN or infinite entries: weights must be ≥ 0 and below 1e145.")
