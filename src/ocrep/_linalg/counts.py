"""`Encoded`, a block of rows [H | T], and `Counts`: how many rows, how heavy, and about which shift."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ocrep._linalg.arrays import SMALLEST, Array, array_namespace, as_float64, as_floats, device_of
from ocrep._linalg.parallel import row_slices

# 2 MB of float64: so much of rows that are kept in another form is converted at a time.
PIECE_ENTRIES = 2**18


class Encoded(NamedTuple):
    """Features H, targets T and weights of some rows; `of` checks what comes from elsewhere."""

    H: Array
    """Once checked, float64, or float32 with fewer rows than columns: such rows are kept, and converted where used."""
    T: Array
    weight: Array | None = None

    @classmethod
    def of(cls, H: Any, T: Any, sample_weight: Any = None) -> Encoded:
        """Check shapes and weights; T of shape (n,) becomes one column."""
        H, T = as_floats(H), as_float64(T)
        T = T[:, None] if T.ndim == 1 else T
        if H.ndim != 2 or T.ndim != 2 or H.shape[0] != T.shape[0]:
            raise ValueError(
                f"H must be rows × features and T rows × targets with as many rows; got shapes {H.shape} and {T.shape}."
            )
        weight = None if sample_weight is None else as_float64(sample_weight)
        if weight is not None:
            _check_weights(weight, H.shape[0])
        return cls(H if H.shape[0] < H.shape[1] else as_float64(H), T, weight)

    @property
    def n_positive(self) -> int:
        if self.weight is None:
            return self.H.shape[0]
        xp = array_namespace(self.weight)
        return int(xp.sum(xp.astype(self.weight > 0, xp.int64)))

    @property
    def weight_sum(self) -> float:
        if self.weight is None:
            return float(self.H.shape[0])
        return float(array_namespace(self.weight).sum(self.weight))

    @property
    def whole_weights(self) -> bool:
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
        if self.weight is None and self.H.dtype == xp.float64:
            return xp.concat([xp.mean(part, axis=0) for part in (self.H, self.T)])
        weight = xp.ones_like(self.T[:, 0]) if self.weight is None else self.weight
        return xp.concat([averages(weight / self.weight_sum, part) for part in (self.H, self.T)])

    def zeros(self) -> Array:
        """One zero per column of [H | T]."""
        xp = array_namespace(self.H)
        return xp.zeros((self.H.shape[1] + self.T.shape[1],), dtype=xp.float64, device=device_of(self.H))

    def parts(self, shift: Array, intercept: bool, scratch: np.ndarray | None = None) -> tuple[Array, Array]:
        """√w·(H − s) and √w·[1 | T − s]; without an intercept √w·H and √w·T, copied only if there are weights.

        On the host a copy of H may be given a place, the corner of `scratch`; H itself may lie there.
        """
        H, rest = self.H, self.T
        xp, place = array_namespace(H), None if scratch is None else scratch[: H.shape[0], : H.shape[1]]
        if intercept:
            M = H.shape[1]
            ones = xp.ones((H.shape[0], 1), dtype=xp.float64, device=device_of(H))
            H = as_float64(H) - shift[:M] if place is None else np.subtract(H, shift[:M], out=place)
            rest = xp.concat([ones, rest - shift[M:]], axis=1)
        if self.weight is None:
            return as_float64(H), rest
        root = xp.sqrt(self.weight)[:, None]
        return root * as_float64(H) if place is None else np.multiply(root, H, out=place), root * rest

    def design(self, shift: Array, intercept: bool, scratch: np.ndarray | None = None) -> tuple[Array, Array]:
        """√w·[1 | H − s] and √w·(T − s), copied only if there is an intercept or weights; `scratch` as for `parts`."""
        H, rest = self.parts(shift, intercept, scratch)
        return (array_namespace(H).concat([rest[:, :1], H], axis=1), rest[:, 1:]) if intercept else (H, rest)

    def check_finite(self) -> None:
        xp = array_namespace(self.H)
        if not all(bool(xp.all(xp.isfinite(part))) for part in (self.H, self.T)):
            raise ValueError("H or T holds NaN or infinity: remove or impute such rows.")


def averages(weights: Array, H: Array) -> Array:
    """weights·H in float64, for one row of weights or several, without a float64 copy of all H."""
    xp = array_namespace(H)
    if H.dtype == xp.float64:
        return xp.matmul(weights, H)
    total = xp.zeros((*weights.shape[:-1], H.shape[1]), dtype=xp.float64, device=device_of(H))
    for rows in row_slices(H.shape[0], max(1, PIECE_ENTRIES // H.shape[1])):
        total = total + xp.matmul(weights[..., rows], as_float64(H[rows, :]))
    return total


def _check_weights(weight: Array, n_rows: int) -> None:
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one entry per row, shape ({n_rows},); got {weight.shape}.")
    xp = array_namespace(weight)
    if not bool(xp.all((weight >= 0.0) & (weight < 1.0 / SMALLEST))):
        raise ValueError("sample_weight holds negative, NaN or infinite entries: weights must be ≥ 0 and below 1e145.")


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows of √w·[1 | H − s | T − s] as numbers; the counts of all rows are the merge of those of any parts.

    The shift s is the mean of the first rows seen, and zero without an intercept. It changes nothing in exact
    arithmetic, but a column such as 10⁶ ± 1 would otherwise lose six digits before it is centred.
    """

    shift: Array
    """One number per column of [H | T]."""
    n_targets: int
    intercept: bool
    n_rows: int = 0
    """Rows of positive weight."""
    weight_sum: float = 0.0
    whole_weights: bool = True
    """Whether every weight was a whole number."""
    n_seen: int = 0
    """All rows, those of zero weight included."""
    shift_known: bool = False
    """Whether the shift is final; until a row of positive weight gives it, it is zero."""

    @classmethod
    def none(cls, rows: Encoded, intercept: bool) -> Counts:
        """Before any row has been counted, for columns such as these."""
        return cls(rows.zeros(), rows.T.shape[1], intercept, shift_known=not intercept)

    def add(self, rows: Encoded) -> Counts:
        """Count more rows; the first that have weight give the shift."""
        self.check_columns(rows.H.shape[1], rows.T.shape[1])
        weight_sum = rows.weight_sum
        return Counts(
            self.shift if self.shift_known else rows.mean(),
            self.n_targets,
            self.intercept,
            self.n_rows + rows.n_positive,
            self.weight_sum + weight_sum,
            self.whole_weights and rows.whole_weights,
            self.n_seen + rows.H.shape[0],
            self.shift_known or weight_sum > 0.0,
        )

    def merge(self, other: Counts) -> Counts:
        """The counts of the rows of both, about the shift of the first that has any."""
        self.check_columns(other.n_features, other.n_targets)
        if self.intercept != other.intercept:
            raise ValueError("One factor has an intercept and the other does not: they cannot be merged.")
        return replace(
            self if self.shift_known else other,
            n_rows=self.n_rows + other.n_rows,
            weight_sum=self.weight_sum + other.weight_sum,
            whole_weights=self.whole_weights and other.whole_weights,
            n_seen=self.n_seen + other.n_seen,
        )

    def without_rows(self) -> Counts:
        """The same columns about the same shift, before any row has been counted."""
        return Counts(self.shift, self.n_targets, self.intercept, shift_known=self.shift_known)

    def about(self, shift: Array) -> Counts:
        return replace(self, shift=shift)

    @property
    def n_features(self) -> int:
        return self.shift.shape[0] - self.n_targets

    @property
    def n(self) -> int:
        """Observations: rows of positive weight, each counted as often as its weight says if all are whole.

        Whole weights are frequencies, so weights and repeated rows give the same answer under every rule
        but leave-one-out, which leaves out whole rows. Other
        weights only say how precise a row is, and rescaling them must not change the count.
        """
        return round(self.weight_sum) if self.whole_weights else self.n_rows

    def check_columns(self, n_features: int, n_targets: int) -> None:
        """Raise unless rows have as many features and targets as those before."""
        if (n_features, n_targets) != (self.n_features, self.n_targets):
            raise ValueError(
                f"These rows have {n_features} features and {n_targets} targets, but the factor has "
                f"{self.n_features} and {self.n_targets}: all blocks must have the same columns."
            )

    def to_arrays(self) -> dict[str, np.ndarray]:
        counts = (self.n_targets, self.intercept, self.n_rows, self.whole_weights, self.n_seen, self.shift_known)
        return {
            "shift": np.asarray(self.shift),
            "counts": np.asarray(counts, dtype=np.int64),
            "weight_sum": np.asarray(self.weight_sum),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Counts:
        n_targets, intercept, n_rows, whole, n_seen, known = (int(count) for count in arrays["counts"])
        weight_sum = float(arrays["weight_sum"])
        return cls(arrays["shift"], n_targets, bool(intercept), n_rows, weight_sum, bool(whole), n_seen, bool(known))


def counted(block: tuple[Any, ...], counts: Counts | None, intercept: bool) -> tuple[Encoded, Counts]:
    """The rows of a block `(H, T)` or `(H, T, sample_weight)`, checked, and the counts with them added."""
    rows = Encoded.of(*block)
    rows.check_finite()
    return rows, (Counts.none(rows, intercept) if counts is None else counts).add(rows)
