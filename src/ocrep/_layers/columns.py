"""Inputs on a common scale before units see them, by one of

    min–max          x ↦ (x − center)·scale, center = (low + high)/2, scale = 2/(high − low): the range becomes [−1, 1];
    squashing        z = 2(x − median)/(q₃ − q₁), then z/√(1 + (z/3)²), which lies in (−3, 3), then standardisation;
    standardisation  x ↦ (x − mean)/std, by weighted moments of the rows.

All give a constant column the scale 0. A column is constant if it varies by no more than its rounding, a few ε·|x|:
a larger scale would only amplify rounding errors.

Squashing (Holzmüller, Grinsztajn, Steinwart, *Better by default*, NeurIPS 2024, divide by q₃ − q₁) is nearly linear
between the quartiles, which are z = ±1. The median and the quartiles hardly move when one row in a thousand is 10⁴
instead of 1, and that row goes to ±3, which is 2.6 standard deviations of normal inputs: there it pulls little. With
q₃ − q₁ instead of its half it would be 4.3, and such a row alone cost 0.02 to 0.1 of R² among 1,500. Quantiles are
weighted: that of the share s is the least value up to which the rows have s of all weight, or the mean of two
neighbours if one of them reaches s exactly. So a weight equals repetition. Where the quartiles coincide, as in a column
that is mostly 0, the median distance from the median of the rows that differ from it takes the place of (q₃ − q₁)/2: it
is 1 for a column of 0 and 1, and as robust. A column that varies only in rows outside the sample has half its range
instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from ocrep._linalg.arrays import EPS, Array, array_namespace
from ocrep._linalg.parallel import slices_of
from ocrep._rows.survey import Range, RowSample


def range_to_scale(scaling: Any, n_inputs: int, observed: Range | None) -> Range:
    """The range of each input that goes to [−1, 1]; the range (−1, 1) itself leaves inputs alone."""
    if isinstance(scaling, str):
        assert observed is not None
        return observed
    try:
        low, high = (-1.0, 1.0) if scaling is None else scaling
    except (TypeError, ValueError):
        raise ValueError(
            f"input_scaling={scaling!r} is not a pair: use 'minmax', 'squash', (low, high), or None."
        ) from None
    low = np.asarray(low, dtype=np.float64)
    high = np.asarray(high, dtype=np.float64)
    fits = all(end.shape in ((), (1,), (n_inputs,)) and np.isfinite(end).all() for end in (low, high))
    if not fits or (low > high).any():
        raise ValueError(
            f"input_scaling=(low, high) needs finite numbers with low ≤ high, one pair for all or {n_inputs} each, "
            "one per input."
        )
    return np.broadcast_to(low, n_inputs), np.broadcast_to(high, n_inputs)


def to_unit_interval(low: np.ndarray, high: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Center and scale that bring a range to [−1, 1]; `eps` is the rounding of the inputs."""
    center = low / 2 + high / 2  # not (low + high)/2, which may overflow
    half = high / 2 - low / 2
    return center, _inverse(half, 2 * eps * np.abs(center))


# Where z/√(1 + (z/3)²) is ±3 to the last digit; larger z could overflow when they are squared.
SATURATED = 1e9
_ROUNDED_SHARE = 1e-12


def squashed(Z: Array, squash: Array) -> Array:
    """z/√(1 + (z/3)²), minus its mean and times its inverse deviation, which are the two rows of `squash`."""
    xp = array_namespace(Z)
    Z = xp.clip(Z, -SATURATED, SATURATED)
    Z /= xp.sqrt(1.0 + Z * Z / 9.0)
    Z -= squash[0, ...]
    Z *= squash[1, ...]
    return Z


def unsquashed(X: np.ndarray, squash: np.ndarray) -> np.ndarray:
    """The z that `squashed` turns into these; beyond ±3, where there is none, the largest."""
    mean, inverse_deviation = squash
    varies = inverse_deviation > 0.0
    u = np.where(varies, X / np.where(varies, inverse_deviation, 1.0) + mean, 0.0)
    left = 1.0 - u * u / 9.0
    return np.clip(u / np.sqrt(np.maximum(left, 1.0 / SATURATED**2)), -SATURATED, SATURATED)


def squashed_slope(Z: Array, squash: Array) -> Array:
    """The derivative of `squashed` with respect to z: (1 + (z/3)²)^(−3/2), times the inverse deviation."""
    xp = array_namespace(Z)
    Z = xp.clip(Z, -SATURATED, SATURATED)
    return (1.0 + Z * Z / 9.0) ** -1.5 * squash[1, ...]


