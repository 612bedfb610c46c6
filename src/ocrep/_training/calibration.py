"""What rows tell that were left out: a softmax that makes probabilities of outputs, and how large errors are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from ocrep._documentation import shown_in_short
from ocrep._layers.paths import leaf_slopes
from ocrep._linalg.arrays import EPS, Array, array_namespace, to_device_of, to_host
from ocrep._linalg.leave_one_out import left_out_errors, left_out_outputs
from ocrep._linalg.parallel import block_rows, on_chunks, row_slices
from ocrep._linalg.rows import EncodedRows
from ocrep._linalg.spectrum import Spectrum, noise_variance, variance_factor
from ocrep._training.error_scale import ErrorScale, scale_on_rows

if TYPE_CHECKING:
    from ocrep._training.recipe import Learned

# ------------------------------------------------------------------------------
# What a trained network says of new rows: HW + b and its standard deviation, block by block.


_CACHED = 2**16


def network_outputs(learned: Learned, coef: Array, intercept: Any, X: Any) -> Array:
    """HW + b, (n_samples, n_targets), in the precision of X."""
    xp = array_namespace(coef)
    weights = xp.reshape(coef, (-1, coef.shape[-1])).T
    # The layers of a stack one after the other: all of them at once would leave room for a few rows only.
    own_features: list[tuple[Any, slice]] = [(learned.features, slice(None))]
    parts = learned.maps or own_features
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


def network_gradients(learned: Learned, W: Array, X: Any) -> Array:
    """∂(HW)/∂x of each row, (n_samples, n_inputs, n_outputs), in the precision of X; of leaves, differences."""
    xp = array_namespace(W)
    shape = (X.shape[0], learned.n_inputs, W.shape[1])
    if learned.layer is None:
        return xp.astype(xp.broadcast_to(W, shape), X.dtype, copy=True)
    parts = [(own, W[columns, ...]) for own, columns in learned.maps]

    def answer(rows: Any) -> Array:
        return xp.astype(sum(own.gradients(rows, weights) for own, weights in parts), X.dtype, copy=False)

    def of_leaves(rows: Any) -> Any:
        return sum(
            xp.astype(leaf_slopes(own, rows, weights), X.dtype, copy=False)
            for own, weights in parts
            if own.trees is not None
        )

    widest = max(own.n_features for own, _ in parts)
    if not isinstance(W, np.ndarray):
        height = block_rows(widest, X.shape[1], on_device=True)
        blocks = [X[part, ...] for part in row_slices(X.shape[0], height)]
        return xp.concat([answer(rows) + of_leaves(rows) for rows in blocks])
    gradients = np.empty(shape, dtype=X.dtype)

    # Few rows at a time: there are several arrays of rows × units, and new memory beyond the caches costs most.
    few = max(32, _CACHED // widest)

    def fill(part: slice) -> None:
        for start in range(part.start, part.stop, few):
            rows = slice(start, min(start + few, part.stop))
            gradients[rows] = answer(X[rows])
        gradients[part] += of_leaves(X[part])

    on_chunks(lambda _: fill, X.shape[0], X.shape[1] * W.shape[1] + 2 * widest)
    return gradients


def standard_deviations(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any) -> Array:
    """The standard deviation of each prediction, (n_samples, n_targets): of the noise and of the weights."""
    xp = array_namespace(spectrum.sigma)
    noise = noise_variance(spectrum, gamma)
    return xp.astype(xp.sqrt(noise * _variances(learned, spectrum, gamma, X)), X.dtype, copy=False)


def leverage_widths(
    learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any, errors: Array, plain: Array | None
) -> Array:
    """Half the width of each interval before its scale, (n_samples, n_targets): errors·√(1 + v), but at least `plain`.

    With about as many features as rows, a row that is left out lies in a direction that no other row tells anything
    about: its v is huge, and error/√(1 + v) is near zero although the error is not. New rows have a moderate v, since
    all rows together reach every direction. The errors as they are then say how wide intervals must be.
    """
    xp = array_namespace(spectrum.sigma)
    mean_weight = spectrum.weight_sum / max(spectrum.n_rows, 1)
    variances = _variances(learned, spectrum, gamma, X)
    widths = errors * xp.sqrt(1.0 + mean_weight * (variances - 1.0))
    widths = widths if plain is None else xp.maximum(widths, plain * xp.ones_like(widths))
    return xp.astype(widths, X.dtype, copy=False)


def _variances(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any) -> Array:
    """The variance of each prediction's error in units of that of the noise, (n_samples, 1), or one per target's γ."""
    parts = row_slices(X.shape[0], block_rows(learned.n_features, X.shape[1]))
    factors = [variance_factor(spectrum, learned.features(X[part, ...]), gamma) for part in parts]
    return 1.0 + array_namespace(spectrum.sigma).concat(factors)


# ------------------------------------------------------------------------------

# Left-out outputs overlap unless the classes are separable; then the slight penalty keeps the slope finite.
_SLIGHT = 100.0
# Outputs are multiplied by at least this over their deviation (or over 1, that of codes ±1), so that they keep their
# order even where they tell nothing.
_LEAST_FACTOR = 1e-3


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

    @classmethod
    def of_one_factor(cls, outputs: np.ndarray, T: np.ndarray, weights: np.ndarray) -> Calibrator:
        """The softmax of the outputs times one factor, which changes no label, from rows that were held out."""
        both = np.hstack([-outputs, outputs]) if outputs.shape[1] == 1 else outputs
        return cls._scaled(_factor(both, _class_numbers(T), _as_counts(weights)), outputs.shape[1])

    @classmethod
    def of_error(cls, error: np.ndarray, n_rows: int) -> Calibrator:
        """The same from the mean squared error of each output on held-out rows alone."""
        n_classes = max(2, len(error))
        return cls._scaled(_factor_of_error(float(np.mean(error)), n_classes, n_rows), len(error))

    @classmethod
    def _scaled(cls, factor: float, n_outputs: int) -> Calibrator:
        # One output stands for two, its negative and itself.
        return cls((2.0 if n_outputs == 1 else 1.0) * factor * np.eye(n_outputs), np.zeros(n_outputs))

    def to_device_of(self, like: Array) -> Calibrator:
        """The same in the library and on the device of an array."""
        return Calibrator(to_device_of(like, self.slope), to_device_of(like, self.offset))

    def scores(self, outputs: Array) -> Array:
        """The log-odds of the second class, (n_samples, 1), or the softmax's logits, one per class."""
        xp = array_namespace(outputs)
        product = xp.matmul(xp.astype(outputs, xp.float64, copy=False), self.slope) + self.offset
        return xp.astype(product, outputs.dtype, copy=False)

    def weights_of_scores(self, W: Array) -> Array:
        """The weights of the scores, where W (features × outputs) are those of the outputs."""
        return array_namespace(W).matmul(W, self.slope)

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
        own_slope, own_offset = _logistic(outputs, codes > 0, weights)
        return np.array([[own_slope]]), np.array([own_offset])
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
    alone = _least_loss(np.ones(1), outputs, codes, weights)
    both = _least_loss(np.append(alone.x, np.zeros(n_classes)), outputs, codes, weights)
    if n_classes > 2 and alone.fun - both.fun <= n_classes - 1:
        return float(alone.x[0]), np.zeros(n_classes)
    return float(both.x[0]), both.x[1:]


