"""What rows tell that were left out: a softmax that makes probabilities of outputs, and how large errors are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from ocrep._documentation import shown_in_short
from ocrep._layers.random_layer import JoinedLayers
from ocrep._linalg.arrays import EPS, Array, array_namespace, to_device_of, to_host
from ocrep._linalg.leave_one_out import left_out_errors, left_out_outputs
from ocrep._linalg.parallel import on_chunks, row_slices
from ocrep._linalg.rows import EncodedRows
from ocrep._linalg.spectrum import Spectrum, noise_variance, variance_factor
from ocrep._training.recipe import Learned, block_rows

# ------------------------------------------------------------------------------
# What a trained network says of new rows: HW + b and its standard deviation, block by block.


def network_outputs(learned: Learned, coef: Array, intercept: Any, X: Any) -> Array:
    """HW + b, (n_samples, n_targets), in the precision of X."""
    xp = array_namespace(coef)
    weights = xp.reshape(coef, (-1, coef.shape[-1])).T
    # The layers of a stack one after the other: all of them at once would leave room for a few rows only.
    layer = learned.layer
    maps: Any = layer.map_ if isinstance(layer, JoinedLayers) else None
    parts = [(learned.features, slice(None))] if maps is None else list(zip(maps.maps, maps.columns, strict=True))
    widest = max(weights[columns, ...].shape[0] for _, columns in parts)

    def answer(part: slice, workspace: np.ndarray | None = None) -> Array:
        rows = X[part, ...]
        total = intercept
        for features, columns in parts:
            W = weights[columns, ...]
            H = features(rows, None if workspace is None else workspace[:, : W.shape[0]])
            # Features of one's own may come in another precision than the weights have.
            common = xp.result_type(H.dtype, W.dtype)
            total = total + xp.astype(H, common, copy=False) @ xp.astype(W, common, copy=False)
        return xp.astype(total, X.dtype, copy=False)

    if not isinstance(coef, np.ndarray):
        height = block_rows(weights.shape[0], X.shape[1], on_device=True)
        return xp.concat([answer(part) for part in row_slices(X.shape[0], height)])
    outputs = np.empty((X.shape[0], weights.shape[1]), dtype=X.dtype)

    def worker(height: int) -> Callable[[slice], None]:
        workspace = np.empty((height, widest), dtype=coef.dtype)

        def fill(part: slice) -> None:
            outputs[part] = answer(part, workspace)

        return fill

    on_chunks(worker, X.shape[0], X.shape[1] + widest)
    return outputs


def standard_deviations(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any) -> Array:
    """The standard deviation of each prediction, (n_samples, n_targets): of the noise and of the weights."""
    xp = array_namespace(spectrum.sigma)
    noise = noise_variance(spectrum, gamma)
    return xp.astype(xp.sqrt(noise * _variances(learned, spectrum, gamma, X)), X.dtype, copy=False)


def interval_widths(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any, errors: Array) -> Array:
    """Half the width of each interval, (n_samples, n_targets), of errors in units of their standard deviation."""
    xp = array_namespace(spectrum.sigma)
    return xp.astype(errors * xp.sqrt(_variances(learned, spectrum, gamma, X)), X.dtype, copy=False)


def _variances(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any) -> Array:
    """The variance of each prediction's error in units of that of the noise, (n_samples, 1), or one per target's γ."""
    parts = row_slices(X.shape[0], block_rows(learned.n_features, X.shape[1]))
    factors = [variance_factor(spectrum, learned.features(X[part, ...]), gamma) for part in parts]
    return 1.0 + array_namespace(spectrum.sigma).concat(factors)


# ------------------------------------------------------------------------------

# Left-out outputs overlap unless the classes are separable; then the slight penalty keeps the slope finite.
_SLIGHT = 100.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calibrator:
    """P(class | outputs) = softmax(slope·outputs + offset); for two classes, the logistic of one output."""

    slope: Array
    offset: Array

    __repr__ = shown_in_short

    @classmethod
    def on_left_out_rows(
        cls, spectrum: Spectrum, rows: EncodedRows, gamma: float | np.ndarray, stand_for: np.ndarray | None = None
    ) -> Calibrator:
        """Fit on the exact leave-one-out outputs of the training rows, weighted as they are.

        Of a sample of the rows, `stand_for` says how many rows each stands for, so that classes have their shares of
        all rows.
        """
        found = _softmax(*_left_out(spectrum, rows, gamma, _class_numbers, stand_for))
        return cls(*found).to_device_of(spectrum.sigma)

    @classmethod
    def of(cls, outputs: np.ndarray, T: np.ndarray, weights: np.ndarray) -> Calibrator:
        """Fit on outputs of rows that were held out, and the codes of their classes."""
        return cls(*_softmax(outputs, _class_numbers(T), _as_counts(weights)))

    def to_device_of(self, like: Array) -> Calibrator:
        """The same in the library and on the device of an array."""
        return Calibrator(to_device_of(like, self.slope), to_device_of(like, self.offset))

    def scores(self, outputs: Array) -> Array:
        """The log-odds of the second class, (n_samples, 1), or the softmax's logits, one per class."""
        xp = array_namespace(outputs)
        product = xp.matmul(xp.astype(outputs, xp.float64, copy=False), self.slope) + self.offset
        return xp.astype(product, outputs.dtype, copy=False)

    def log_probabilities(self, outputs: Array) -> Array:
        """(n_samples, n_classes), from the logits, so that no probability becomes 0 before the logarithm."""
        xp, logits = array_namespace(outputs), self.scores(outputs)
        if logits.shape[1] == 1:
            logits = xp.concat([xp.zeros_like(logits), logits], axis=1)
        logits = logits - xp.max(logits, axis=1, keepdims=True)
        return logits - xp.log(xp.sum(xp.exp(logits), axis=1, keepdims=True))


