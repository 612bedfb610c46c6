"""`WideRows`: rows fewer than features, kept as they came; they merge without being factored or copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ocrep._linalg.arrays import SMALLEST, Array, array_namespace, as_float64, device_of, with_rows
from ocrep._linalg.blocks import row_slices
from ocrep._linalg.counts import PIECE_ENTRIES, RowBlock, averages

# More blocks than this are joined: each is a step of every loop over the rows.
MOST_BLOCKS = 64


@dataclass(frozen=True, slots=True, eq=False)
class WideRows:
    """Rows of positive weight; A = √w·(H − s) is formed piece by piece, in float64, where it is used."""

    blocks: tuple[Array, ...]
    """The rows of H in order, each block in its own type: float32 stays float32."""
    T: Array
    root_weight: Array

    @classmethod
    def of(cls, rows: RowBlock, *, copy: bool) -> WideRows:
        """Keep checked rows; without `copy`, H must not be changed by anybody else."""
        xp, H, T = array_namespace(rows.H), rows.H, rows.T
        weight = xp.ones((H.shape[0],), dtype=xp.float64, device=device_of(H)) if rows.weight is None else rows.weight
        if rows.n_positive < H.shape[0]:
            (index,) = xp.nonzero(weight > 0.0)
            H, T, weight = (xp.take(part, index, axis=0) for part in (H, T, weight))
        elif copy:
            H, T = (xp.asarray(part, copy=True) for part in (H, T))
        root = xp.sqrt(weight)
        _check_sizes((H, T), root)
        return cls((H,), T, root)

    @property
    def n_rows(self) -> int:
        return int(self.T.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.blocks[0].shape[1])

    def merge(self, other: WideRows) -> WideRows:
        """The rows of both."""
        xp = array_namespace(self.T)
        T, root = xp.concat([self.T, other.T]), xp.concat([self.root_weight, other.root_weight])
        blocks = tuple(H for H in self.blocks + other.blocks if H.shape[0]) or self.blocks
        return WideRows(blocks if len(blocks) <= MOST_BLOCKS else (xp.concat(list(blocks)),), T, root)

    def leading(self, n_features: int) -> WideRows:
        """The rows of the first features."""
        return WideRows(tuple(H[:, :n_features] for H in self.blocks), self.T, self.root_weight)

    def averages(self, weights: Array) -> Array:
        """weights·[H | T], for rows of weights, (k, n)."""
        xp, total, start = array_namespace(self.T), 0.0, 0
        for H in self.blocks:
            stop = start + H.shape[0]
            total = total + averages(weights[:, start:stop], H)
            start = stop
        return xp.concat([total, xp.matmul(weights, self.T)], axis=1)

    def pieces(self, shift: Array | None) -> Iterator[tuple[slice, Array]]:
        """A by rows, about the shift of the features; None for no shift. Not to be changed."""
        xp, start = array_namespace(self.T), 0
        for H in self.blocks:
            as_it_is = shift is None and H.dtype == xp.float64
            height = H.shape[0] if as_it_is else PIECE_ENTRIES // max(1, H.shape[1])
            for rows in row_slices(H.shape[0], max(1, height)):
                piece, A = slice(start + rows.start, start + rows.stop), as_float64(H[rows, :])
                yield piece, self._scaled(A if shift is None else A - shift, piece)
            start += H.shape[0]

    def columns(self, shift: Array | None) -> Iterator[tuple[slice, Array]]:
        """A by columns: so many at a time that adding up n × n products costs little beside forming them."""
        xp, n = array_namespace(self.T), max(self.n_rows, 1)
        for columns in row_slices(self.n_features, max(PIECE_ENTRIES // n, n)):
            A = xp.concat([as_float64(H[:, columns]) for H in self.blocks])
            if shift is not None:
                A -= shift[columns]
            yield columns, self._scaled(A, slice(None))

    def inner_products(self, shift: Array | None) -> Array:
        """AAᵀ."""
        xp, total = array_namespace(self.T), None
        for _, A in self.columns(shift):
            product = xp.matmul(A, xp.matrix_transpose(A))
            if total is None:
                total = product
            else:
                total += product
        return total

    def features(self, shift: Array | None) -> Array:
        """A as one array."""
        xp = array_namespace(self.T)
        whole = xp.empty((self.n_rows, self.n_features), dtype=xp.float64, device=device_of(self.T))
        for rows, A in self.pieces(shift):
            whole = with_rows(whole, rows, A)
        return whole

    def design(self, shift: Array, intercept: bool) -> tuple[Array, Array]:
        """√w·[1 | H − s] and √w·(T − s)."""
        xp, M, root = array_namespace(self.T), self.n_features, self.root_weight[:, None]
        ones = [root] if intercept else []
        return xp.concat([*ones, self.features(shift[:M])], axis=1), root * (self.T - shift[M:])

    def transposed_times(self, x: Array, shift: Array | None) -> Array:
        """Aᵀx, M × k."""
        xp = array_namespace(x)
        total = xp.zeros((self.n_features, x.shape[1]), dtype=xp.float64, device=device_of(x))
        for rows, A in self.pieces(shift):
            total = total + xp.matmul(xp.matrix_transpose(A), x[rows, :])
        return total

    def products_with(self, H: Array, shift: Array | None) -> Array:
        """HAᵀ."""
        xp = array_namespace(H)
        return xp.concat([xp.matmul(H, xp.matrix_transpose(A)) for _, A in self.pieces(shift)], axis=1)

    def _scaled(self, A: Array, rows: slice) -> Array:
        root = self.root_weight[rows]
        return A if bool(array_namespace(root).all(root == 1.0)) else root[:, None] * A


def _check_sizes(parts: tuple[Array, ...], root: Array) -> None:
    """Raise if inner products of the rows would overflow."""
    xp = array_namespace(root)
    for part in parts:
        if part.shape[0] == 0 or part.shape[1] == 0:
            continue
        largest = max(float(xp.max(part)), -float(xp.min(part))) * float(xp.max(root))
        if not largest * max(part.shape) ** 0.5 < 1.0 / SMALLEST:
            raise ValueError("The rows hold numbers so large that their squares overflow: rescale the columns.")