def _factor(outputs: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    """What outputs, one for each class, are multiplied by to become logits, so that no label changes."""
    return float(_least_loss(np.ones(1), outputs, codes, weights).x[0])


def _least_loss(start: np.ndarray, outputs: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Any:
    """The factor, and the constants if `start` has some, with the least loss.

    The factor is positive. A class of one row is not known where this row is left out, and the outputs of its rows then
    speak against it: a free factor would be negative, and turn all labels around.
    """
    bounds = [(_least_factor(outputs), None)] + [(None, None)] * (len(start) - 1)
    return minimize(_loss, start, (outputs, codes, weights), jac=True, method="L-BFGS-B", bounds=bounds)


def _least_factor(outputs: np.ndarray) -> float:
    return _LEAST_FACTOR / max(1.0, float(np.std(outputs)))


def _loss(
    parameters: np.ndarray, outputs: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """The log-loss of the softmax of a factor times the outputs, with a constant for each class or without, and its
    derivatives, both with a slight penalty.
    """
    rows = np.arange(len(codes))
    logits = parameters[0] * outputs
    if len(parameters) > 1:
        logits = logits + parameters[1:]
    logits = logits - logits.max(axis=1, keepdims=True)
    of_class = logits[rows, codes]
    excess = np.exp(logits, out=logits)
    sums = excess.sum(axis=1)
    value = weights @ (np.log(sums) - of_class)
    excess *= (weights / sums)[:, None]
    excess[rows, codes] -= weights
    slopes = np.array([np.vdot(excess, outputs)])
    if len(parameters) > 1:
        slopes = np.append(slopes, excess.sum(axis=0))
    return float(value + parameters @ parameters / (2.0 * _SLIGHT)), slopes + parameters / _SLIGHT


def _factor_of_error(error: float, n_classes: int, n_rows: int) -> float:
    """What outputs are multiplied by to become logits, where only their mean squared error on held-out rows is known.

    Outputs of least squares on codes ±1 estimate 2p − 1, p the probability of each class. Then the K errors of a row
    add up to 4(1 − Σp²). If all rows were alike, with probability P for one class and (1 − P)/(K − 1) for each other,
    the error would say how large P is, and the factor is what makes the softmax give P:

        Σp² = P² + (1 − P)²/(K − 1) = 1 − K·error/4,     factor·2(KP − 1)/(K − 1) = log(P(K − 1)/(1 − P)).

    As rows are not alike, this is careful: rows that are easier than others get too small a probability, not too
    large a one.
    """
    K = n_classes
    squares = 1.0 - K * error / 4.0
    P = (1.0 + math.sqrt(max(0.0, (K - 1) * (K * squares - 1.0)))) / K
    P = min(P, 1.0 - 1.0 / (2.0 * n_rows + 2.0))
    beyond = 2.0 * (K * P - 1.0) / (K - 1)
    if beyond < 1e-6:  # outputs that tell nothing: the limit of the ratio
        return K / 2.0
    return math.log(P * (K - 1) / (1.0 - P)) / beyond


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

    @classmethod
    def of_one_factor(cls, outputs: np.ndarray, T: np.ndarray, weights: np.ndarray) -> LabelCalibrator:
        """The logistic of each output times a factor, which changes no label, from rows that were held out."""
        counts = _as_counts(weights)
        pairs = (np.stack([-output, output], axis=1) for output in outputs.T)
        factors = [_factor(pair, (t > 0.0).astype(int), counts) for pair, t in zip(pairs, T.T, strict=True)]
        return cls(2.0 * np.array(factors), np.zeros(len(factors)))

    @classmethod
    def of_error(cls, error: np.ndarray, n_rows: int) -> LabelCalibrator:
        """The same from the mean squared error of each output on held-out rows alone."""
        factors = [_factor_of_error(float(own), 2, n_rows) for own in error]
        return cls(2.0 * np.array(factors), np.zeros(len(factors)))

    def to_device_of(self, like: Array) -> LabelCalibrator:
        """The same in the library and on the device of an array."""
        return LabelCalibrator(to_device_of(like, self.slope), to_device_of(like, self.offset))

    def scores(self, outputs: Array) -> Array:
        """The log-odds of each label."""
        xp = array_namespace(outputs)
        return xp.astype(xp.astype(outputs, xp.float64, copy=False) * self.slope + self.offset, outputs.dtype)

    def weights_of_scores(self, W: Array) -> Array:
        """The weights of the scores, where W (features × outputs) are those of the outputs."""
        return W * self.slope

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
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    least = _least_factor(outputs)
    if slope >= least:
        return slope, offset
    # The loss is convex, so under slope ≥ the least it is smallest at this end. There the logits are nearly equal.
    outputs = least * outputs[:, 0]
    found = minimize(
        lambda b: (
            float(weights @ np.logaddexp(0.0, np.where(has_label, -1.0, 1.0) * (outputs + b[0]))),
            np.array([weights @ (expit(outputs + b[0]) - has_label)]),
        ),
        np.array([math.log(share / (1.0 - share))]),
        jac=True,
        method="L-BFGS-B",
    )
    return least, float(found.x[0])


# A median v of left-out rows above this, a leverage of 3/4, says that there are about as many features as rows.
_LARGE_VARIANCE = 3.0


# Without slots: files of earlier releases lack the later fields, and the class itself holds their defaults.
@dataclass(frozen=True, eq=False, repr=False)
class LeftOutErrors:
    """How far off the network was at rows that were left out; of the rows themselves nothing is kept.

    Weights of rows say how much each counts, and only their ratios mean something. They add up to the number of rows of
    equal weight that would tell as much, (Σw)²/Σw² (Kish, 1965).
    """

    sizes: Array
    """|error| over its scale, sorted for each target, rows × targets. That of a single network also over √(1 + v), its
    standard deviation in units of the noise."""
    ranks: Array
    """How many rows have an error so large or smaller, rows × targets."""
    plain_sizes: Array | None = None
    plain_ranks: Array | None = None
    """The same without √(1 + v), of a single network that has about as many features as rows."""
    scale: ErrorScale | None = None
    """How large errors are at each row; None if they are about the same everywhere."""

    __repr__ = shown_in_short

    @classmethod
    def on_left_out_rows(cls, spectrum: Spectrum, rows: EncodedRows, gamma: float | np.ndarray) -> LeftOutErrors:
        """From the exact leave-one-out errors of the training rows of positive weight."""
        if np.any(np.equal(gamma, 0.0)) and spectrum.rank + int(spectrum.intercept_fitted) >= spectrum.n_rows:
            raise ValueError(
                "calibrate='loo' cannot tell how large errors are: with gamma=0, as many features as rows fit every "
                "target. Choose gamma by a rule such as 'kfold', or set calibrate=None."
            )
        blocks = zip(*left_out_errors(spectrum, rows, gamma), strict=True)
        errors, variances, weight = (np.concatenate([to_host(part) for part in parts]) for parts in blocks)
        sizes = np.abs(errors)
        deviations = np.sqrt(1.0 + variances)
        found = scale_on_rows(rows.blocks, errors / deviations, weight)
        if found is not None:
            sizes = sizes / found[1]
        calibrator = cls.of(sizes / deviations, weight, None if found is None else found[0])
        if np.median(variances) > _LARGE_VARIANCE:
            plain_sizes, plain_ranks = _ranked(sizes, weight)
            calibrator = replace(calibrator, plain_sizes=plain_sizes, plain_ranks=plain_ranks)
        return calibrator.to_device_of(spectrum.sigma)

    @classmethod
    def of(cls, errors: np.ndarray, weight: np.ndarray, scale: ErrorScale | None = None) -> LeftOutErrors:
        """From errors of rows that were held out, rows × targets, over their scale."""
        return cls(*_ranked(np.abs(errors), weight), scale=scale)

    def to_device_of(self, like: Array) -> LeftOutErrors:
        """The same in the library and on the device of an array."""
        return LeftOutErrors(
            to_device_of(like, self.sizes),
            to_device_of(like, self.ranks),
            None if self.plain_sizes is None else to_device_of(like, self.plain_sizes),
            None if self.plain_ranks is None else to_device_of(like, self.plain_ranks),
            None if self.scale is None else self.scale.to_device_of(like),
        )

    def quantiles(self, coverage: Any) -> tuple[Array, Array | None]:
        """For each target what a share `coverage` of n + 1 errors does not exceed, the new one being the largest.

        With about as many features as rows there are two: of the errors over √(1 + v), and as they are.
        """
        if isinstance(coverage, bool) or not (isinstance(coverage, Real) and 0.0 < float(coverage) < 1.0):
            raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9.")
        n = float(self.ranks[-1, 0])
        # Rounding must not ask for one row more: 0.07·100 is 7 and a bit.
        needed = float(coverage) * (n + 1.0) * (1.0 - 16.0 * EPS)
        if needed > n * (1.0 + 16.0 * EPS):
            least = math.ceil(float(coverage) / (1.0 - float(coverage)) * (1.0 - 1e-12))
            raise ValueError(
                f"coverage={coverage} needs at least {least} rows, and the model was calibrated on {n:.4g}: "
                "ask for less coverage, or give more rows."
            )
        plain = None
        if self.plain_sizes is not None and self.plain_ranks is not None:
            plain = _reached(self.plain_sizes, self.plain_ranks, needed)
        return _reached(self.sizes, self.ranks, needed), plain


def _ranked(sizes: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, rows × targets, sorted for each target, and the weight of all that are so large or smaller."""
    order = np.argsort(sizes, axis=0)
    share = weight / weight.sum() if len(weight) else weight
    counts = share / (share @ share) if len(weight) else weight  # as many rows of equal weight tell as much
    return np.take_along_axis(sizes, order, axis=0), np.cumsum(counts[order], axis=0)


def _reached(sizes: Array, ranks: Array, needed: float) -> Array:
    """For each target the least size whose rank is that needed."""
    xp = array_namespace(sizes)
    # The last rank is the sum of all, but for rounding.
    reached = xp.sum(xp.astype(ranks < needed * (1.0 - 1e-12), xp.int64), axis=0)
    last = sizes.shape[0] - 1
    return xp.stack([sizes[min(int(reached[q]), last), q] for q in range(sizes.shape[1])])


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