def to_squash(sample: RowSample, observed: Range, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Center, scale, and the two rows of `squash`, from a sample of rows and the range of all."""
    middle, inverse_half_range = to_unit_interval(*observed, eps)
    n_rows, n_inputs = sample.X.shape
    center = middle.copy()
    scale = inverse_half_range.copy()
    squash = np.stack([np.zeros(n_inputs), np.where(scale > 0.0, 1.0, 0.0)])
    if not n_rows:
        return center, scale, squash
    by_column = sample.X.tocsc() if sparse.issparse(sample.X) else sample.X
    weight = sample.weight / sample.weight.sum()
    for part in slices_of(n_inputs, n_rows):
        X = by_column[:, part]
        X = X.toarray() if sparse.issparse(X) else X
        center[part], spread = _median_and_spread(X, weight, eps)
        within = spread > 0.0
        varies = inverse_half_range[part] > 0.0
        scale[part] = np.where(varies & within, 1.0 / np.where(within, spread, 1.0), inverse_half_range[part])
        Z = squashed((X - center[part]) * scale[part], np.array([[0.0], [1.0]]))
        mean = weight @ Z
        deviation = np.sqrt(weight @ (Z - mean) ** 2)
        known = varies & within
        squash[0, part] = np.where(known, mean, 0.0)
        squash[1, part] = np.where(known, 1.0 / np.where(known, deviation, 1.0), squash[1, part])
    return center, scale, squash


def _median_and_spread(X: np.ndarray, weight: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Of each column: its median; and (q₃ − q₁)/2, or the median distance of what differs from the median, or 0."""
    first, median, third = _quantiles(X, np.broadcast_to(weight[:, None], X.shape), (0.25, 0.5, 0.75))
    rounding = np.maximum(8 * eps * np.abs(median), np.finfo(np.float64).tiny)
    spread = third / 2 - first / 2  # not (third - first)/2, which may overflow
    coincide = np.flatnonzero(spread <= rounding)
    if len(coincide):
        distance = np.minimum(2 * np.abs(X[:, coincide] / 2 - median[coincide] / 2), np.finfo(np.float64).max)
        differs = distance > rounding[coincide]
        weights = np.where(differs, weight[:, None], 0.0)
        total = weights.sum(axis=0)
        (typical,) = _quantiles(distance, weights / np.where(total > 0.0, total, 1.0), (0.5,))
        spread[coincide] = np.where(total > 0.0, typical, 0.0)
    return median, spread


def _quantiles(X: np.ndarray, share: np.ndarray, at: Sequence[float]) -> list[np.ndarray]:
    """Weighted quantiles of each column; the weights `share` of a column add up to one, or are all 0."""
    order = np.argsort(X, axis=0, kind="stable")
    X = np.take_along_axis(X, order, axis=0)
    below = np.cumsum(np.take_along_axis(share, order, axis=0), axis=0)
    found = []
    for level in at:
        # Sums of weights are rounded, and a sum that reaches the level exactly must be seen to do so.
        ends = [np.count_nonzero(below < level - _ROUNDED_SHARE, axis=0)]
        ends.append(np.count_nonzero(below <= level + _ROUNDED_SHARE, axis=0))
        low, high = (np.take_along_axis(X, np.minimum(end, len(X) - 1)[None], axis=0)[0] for end in ends)
        found.append(low / 2 + high / 2)
    return found


def standardized(X: Any, weight: np.ndarray, eps: float) -> tuple[Any, np.ndarray]:
    """Rows with standard deviation 1 in each column, and the factor for it; sparse rows are not centred."""
    if not X.shape[0]:
        return X, np.zeros(X.shape[1])
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=weight)
        factor = _inverse(np.sqrt(variance), 4 * eps * np.abs(mean))
        return X.multiply(factor).tocsr(), factor
    share = weight / weight.sum()
    mean = share @ X
    X = X - mean
    factor = _inverse(np.sqrt(share @ X**2), 4 * eps * np.abs(mean))
    return X * factor, factor


def _inverse(spread: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """1/spread; 0 where the spread is rounding."""
    constant = spread <= np.maximum(rounding, np.finfo(np.float64).tiny)
    return np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))


def rounding_of(dtype: Any) -> float:
    """ε of inputs of this type."""
    return EPS if str(dtype).endswith("64") else float(np.finfo(np.float32).eps)
