"""`Encoded`, a block of rows [H | T], and `Counts`: how many rows, of which weight, and about which shift.

Everything is computed from the rows of A = √w·[1 | H − s | T − s]. AᵀA is then Σ w·aaᵀ, so a row of weight w counts as
w equal rows, and the column of ones (√w, once it is weighted) gives the intercept: behind it, a factor R of A holds the
factor of the data about their weighted mean,

    Σ w(x − x̄)(x − x̄)ᵀ = Σ w(x − s)(x − s)ᵀ − Σw·(x̄ − s)(x̄ − s)ᵀ   for every shift s.

In exact arithmetic s changes nothing. In floating point the two terms on the right cancel, and what is lost is ε·(|x̄ −
s|/spread)²: a column such as 10⁶ ± 1 about s = 0 would lose twelve digits of its variance in a Gram matrix, and six of
its own in a triangle. So s is the mean of the first rows that have weight: near enough to the mean of all, and known
before the other rows are read, so that sums of folds and workers are about one shift and simply add up (Chan, Golub,
LeVeque, The American Statistician 37, 1983). Without an intercept nothing is centred, and s = 0.

`Counts` also says how many observations n the rows are, which the criteria for γ need. Whole weights are frequencies: n
= Σw, so that weights and repeated rows give the same answer under every rule but leave-one-out, which leaves out whole
rows. Other weights only say how precise a row is, and rescaling them must not change n: the rows of positive weight are
counted.

Counts merge: the counts of all rows are the sum of the counts of any parts, about the shift of the first that has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj

from ocrep._linalg.arrays import SMALLEST, Array, array_namespace, as_float64, device_of
from ocrep._linalg.parallel import row_slices

# 2 MB of float64: rows that are kept in float32 are converted in pieces of this size.
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
        if not (is_array_api_obj(H) and H.dtype == array_namespace(H).float32):
            H = as_float64(H)
        T = as_float64(T)
        T = T[:, None] if T.ndim == 1 else T
        if H.ndim != 2 or T.ndim != 2 or H.shape[0] != T.shape[0]:
            raise ValueError(
                f"H must be rows × features and T rows × targets with as many rows; got shapes {H.shape} and {T.shape}."
            )
        n_rows, n_features = H.shape
        weight = None if sample_weight is None else as_float64(sample_weight)
        if weight is not None:
            if weight.shape != (n_rows,):
                raise ValueError(f"sample_weight must have one entry per row, shape ({n_rows},); got {weight.shape}.")
            # Written so that NaN fails too.
            if not bool(array_namespace(weight).all((weight >= 0.0) & (weight < 1.0 / SMALLEST))):
                raise ValueError(
                    "sample_weight holds negative, NaN or infinite entries: weights must be ≥ 0 and below 1e145."
                )
        return cls(H if n_rows < n_features else as_float64(H), T, weight)

    @property
    def n_positive(self) -> int:
        """Rows of positive weight."""
        if self.weight is None:
            return self.H.shape[0]
        xp = array_namespace(self.weight)
        return int(xp.sum(xp.astype(self.weight > 0, xp.int64)))

    @property
    def weight_sum(self) -> float:
        if self.weight is None:
            return float(self.H.shape[0])
        return float(array_namespace(self.weight).sum(self.weight))

    def mean(self) -> Array:
        """Weighted column means of [H | T], where some row has weight."""
        xp = array_namespace(self.H)
        if self.weight is None and self.H.dtype == xp.float64:
            return xp.concat([xp.mean(part, axis=0) for part in (self.H, self.T)])
        # Divided by their sum before they multiply H, so that large weights do not overflow.
        weight = xp.ones_like(self.T[:, 0]) if self.weight is None else self.weight
        return xp.concat([averages(weight / self.weight_sum, part) for part in (self.H, self.T)])

    def parts(self, shift: Array, intercept: bool, scratch: np.ndarray | None = None) -> tuple[Array, Array]:
        """√w·(H − s) and √w·[1 | T − s]; without an intercept √w·H and √w·T, copied only if there are weights.

        On the host a copy of H may be written into the first rows and columns of `scratch`; H itself may lie there.
        """
        H = self.H
        rest = self.T
        xp = array_namespace(H)
        n_rows, M = H.shape
        # New memory for each chunk would cost more than the subtraction itself.
        place = None if scratch is None else scratch[:n_rows, :M]
        if intercept:
            ones = xp.ones((n_rows, 1), dtype=xp.float64, device=device_of(H))
            H = as_float64(H) - shift[:M] if place is None else np.subtract(H, shift[:M], out=place)
            rest = xp.concat([ones, rest - shift[M:]], axis=1)
        if self.weight is None:
            return as_float64(H), rest
        root = xp.sqrt(self.weight)[:, None]
        H = root * as_float64(H) if place is None else np.multiply(root, H, out=place)
        return H, root * rest

    def design(self, shift: Array, intercept: bool, scratch: np.ndarray | None = None) -> tuple[Array, Array]:
        """√w·[1 | H − s] and √w·(T − s), copied only if there is an intercept or weights; `scratch` as for `parts`."""
        H, rest = self.parts(shift, intercept, scratch)
        if not intercept:
            return H, rest
        return array_namespace(H).concat([rest[:, :1], H], axis=1), rest[:, 1:]


def averages(weights: Array, H: Array) -> Array:
    """weights·H in float64, for one row of weights or several, without a float64 copy of all H."""
    xp = array_namespace(H)
    if H.dtype == xp.float64:
        return xp.matmul(weights, H)
    total = xp.zeros((*weights.shape[:-1], H.shape[1]), dtype=xp.float64, device=device_of(H))
    for rows in row_slices(H.shape[0], max(1, PIECE_ENTRIES // H.shape[1])):
        total = total + xp.matmul(weights[..., rows], as_float64(H[rows, :]))
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows of √w·[1 | H − s | T − s] as numbers; the counts of all rows are the merge of the counts of any parts."""

    shift: Array
    """One number per column of [H | T]: the mean of the first rows that have weight; zero without an intercept."""
    n_targets: int
    intercept: bool
    n_rows: int = 0
    """Rows of positive weight."""
    weight_sum: float = 0.0
    whole_weights: bool = True
    """Whether every weight was a whole number."""
    n_seen: int = 0
    """All rows, with the rows of zero weight."""
    shift_known: bool = False
    """Whether the shift is final; until a row of positive weight gives it, it is zero."""

    @classmethod
    def none(cls, rows: Encoded, intercept: bool) -> Counts:
        """Before any row has been counted, for columns such as these."""
        xp = array_namespace(rows.H)
        n_targets = rows.T.shape[1]
        zeros = xp.zeros((rows.H.shape[1] + n_targets,), dtype=xp.float64, device=device_of(rows.H))
        return cls(zeros, n_targets, intercept, shift_known=not intercept)

    def add(self, rows: Encoded) -> Counts:
        """Count more rows; the first that have weight give the shift."""
        self.check_columns(rows.H.shape[1], rows.T.shape[1])
        weight_sum = rows.weight_sum
        shift_known = self.shift_known or weight_sum > 0.0
        whole = True
        if rows.weight is not None:
            xp = array_namespace(rows.weight)
            # Beyond 2³¹ every float64 is nearly a whole number, and none is a frequency.
            whole = bool(xp.all((rows.weight == xp.floor(rows.weight)) & (rows.weight < 2.0**31)))
        return Counts(
            rows.mean() if shift_known and not self.shift_known else self.shift,
            self.n_targets,
            self.intercept,
            self.n_rows + rows.n_positive,
            self.weight_sum + weight_sum,
            self.whole_weights and whole,
            self.n_seen + rows.H.shape[0],
            shift_known,
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
        """The same counts about another shift, or for some of the columns."""
        return replace(self, shift=shift)

    @property
    def n_features(self) -> int:
        return self.shift.shape[0] - self.n_targets

    @property
    def n(self) -> int:
        """Observations: Σw where all weights are whole, else the rows of positive weight."""
        return round(self.weight_sum) if self.whole_weights else self.n_rows

    def check_columns(self, n_features: int, n_targets: int) -> None:
        """Raise unless rows have as many features and targets as the rows before."""
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
