"""How large errors are at each row: a second output of the same units, for intervals that follow the noise.

Let e_i be the error at row i of a network that did not see the row. Where noise is larger, |e_i| is, so

    log(|e_i| + c) ≈ h_i·w + b,  w = argmin Σ ω_i(log(|e_i| + c) − h_i·w − b)² + γ‖w‖²,

ridge regression on the features h that the network has anyway, and s(h) = exp(h·w + b) is the scale of the errors at h.
The constant c, a tenth of the median of |e|, keeps errors that happen to be near zero from counting more than others.

The quantiles of |e_i|/s_i make intervals of the prediction ± quantile·s (normalised conformal prediction; Papadopoulos
et al., 2008). They are honest only if s_i has not seen e_i: a head that has fitted noise follows the errors of its own
rows, and not those of new ones. So s_i comes from the rows of the other folds. The same values decide about γ, by

    score = mean log s_i + log mean(|e_i|/s_i),

minus the log-likelihood of errors with a Laplace distribution of this scale, up to a constant. With γ → ∞ the scale is
a constant, with the score log mean|e_i|. A scale that varies is used only if it is better than this by more than
`_LEAST_GAIN`/n: for so much, n rows speak clearly against the constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from ocrep._documentation import shown_in_short
from ocrep._linalg.arrays import Array, array_namespace, as_columns, as_float64, to_device_of, to_host
from ocrep._linalg.folds import without_each
from ocrep._linalg.ridge_sums import Features, FoldedRows, RidgeSums

# c as a share of the median error.
_NEAR_ZERO = 0.1
# γ as a share of the trace of HᵀH.
_GAMMAS = 10.0 ** np.arange(-5.0, 1.0)
# A gain of 3 in log-likelihood: as one parameter has by chance in one of seventy cases.
_LEAST_GAIN = 3.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ErrorScale:
    """s(h) = exp(h·w + b), within the range of the training rows; 1 for targets whose errors vary too little."""

    coef: Array
    """w, targets × features."""
    intercept: Array
    """b of each target."""
    low: Array
    high: Array
    """The least and the largest log s of the training rows, for each target."""

    __repr__ = shown_in_short

    def to_device_of(self, like: Array) -> ErrorScale:
        """The same in the library and on the device of an array."""
        parts = (self.coef, self.intercept, self.low, self.high)
        return ErrorScale(*(to_device_of(like, part) for part in parts))

    def of(self, outputs: Array) -> Array:
        """The scale, rows × targets, of rows whose outputs h·w + b these are."""
        xp = array_namespace(outputs)
        low, high = (xp.astype(end, outputs.dtype, copy=False) for end in (self.low, self.high))
        return xp.exp(xp.minimum(xp.maximum(outputs, low), high))


def scale_of(
    rows: FoldedRows, features: Features, n_features: int, errors: np.ndarray
) -> tuple[ErrorScale, np.ndarray] | None:
    """The scale of errors, rows × targets in the order of the rows by fold, and that of each row by the other folds.

    None if no target's errors vary enough. Inputs of the rows become features by `features`.
    """
    sizes = np.abs(errors)
    typical = np.median(sizes, axis=0)
    varies = typical > 0.0
    if rows.n_folds < 2 or not varies.any():
        return None
    sizes = sizes[:, varies]
    rows = replace(rows, T=np.log(sizes + _NEAR_ZERO * typical[varies]))
    share = rows.weight / rows.weight.sum()
    n = 1.0 / float(share @ share)  # as many rows of equal weight tell as much
    sums = rows.sums(features, n_features)
    others = without_each(sums, RidgeSums.merge)
    whole = reduce(RidgeSums.merge, sums)
    del sums
    # Sums of wide layers are large: each is let go as soon as its problem is known.
    problems = [others.pop(0).problem(intercept=True) for _ in range(rows.n_folds)]
    trace = float(np.mean([problem.trace for problem in problems]))
    if not 0.0 < trace < math.inf:
        return None
    best = np.log(share @ sizes) - _LEAST_GAIN / n
    gammas = np.full(sizes.shape[1], np.inf)
    logs = np.zeros_like(sizes)
    gammas_tried = trace * _GAMMAS
    # The features of a fold are formed once for all γ, whose weights lie side by side.
    outputs = []
    for v, problem in enumerate(problems):
        W, b = (np.concatenate(each, axis=-1) for each in zip(*map(problem.weights, gammas_tried), strict=True))
        outputs.append(rows.outputs(rows.fold(v), features, W, b).reshape(-1, len(_GAMMAS), sizes.shape[1]))
    del problem, problems
    for number, gamma in enumerate(gammas_tried):
        found = np.concatenate([of_fold[:, number] for of_fold in outputs])
        score = share @ found + np.log(share @ (sizes * np.exp(-found)))
        better = score < best
        best = np.where(better, score, best)
        gammas[better] = gamma
        logs[:, better] = found[:, better]
    # Of targets without such a γ the scale stays 1.
    coef, intercept, cross = np.zeros((errors.shape[1], n_features)), np.zeros(errors.shape[1]), np.zeros(errors.shape)
    chosen = np.isfinite(gammas)
    if not chosen.any():
        return None
    fitted = whole.problem(intercept=True)
    for gamma in np.unique(gammas[chosen]):
        own = gammas == gamma
        W, b = fitted.weights(gamma)
        coef[np.flatnonzero(varies)[own]] = W.T[own]
        intercept[np.flatnonzero(varies)[own]] = b[own]
    cross[:, varies] = logs
    return ErrorScale(coef, intercept, cross.min(axis=0), cross.max(axis=0)), np.exp(cross)


# Rows that teach the scale of a single network at most, and entries of their features in memory.
_MOST_ROWS = 5_000
_MOST_ENTRIES = 2**24
_FOLDS = 5


def scale_on_rows(
    blocks: Callable[[], Iterable[tuple[Any, Any, Any]]], errors: np.ndarray, weight: np.ndarray
) -> tuple[ErrorScale, np.ndarray] | None:
    """The same for the errors of a network at all rows of positive weight, read by `blocks` as (H, T, weight).

    Of many rows some, evenly spread, teach the scale; the others have not been seen by it.
    """
    places, H = _some_rows(blocks(), len(errors))
    n, n_features = H.shape
    basis = None
    if n_features > n:  # the rows in n coordinates: weights outside their span would be zero
        basis, R = np.linalg.qr(H.T)
        H = R.T
    fold = np.random.RandomState(0).permutation(n) % min(_FOLDS, n)
    rows = FoldedRows.of(H, errors[places], weight[places], fold, np.zeros(1), np.ones(1))
    found = scale_of(rows, lambda X, memory: X, H.shape[1], rows.T)
    if found is None:
        return None
    scale, by_fold = found
    if basis is not None:
        scale = replace(scale, coef=scale.coef @ basis.T)
    if n == len(errors):
        scales = np.empty_like(by_fold)
    else:
        scales = np.concatenate([scale.of(H @ scale.coef.T + scale.intercept) for _, H in _counted(blocks())])
    scales[places[rows.places]] = by_fold
    return scale, scales


def _counted(blocks: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[int, np.ndarray]]:
    """Features of the rows of positive weight on the host, and how many came before."""
    start = 0
    for H, _, weight in blocks:
        H = to_host(as_float64(as_columns(H)))
        if weight is not None:
            H = H[to_host(weight) > 0.0]
        yield start, H
        start += len(H)


def _some_rows(blocks: Iterable[tuple[Any, Any, Any]], n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The places and features of some rows."""
    places = np.arange(0)
    found: list[np.ndarray] = []
    for start, H in _counted(blocks):
        if not len(places):
            most = max(2, min(_MOST_ROWS, _MOST_ENTRIES // max(1, H.shape[1])))
            places = np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp))
        found.append(H[places[(places >= start) & (places < start + len(H))] - start])
    return places, np.concatenate(found)
