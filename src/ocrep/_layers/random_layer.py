"""`RandomLayer`: a hidden layer whose weights are drawn once; the table of distributions; the input scaling."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy, deepcopy
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ocrep._documentation import Linked
from ocrep._errors import pick, unchanged_on_error
from ocrep._layers.activations import ACTIVATIONS, Activation
from ocrep._layers.hidden_map import HiddenMap, seen_inputs
from ocrep._layers.pairs import ScaledRows, draw_centers, draw_pairs, sample_of
from ocrep._linalg.arrays import EPS, Array, array_namespace
from ocrep._linalg.parallel import on_chunks
from ocrep._rows.block import check_place
from ocrep._rows.checks import checked_inputs, checked_weights
from ocrep._rows.survey import Range, RowSample, observed_range

# ------------------------------------------------------------------------------
# What the parameters of a hidden layer mean, checked before a row is read.


PAIRS, ROWS = "pairs", "rows"
FROM_ROWS = (PAIRS, ROWS)
"""Units that are taken from training rows."""
WEIGHT_INITS = ("uniform", "normal", "orthogonal", *FROM_ROWS)


def check_layer(layer: RandomLayer) -> None:
    """Raise if a parameter cannot work, before any row is read."""
    check_size("n_hidden", layer.n_hidden)
    activation_of(layer.activation)
    if layer.weight_init not in WEIGHT_INITS:
        pick("weight_init", layer.weight_init, dict.fromkeys(WEIGHT_INITS))
    weight_factor(layer.weight_scale, layer.n_hidden)
    if layer.weight_init == ROWS and not activation_of(layer.activation).radial:
        raise ValueError(
            f"weight_init='rows' centres units on training rows, and activation={layer.activation!r} has no centre: "
            "use activation='gaussian', or weight_init='pairs'."
        )
    if layer.bias_range is not None:
        _check_bias_range(layer)
    if layer.units_see is not None:
        _check_units_see(layer)
    if isinstance(layer.input_scaling, str) and layer.input_scaling != "minmax":
        raise ValueError(
            f"input_scaling={layer.input_scaling!r} is unknown: use 'minmax', a pair (low, high), or None."
        )


def _check_bias_range(layer: RandomLayer) -> None:
    ends_of(layer.bias_range)
    if layer.weight_init in FROM_ROWS:
        raise ValueError(
            f"bias_range={layer.bias_range!r} draws biases, but weight_init={layer.weight_init!r} takes them from the "
            "rows: use bias_range=None, or another weight_init."
        )


def _check_units_see(layer: RandomLayer) -> None:
    check_size("units_see", layer.units_see)
    for name, value in (("weight_init", "orthogonal"), ("activation", "gaussian")):
        if getattr(layer, name) == value:
            raise ValueError(
                f"units_see={layer.units_see} lets each unit see some inputs, but {name}={value!r} needs all of them: "
                f"use units_see=None, or another {name}."
            )


def check_nested(layer: RandomLayer) -> None:
    """Raise unless smaller layers are the beginning of larger ones."""
    if layer.weight_init == "orthogonal" or layer.weight_scale == "inverse_sqrt":
        raise ValueError(
            "Hidden sizes are compared along nested layers, but weight_init='orthogonal' and "
            "weight_scale='inverse_sqrt' draw each size differently: use weight_init='uniform', 'normal', "
            "'pairs' or 'rows', and a number as weight_scale."
        )


def activation_of(activation: str | Callable[[Array], Array]) -> Activation:
    """What a user may pass as `activation`: a name, or a function of an array."""
    if callable(activation):
        return Activation(activation)
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS[activation]
    return pick("activation", activation, ACTIVATIONS, also=", or a callable")


def weight_factor(weight_scale: float | str, n_hidden: int) -> float:
    """What weights and biases are multiplied by."""
    if weight_scale == "inverse_sqrt":
        return 1.0 / math.sqrt(n_hidden)
    if isinstance(weight_scale, Real) and math.isfinite(weight_scale) and weight_scale > 0:
        return float(weight_scale)
    raise ValueError(f"weight_scale={weight_scale!r} must be a finite number > 0, or 'inverse_sqrt'.")


def ends_of(bias_range: Any) -> tuple[float, float]:
    """The two ends of a range of biases."""
    ends = np.asarray(bias_range, dtype=object)
    if ends.shape == (2,) and all(isinstance(end, Real) and math.isfinite(end) for end in ends) and ends[0] <= ends[1]:
        return float(ends[0]), float(ends[1])
    raise ValueError(
        f"bias_range={bias_range!r} must be a pair of finite numbers (low, high) with low ≤ high, or None."
    )


def check_size(name: str, value: Any) -> int:
    """Give `value` as an int if it is a whole number ≥ 1."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    raise ValueError(f"{name}={value!r} must be a whole number ≥ 1.")


