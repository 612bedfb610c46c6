"""Units from training rows: from pairs, near in inputs and far in targets preferred, or centred on single rows.

After Bolager, Burak, Datar, Sun, Dietrich, "Sampling weights of deep neural networks" (2023). Distances are taken in
inputs that are standardised over the sampled rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms
from sklearn.utils.sparsefuncs import mean_variance_axis

from ocrep._layers.activations import Activation
from ocrep._layers.hidden_map import seen_inputs
from ocrep._linalg.arrays import EPS, array_namespace
from ocrep._linalg.parallel import slices_of
from ocrep._rows.block import Block, on_device
from ocrep._rows.checks import check_labels, check_lengths, check_numbers
from ocrep._rows.survey import SAMPLE_ROWS, RowSample

CANDIDATES = 10
"""Random pairs per unit, one of which it takes."""
_ROUNDS = 10
"""How often a unit looks for candidates with different targets before any pair will do."""
# Nearer rows, in standard deviations, differ by rounding: a unit that tells them apart would be steeper than 1/√ε.
_SAME = EPS**0.5
# So many inputs decide the order of rows; the order of their hashes decides between the rest.
_ORDERING = 64

Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of the rows of two arrays of numbers of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Two rows x₁, x₂ for each unit, in the scaled inputs."""

    first: np.ndarray
    """x₁, units × inputs."""
    direction: np.ndarray
    """a of t(x) = a·(x − x₁), which is 0 at x₁ and 1 at x₂; units × inputs."""
    squared: np.ndarray
    """The squared distance of the two rows in standardised inputs."""
    stretch: np.ndarray
    """What standardises each scaled input, but for its mean; 0 for a constant one."""

    def units(self, activation: Activation, factor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Weights (units × inputs), biases, and the metric of radial units; arguments are `factor` times the levels."""
        low, high = activation.levels
        if activation.radial:
            return self.first, -high * factor**2 / self.squared, self.stretch
        weights = factor * (high - low) * self.direction
        return weights, factor * low - np.sum(weights * self.first, axis=1), None


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRows:
    """Sampled rows in scaled inputs, sorted, and the same standardised."""

    X: Any
    offset: np.ndarray
    """What must be subtracted from sparse rows, which are not shifted, so that they stay sparse."""
    U: Any
    stretch: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray
    labels: bool

    @classmethod
    def of(cls, sample: RowSample, center: np.ndarray, scale: np.ndarray, asked: str, eps: float = EPS) -> ScaledRows:
        """Scale, sort and standardise; `eps` is the rounding of the inputs, `asked` the weight_init for sentences."""
        on_zero = sparse.issparse(sample.X)
        X = sample.X.multiply(scale).tocsr() if on_zero else (sample.X - center) * scale
        order = _order(X, sample)
        X, y, weight = X[order], None if sample.y is None else sample.y[order], sample.weight[order]
        U, stretch = _standardised(X, weight, eps)
        if not stretch.any():
            raise ValueError(
                f"weight_init={asked!r} takes units from training rows with different inputs, but "
                f"{'only one sample is' if X.shape[0] else 'no row of positive weight is'} left when equal rows count "
                "once (of a stream, the first block is taken): give rows that differ, or use weight_init='uniform'."
            )
        return cls(X, center * scale if on_zero else np.zeros(X.shape[1]), U, stretch, y, weight, sample.labels)

    def dense(self, rows: np.ndarray) -> np.ndarray:
        """Some rows by number, in scaled inputs."""
        X = self.X[rows]
        return X.toarray() - self.offset if sparse.issparse(X) else X


def draw_pairs(rows: ScaledRows, n_units: int, seed: int, units_see: int | None = None) -> Pairs:
    """Draw a pair for each unit; the first m of M pairs are those of m units."""
    stretch = rows.stretch
    seen = None if units_see is None else seen_inputs(seed, n_units, units_see, stretch > 0.0)
    near = _InputDistances(rows.U, seen)
    far = _target_distances(rows.y, rows.weight, labels=rows.labels)
    first, second = _chosen(near, far, n_units, seed).T
    difference = near.differences(second, first, np.arange(n_units))
    difference = difference.toarray() if sparse.issparse(difference) else difference
    squared = row_norms(difference, squared=True)
    return Pairs(rows.dense(first), difference / squared[:, None] * stretch, squared, stretch)


def draw_centers(rows: ScaledRows, factor: float, n_units: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres, biases and metric of Gaussian units exp(−factor²·‖u − c‖²/d), d the number of inputs that vary.

    The centres are training rows in random order; the first m of M are those of m units. Rows come twice only if there
    are fewer than units.
    """
    n_rows = rows.X.shape[0]
    rounds = [np.random.default_rng([seed, i]).permutation(n_rows) for i in range(-(-n_units // n_rows))]
    centers = rows.dense(np.concatenate(rounds)[:n_units])
    width = factor**2 / np.count_nonzero(rows.stretch)
    return centers, np.full(n_units, width), rows.stretch


@dataclass(frozen=True, slots=True, eq=False)
class _InputDistances:
    """Distances between standardised rows, in the inputs that a unit sees."""

    U: Any
    seen: np.ndarray | None

    def differences(self, a: np.ndarray, b: np.ndarray, units: np.ndarray) -> Any:
        """u_a − u_b for rows by number, as the given units see them."""
        D = self.U[a] - self.U[b]
        if self.seen is None:
            return D
        return D.multiply(self.seen[units]).tocsr() if sparse.issparse(D) else D * self.seen[units]

    def __call__(self, pairs: np.ndarray, units: np.ndarray) -> np.ndarray:
        """‖u_a − u_b‖ for the pairs, units × candidates × 2, of some units."""
        n_units, n_pairs, _ = pairs.shape
        distances = np.empty((n_units, n_pairs))
        for part in slices_of(n_units, n_pairs * self.U.shape[1]):
            a, b = pairs[part].reshape(-1, 2).T
            D = self.differences(a, b, np.repeat(units[part], n_pairs))
            distances[part] = row_norms(D).reshape(-1, n_pairs)
        return distances


def _chosen(near: _InputDistances, far: Distances | None, n_units: int, seed: int) -> np.ndarray:
    """Two numbers of rows per unit, from its candidates with probability ∝ ‖Δy‖/‖Δx‖, or 1/‖Δx‖ without `far`."""
    n_rows = near.U.shape[0]
    chosen, waiting = np.zeros((n_units, 2), dtype=np.intp), np.arange(n_units)
    random = pairs = np.empty(0)
    for attempt in range(1, _ROUNDS + 1):
        # One row per unit, so that a unit's numbers depend neither on other units nor on how many there are.
        random = np.random.default_rng([seed, attempt]).random((n_units, CANDIDATES, 3))[waiting]
        pairs = np.minimum((random[:, :, :2] * n_rows).astype(np.intp), n_rows - 1)
        distance = near(pairs, waiting)
        differ = distance > _SAME
        likely = np.where(differ, 1.0, 0.0) / np.where(differ, distance, 1.0)
        if far is not None and attempt < _ROUNDS:
            likely *= far(pairs[:, :, 0], pairs[:, :, 1])
        # The least of exponential variables with rates p falls on each with probability p/Σp.
        ticket = np.where(likely > 0.0, -np.log1p(-random[:, :, 2]) / np.where(likely > 0.0, likely, 1.0), np.inf)
        best, found = np.argmin(ticket, axis=1), (likely > 0.0).any(axis=1)
        chosen[waiting[found]] = pairs[found, best[found]]
        pairs, random, waiting = pairs[~found], random[~found], waiting[~found]
        if not len(waiting):
            return chosen
    for unit, (first, _), number in zip(waiting, pairs[:, 0], random[:, 0, 2], strict=True):
        # Standardised rows differ from any one of them by at least 1 in the mean square, so others are found.
        all_rows = np.stack([np.full(n_rows, first), np.arange(n_rows)], axis=1)
        others = np.flatnonzero(near(all_rows[None], np.array([unit]))[0] > _SAME)
        chosen[unit] = first, others[int(number * len(others))]
    return chosen


def _standardised(X: Any, weight: np.ndarray, eps: float) -> tuple[Any, np.ndarray]:
    """Rows with standard deviation 1 in each input, and the factor for it; 0 for a constant input."""
    if not X.shape[0]:
        return X, np.zeros(X.shape[1])
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=weight)
        stretch = _inverse(np.sqrt(variance), mean, eps)
        return X.multiply(stretch).tocsr(), stretch
    share = weight / weight.sum()
    mean = share @ X
    X = X - mean
    stretch = _inverse(np.sqrt(share @ X**2), mean, eps)
    return X * stretch, stretch


def _inverse(deviation: np.ndarray, mean: np.ndarray, eps: float) -> np.ndarray:
    """1/deviation; 0 where the deviation is rounding."""
    constant = deviation <= np.maximum(4 * eps * np.abs(mean), np.finfo(np.float64).tiny)
    return np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, deviation))


def _target_distances(y: np.ndarray | None, weight: np.ndarray, *, labels: bool) -> Distances | None:
    """‖Δy‖ after division of each target by its standard deviation; 0 or 1 for labels; None if all are equal."""
    if y is None:
        return None
    if labels:
        codes = np.unique(y, return_inverse=True)[1]
        return (lambda a, b: (codes[a] != codes[b]).astype(np.float64)) if codes.any() else None
    T = y.reshape(len(y), -1).astype(np.float64)
    T = T / np.maximum(np.abs(T).max(axis=0), np.finfo(np.float64).tiny)  # so that no square overflows
    T, stretch = _standardised(T, weight, EPS)
    return (lambda a, b: np.linalg.norm(T[a] - T[b], axis=-1)) if stretch.any() else None


def _order(X: Any, sample: RowSample) -> np.ndarray:
    """The rows sorted by their inputs, then by their targets: the same order after a change of units."""
    n_rows, n_inputs = X.shape
    rank = np.zeros(n_rows, dtype=np.intp)
    columns = X[:, :_ORDERING].toarray() if sparse.issparse(X) else X[:, :_ORDERING]
    targets = () if sample.y is None or n_inputs > _ORDERING else sample.y.T if sample.y.ndim == 2 else (sample.y,)
    for values in (*columns.T, *targets):
        if n_rows <= 1 + rank.max(initial=0):
            break
        codes = np.unique(values, return_inverse=True)[1]
        rank = np.unique(rank * n_rows + codes, return_inverse=True)[1]
    return np.argsort(rank, kind="stable")


def sample_of(X: Any, y: Any, weight: Any) -> RowSample:
    """The rows that units may come from; a target that is not of floating-point numbers is taken as labels."""
    if y is not None and not on_device(y):
        y = np.asarray(y)
    labels = y is not None and y.ndim == 1 and not array_namespace(y).isdtype(y.dtype, "real floating")
    block = Block(X, y, weight)
    if y is not None:
        check_lengths(X.shape[0], y=y)
        block = replace(block, y=check_labels(block) if labels else check_numbers(block))
    return RowSample.of(block, SAMPLE_ROWS, weight, labels=labels)