def _left_out(
    spectrum: Spectrum,
    rows: EncodedRows,
    gamma: float | np.ndarray,
    kept_of: Callable[[np.ndarray], np.ndarray],
    stand_for: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The leave-one-out outputs of all rows that count, what is kept of their targets, and their weights."""
    blocks = [
        (to_host(output), kept, np.ones(len(kept)) if weight is None else to_host(weight))
        for output, kept, weight in left_out_outputs(spectrum, rows, gamma, lambda T: kept_of(to_host(T)))
    ]
    outputs, kept, weights = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    counted = weights > 0.0
    total = _as_counts(weights).sum()
    weights = weights if stand_for is None else weights * stand_for
    return outputs[counted], kept[counted], weights[counted] * (total / weights.sum())


def _as_counts(weights: np.ndarray) -> np.ndarray:
    """Weights that count rows as they are; others so that they add up to as many as there are of positive weight."""
    if np.array_equal(weights, np.round(weights)):
        return weights
    return weights * (np.count_nonzero(weights) / weights.sum())


def _class_numbers(T: np.ndarray) -> np.ndarray:
    return (T[:, 0] > 0.0).astype(int) if T.shape[1] == 1 else T.argmax(axis=1)


def _softmax(outputs: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset of the logits of all classes; of two classes, of their difference.

    A class may have no row that counts: one that was only named, or whose weight is zero. Its logit is −log(2n + 1) for
    n rows, and its probability less than 1/(2n), since the logits of the others add up to zero and the largest is ≥ 0.
    """
    n_classes = max(2, outputs.shape[1])
    nothing = -math.log(2.0 * len(codes) + 1.0)
    present = np.unique(codes)
    if n_classes == 2:
        if len(present) == 1:
            return np.zeros((1, 1)), np.array([-nothing if present[0] else nothing])
        model = LogisticRegression(C=_SLIGHT, max_iter=1000).fit(outputs, codes, sample_weight=weights)
        return model.coef_.T, model.intercept_
    slope = np.zeros((n_classes, n_classes))
    offset = np.full(n_classes, nothing)
    temperature, biases = _temperature(outputs[:, present], np.searchsorted(present, codes), weights)
    slope[np.ix_(present, present)] = temperature * (np.eye(len(present)) - 1.0 / len(present))
    offset[present] = biases - biases.mean()
    return slope, offset


def _temperature(outputs: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """What outputs are multiplied by to become logits, and a constant for each class.

    A factor alone changes no label. Constants may, so they are used only if they raise the log-likelihood of these
    rows, which were held out, by more than their number, as Akaike's criterion asks. With a matrix in place of the
    factor there would be K² numbers to fit, which few rows do not tell: such probabilities were worse than none.
    """
    n_classes = outputs.shape[1]
    if n_classes == 1:
        return 0.0, np.zeros(1)
    indicators = codes[:, None] == np.arange(n_classes)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        logits = parameters[0] * outputs + (parameters[1:] if len(parameters) > 1 else 0.0)
        logits = logits - logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        sums = exponentials.sum(axis=1)
        value = weights @ (np.log(sums) - logits[indicators])
        excess = weights[:, None] * (exponentials / sums[:, None] - indicators)
        slopes = np.append(np.sum(excess * outputs), excess.sum(axis=0))[: len(parameters)]
        return float(value + parameters @ parameters / (2.0 * _SLIGHT)), slopes + parameters / _SLIGHT

    alone = minimize(loss, np.ones(1), jac=True, method="L-BFGS-B")
    both = minimize(loss, np.append(alone.x, np.zeros(n_classes)), jac=True, method="L-BFGS-B")
    if n_classes > 2 and alone.fun - both.fun <= n_classes - 1:
        return float(alone.x[0]), np.zeros(n_classes)
    return float(both.x[0]), both.x[1:]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelCalibrator:
    """P(label | output) = logistic(slope·output + offset), for each of several labels by itself."""

    slope: Array
    offset: Array

    __repr__ = shown_in_short

    @classmethod
    def on_left_out_rows(
        cls, spectrum: Spectrum, rows: EncodedRows, gamma: float | np.ndarray, stand_for: np.ndarray | None = None
    ) -> LabelCalibrator:
        """Fit on the exact leave-one-out outputs of the training rows, weighted as they are; of a sample as above."""
        outputs, has_label, weights = _left_out(spectrum, rows, gamma, lambda T: T > 0.0, stand_for)
        return cls.of(outputs, np.where(has_label, 1.0, -1.0), weights).to_device_of(spectrum.sigma)

    @classmethod
    def of(cls, outputs: np.ndarray, T: np.ndarray, weights: np.ndarray) -> LabelCalibrator:
        """Fit on outputs of rows that were held out, and the codes of their labels."""
        counts = _as_counts(weights)
        fits = [_logistic(outputs[:, [q]], T[:, q] > 0.0, counts) for q in range(outputs.shape[1])]
        slope, offset = np.array(fits).T
        return cls(slope, offset)

    def to_device_of(self, like: Array) -> LabelCalibrator:
        """The same in the library and on the device of an array."""
        return LabelCalibrator(to_device_of(like, self.slope), to_device_of(like, self.offset))

    def scores(self, outputs: Array) -> Array:
        """The log-odds of each label."""
        xp = array_namespace(outputs)
        return xp.astype(xp.astype(outputs, xp.float64, copy=False) * self.slope + self.offset, outputs.dtype)

    def log_probabilities(self, outputs: Array) -> Array:
        """log P(label), (n_samples, n_labels), so that no probability becomes 0 before the logarithm."""
        xp, logits = array_namespace(outputs), self.scores(outputs)
        return -xp.logaddexp(xp.zeros_like(logits), -logits)


def _logistic(outputs: np.ndarray, has_label: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Slope and offset of the log-odds of a label."""
    share = float(weights @ has_label) / float(weights.sum())
    if not 0.0 < share < 1.0:  # all rows agree: half a row more of either kind keeps the odds finite
        n = float(np.count_nonzero(weights))
        return 0.0, math.log((share * n + 0.5) / ((1.0 - share) * n + 0.5))
    model = LogisticRegression(C=_SLIGHT, max_iter=1000).fit(outputs, has_label, sample_weight=weights)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeftOutErrors:
    """How far off the network was at rows that were left out; of the rows themselves nothing is kept."""

    sizes: Array
    """|error| over its standard deviation in units of the noise, sorted for each target, rows × targets."""
    ranks: Array
    """How many rows have an error so large or smaller, rows × targets."""

    __repr__ = shown_in_short

    @classmethod
    def on_left_out_rows(cls, spectrum: Spectrum, rows: EncodedRows, gamma: float | np.ndarray) -> LeftOutErrors:
        """From the exact leave-one-out errors of the training rows of positive weight."""
        if np.any(np.equal(gamma, 0.0)) and spectrum.rank + int(spectrum.intercept_fitted) >= spectrum.n_rows:
            raise ValueError(
                "calibrate='loo' cannot tell how large errors are: with gamma=0, as many features as rows fit every "
                "target. Choose gamma by a rule such as 'kfold', or set calibrate=None."
            )
        xp = array_namespace(spectrum.sigma)
        errors, times = map(xp.concat, map(list, zip(*left_out_errors(spectrum, rows, gamma), strict=True)))
        return cls.of(errors, times)

    @classmethod
    def of(cls, errors: Array, times: Array) -> LeftOutErrors:
        """From errors, rows × targets, and how many rows each stands for."""
        xp = array_namespace(errors)
        orders = xp.argsort(xp.abs(errors), axis=0)
        by_target = [(xp.abs(errors[:, q]), orders[:, q]) for q in range(errors.shape[1])]
        return cls(
            xp.stack([xp.take(sizes, order, axis=0) for sizes, order in by_target], axis=1),
            xp.stack([xp.cumulative_sum(xp.take(times, order, axis=0)) for _, order in by_target], axis=1),
        )

    def to_device_of(self, like: Array) -> LeftOutErrors:
        """The same in the library and on the device of an array."""
        return LeftOutErrors(to_device_of(like, self.sizes), to_device_of(like, self.ranks))

    def quantile(self, coverage: Any) -> Array:
        """For each target what a share `coverage` of n + 1 errors does not exceed, the new one being the largest."""
        if isinstance(coverage, bool) or not (isinstance(coverage, Real) and 0.0 < float(coverage) < 1.0):
            raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9.")
        xp, n = array_namespace(self.sizes), round(float(self.ranks[-1, 0]))
        # Rounding must not ask for one row more: 0.07·100 is 7 and a bit.
        needed = math.ceil(float(coverage) * (n + 1) * (1.0 - 4.0 * EPS))
        if needed > n:
            raise ValueError(
                f"coverage={coverage} needs at least {math.ceil(float(coverage) / (1.0 - float(coverage)))} rows, and "
                f"the model was calibrated on {n}: ask for less coverage, or give more rows."
            )
        reached = xp.argmax(xp.astype(self.ranks > needed - 0.5, xp.int8), axis=0)
        return xp.stack([self.sizes[int(reached[q]), q] for q in range(self.sizes.shape[1])])


# ------------------------------------------------------------------------------
# `Agreement`: how well predictions agree with targets, as sums that merge.


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Sums over some rows, one entry per target."""

    weight: float
    mean: np.ndarray
    spread: np.ndarray
    """Σ w(y − mean)²."""
    error: np.ndarray
    """Σ w(y − prediction)², or the weight of wrong labels."""

    @classmethod
    def of(cls, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None, *, labels: bool) -> Agreement:
        """Compare predictions with targets."""
        w = np.ones(len(y)) if weight is None else weight
        if labels:
            # Of several labels per row, all must be right.
            y = (y != predicted).reshape(len(y), -1).any(axis=1).astype(np.float64)
            predicted = np.zeros_like(y)
        y, predicted = (a.reshape(len(a), -1).astype(np.float64) for a in (y, predicted))
        total = float(w.sum())
        mean = w @ y / (total or 1.0)
        return cls(total, mean, w @ (y - mean) ** 2, w @ (y - predicted) ** 2)

    def merge(self, other: Agreement) -> Agreement:
        weight = self.weight + other.weight
        away, share = other.mean - self.mean, other.weight / (weight or 1.0)
        return Agreement(
            weight,
            self.mean + away * share,
            self.spread + other.spread + away**2 * (self.weight * share),
            self.error + other.error,
        )

    @property
    def accuracy(self) -> float:
        return float(1.0 - self.error[0] / self.weight)

    @property
    def r2(self) -> float:
        """R², averaged over targets; 1 or 0 for a constant target, as in scikit-learn."""
        constant = self.spread == 0.0
        ratio = self.error / np.where(constant, 1.0, self.spread)
        return float(np.mean(np.where(constant, np.where(self.error == 0.0, 1.0, 0.0), 1.0 - ratio)))