# ------------------------------------------------------------------------------


def _uniform(rng: np.random.RandomState, n_inputs: int, n_hidden: int) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, size=(n_hidden, n_inputs + 1))


def _normal(rng: np.random.RandomState, n_inputs: int, n_hidden: int) -> np.ndarray:
    return rng.standard_normal(size=(n_hidden, n_inputs + 1))


def _orthogonal(rng: np.random.RandomState, n_inputs: int, n_hidden: int) -> np.ndarray:
    """Directions orthonormal within each group of `n_inputs` units; biases uniform."""
    groups = []
    for first in range(0, n_hidden, n_inputs):
        Q, R = np.linalg.qr(rng.standard_normal(size=(n_inputs, min(n_inputs, n_hidden - first))))
        groups.append(Q * np.sign(np.diag(R)))  # the signs make Q uniform over all rotations
    directions = np.concatenate(groups, axis=1)
    return np.column_stack([directions.T, rng.uniform(-1.0, 1.0, size=n_hidden)])


# One row per unit, its weights and its bias together: the first m units of a layer of M are the layer of m.
WEIGHTS: dict[str, Callable[[np.random.RandomState, int, int], np.ndarray]] = {
    "uniform": _uniform,
    "normal": _normal,
    "orthogonal": _orthogonal,
}


class RandomLayer(Linked, TransformerMixin, BaseEstimator):
    """A hidden layer whose input weights are drawn once and never trained.

    Parameters
    ----------
    n_hidden : int, default=200
        Number of hidden units M.
    activation : str or callable, default="sigmoid"
        "sigmoid", "tanh", "relu", "sin", "gaussian" (exp(−|b|·‖x − c‖²) about random centres c),
        "hardlimit", "identity", or a function of an array that acts on each entry by itself.
    input_scaling : "minmax", (low, high) or None, default="minmax"
        "minmax" brings each input to [−1, 1] by its range over the rows of positive weight; `(low, high)`,
        numbers or one per input, gives that range; None leaves inputs alone. Constant inputs become 0.
    weight_init : {"uniform", "normal", "orthogonal", "pairs", "rows"}, default="uniform"
        Distribution of weights and biases: U(−1, 1), N(0, 1), or directions orthonormal in groups of as many
        units as there are inputs, with U(−1, 1) biases. "pairs" takes each unit from two training rows [1]_, "rows"
        centres Gaussian units on single ones; see the notes.
    weight_scale : float or "inverse_sqrt", default=1.0
        Factor on weights and biases; "inverse_sqrt" is 1/√M. It divides the width of Gaussian units from rows.
    bias_range : (low, high) or None, default=None
        Biases U(low, high) before `weight_scale`, such as (0, 1); None leaves their distribution to `weight_init`.
        Not for "pairs" and "rows".
    units_see : int, default=None
        How many inputs each unit sees, chosen at random among those that are not constant; None, or a number that
        is as large, means all. Not for "orthogonal" weights and "gaussian" units.
    direct_link : bool, default=False
        Whether to put the scaled inputs in front of the hidden units.
    random_state : int, RandomState, Generator or None, default=None
        Seed. Each unit draws its weights and bias together, so with one seed the first m units of a layer of M
        are the layer of m (but for "orthogonal" and "inverse_sqrt").

    Attributes
    ----------
    weights_ : ndarray of shape (n_features_in_, n_hidden)
        C of H = φ(XC + b), acting on the scaled inputs.
    biases_ : ndarray of shape (n_hidden,)
        b.
    center_, scale_ : ndarray of shape (n_features_in_,)
        The scaled input is (x − center_)·scale_.
    map_ : HiddenMap
        The fitted layer as a pure function of arrays.

    Notes
    -----
    With `weight_init="pairs"` a unit belongs to two training rows x₁ and x₂, and changes from the one to the other:
    tanh is −½ at x₁ and ½ at x₂, sigmoid ¼ and ¾, sin and identity −½ and ½, relu and hardlimit 0 and 1; a function of
    your own gets −1 and 1. `weight_scale` multiplies the arguments. A Gaussian unit is 1 at x₁ and ½ as far away as x₂.
    Each unit chooses its pair among ten random ones with probability proportional to ‖y₂ − y₁‖/‖x₂ − x₁‖, so steep
    parts of the target get more units. Distances are those of standardised inputs; `input_scaling` scales what
    `weights_` and the direct link see. Targets are divided by their standard deviations; labels differ by 0 or 1. `fit`
    takes floating-point targets as numbers and others as labels; without targets it only prefers near rows.

    With `weight_init="rows"` Gaussian units are centred on training rows in random order:
    exp(−`weight_scale`²·‖u − c‖²/d) in standardised inputs u, where d is the number of inputs that vary.

    The rows come from at most 10,000 distinct rows of positive weight, chosen by a hash of what they hold. So the
    order of the rows does not matter, and a weight equals repetition. Rules that hold rows out keep the layer fixed,
    and it was chosen by the targets of all rows, so their errors are a little too small.

    References
    ----------
    .. [1] Bolager, Burak, Datar, Sun, Dietrich, "Sampling weights of deep neural networks", NeurIPS (2023).

    Examples
    --------
    >>> from ocrep import RandomLayer
    >>> layer = RandomLayer(3, random_state=0).fit([[0.0], [1.0]])
    >>> layer.transform([[0.0], [1.0]]).round(2)
    array([[0.58, 0.47, 0.61],
           [0.63, 0.57, 0.53]])
    >>> layer.get_feature_names_out()
    array(['randomlayer0', 'randomlayer1', 'randomlayer2'], dtype=object)
    """

    map_: HiddenMap

    def __init__(
        self,
        n_hidden: int = 200,
        *,
        activation: str | Callable[[Array], Array] = "sigmoid",
        input_scaling: Any = "minmax",
        weight_init: str = "uniform",
        weight_scale: float | str = 1.0,
        bias_range: tuple[float, float] | None = None,
        units_see: int | None = None,
        direct_link: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.input_scaling = input_scaling
        self.weight_init = weight_init
        self.weight_scale = weight_scale
        self.bias_range = bias_range
        self.units_see = units_see
        self.direct_link = direct_link
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RandomLayer:
        """Draw the weights and learn the input range; rows of zero weight are not looked at.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets; only `weight_init="pairs"` looks at them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0.

        Returns
        -------
        self
            The fitted layer.
        """
        with unchanged_on_error(self):
            check_layer(self)
            X = checked_inputs(self, X, reset=True)
            weight = checked_weights(sample_weight, X)
            observed = observed_range(X, weight) if isinstance(self.input_scaling, str) else None
            sample = sample_of(X, y, weight) if self.weight_init in FROM_ROWS else None
            self.draw(X.shape[1], X.dtype, observed, sample)
            self.map_ = self.map_.to_device_of(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Give H, or [X | H] with a direct link.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            The features.
        """
        check_is_fitted(self)
        check_place(f"{type(self).__name__}.transform()", self.weights_, X)
        X = checked_inputs(self, X, reset=False)
        if not isinstance(X, np.ndarray):
            H = self.map_(X)
            return array_namespace(H).astype(H, X.dtype, copy=False)
        n_outputs = self.map_.n_features
        H = np.empty((X.shape[0], n_outputs), dtype=X.dtype)

        def worker(height: int) -> Callable[[slice], None]:
            workspace = np.empty((height, n_outputs))

            def fill(part: slice) -> None:
                H[part] = self.map_(X[part], workspace)

            return fill

        on_chunks(worker, X.shape[0], X.shape[1] + n_outputs)
        return H

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the outputs: the inputs' own names with a direct link, then "randomlayer0", "randomlayer1" and so on.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the inputs, where X had none.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self)
        inputs = _check_feature_names_in(self, input_features)
        units = [f"randomlayer{i}" for i in range(self.weights_.shape[1])]
        return np.asarray([*(inputs if self.map_.direct_link else []), *units], dtype=object)

    def take(self, units: Any) -> RandomLayer:
        """The fitted layer of some units; the first m are what a layer of m with this seed would have drawn."""
        part = copy(self)
        part.map_ = self.map_.take(units)
        return part.set_params(n_hidden=part.map_.biases.shape[0])

    def draw(
        self, n_inputs: int, dtype: Any, observed: Range | None = None, sample: RowSample | None = None
    ) -> RandomLayer:
        """Fit to checked inputs of this number and type: "minmax" needs their range, "pairs" a sample of rows."""
        low, high = _input_range(self.input_scaling, n_inputs, observed)
        center, stretch = _to_unit_interval(low, high, dtype)
        activation, rng = activation_of(self.activation), random_numbers(self.random_state)
        factor, metric = weight_factor(self.weight_scale, self.n_hidden), None
        if self.weight_init in FROM_ROWS:
            assert sample is not None
            seed = int(rng.randint(2**31 - 1))
            rows = ScaledRows.of(sample, center, stretch, self.weight_init, _rounding(dtype))
            if self.weight_init == ROWS:
                weights, biases, metric = draw_centers(rows, factor, self.n_hidden, seed)
            else:
                pairs = draw_pairs(rows, self.n_hidden, seed, self.units_see)
                weights, biases, metric = pairs.units(activation, factor)
        else:
            units = factor * self._drawn(rng, stretch)
            weights, biases = units[:, :-1], units[:, -1].copy()
        weights = np.ascontiguousarray(weights.T)
        self.map_ = HiddenMap(weights, biases, center, stretch, activation, bool(self.direct_link), metric)
        return self

    def _drawn(self, rng: np.random.RandomState, stretch: np.ndarray) -> np.ndarray:
        """Units that do not depend on the rows, before they are scaled: weights and bias in one row each."""
        # A seed from a copy, so that units that see some inputs have the weights of units that see all.
        seed = 0 if self.units_see is None else int(deepcopy(rng).randint(2**31 - 1))
        units = WEIGHTS[self.weight_init](rng, len(stretch), self.n_hidden)
        if self.bias_range is not None:
            units[:, -1] = _within(ends_of(self.bias_range), units[:, -1], normal=self.weight_init == "normal")
        if self.units_see is not None:
            units[:, :-1] *= seen_inputs(seed, self.n_hidden, self.units_see, stretch > 0.0)
        return units

    @property
    def weights_(self) -> np.ndarray:
        """C of H = φ(XC + b)."""
        return self.map_.weights

    @property
    def biases_(self) -> np.ndarray:
        """Biases b of H = φ(XC + b)."""
        return self.map_.biases

    @property
    def center_(self) -> np.ndarray:
        """The mid-range of each input."""
        return self.map_.center

    @property
    def scale_(self) -> np.ndarray:
        """The factor that brings each centred input to [−1, 1]."""
        return self.map_.scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.array_api_support = True, True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Random numbers; those of a `Generator` move it on, as those of a `RandomState` do."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)


def _input_range(scaling: Any, n_inputs: int, observed: Range | None) -> Range:
    """The range that goes to [−1, 1]; the range (−1, 1) itself leaves inputs alone."""
    if isinstance(scaling, str):
        assert observed is not None
        return observed
    try:
        low, high = (-1.0, 1.0) if scaling is None else scaling
    except (TypeError, ValueError):
        raise ValueError(f"input_scaling={scaling!r} is not a pair: use 'minmax', (low, high), or None.") from None
    ends = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    fits = all(end.shape in ((), (1,), (n_inputs,)) and np.isfinite(end).all() for end in ends)
    if not fits or (ends[0] > ends[1]).any():
        raise ValueError(
            f"input_scaling=(low, high) needs finite numbers with low ≤ high, one pair for all or {n_inputs} each, "
            "one per input."
        )
    return np.broadcast_to(ends[0], n_inputs), np.broadcast_to(ends[1], n_inputs)


def _to_unit_interval(low: np.ndarray, high: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mid-range, and the factor that brings the rest to [−1, 1]; 0 for a constant input."""
    center, half = low / 2 + high / 2, high / 2 - low / 2
    # A range of a few units in the last place is rounding, not information; stretching it would feed in noise.
    constant = half <= np.maximum(2 * _rounding(dtype) * np.abs(center), np.finfo(np.float64).tiny)
    return center, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, half))


def _rounding(dtype: Any) -> float:
    """ε of the inputs."""
    return EPS if str(dtype).endswith("64") else float(np.finfo(np.float32).eps)


def _within(ends: tuple[float, float], biases: np.ndarray, *, normal: bool) -> np.ndarray:
    """Biases drawn U(−1, 1) or N(0, 1) as U(low, high): each unit still draws its weights and bias together."""
    low, high = ends
    share = ndtr(biases) if normal else (biases + 1.0) / 2.0
    return low + (high - low) * share
