"""`RandomLayer`: a hidden layer whose units are drawn once; what its parameters mean, and how units are drawn.

A unit is a row of weights c, a bias b and, for radial units, a metric that all share; `HiddenMap` computes its output.
A layer can be drawn on inputs times a given metric R instead, a factor for each input or a matrix. Random weights C act
on XR, so they become RC; random centres stay among the inputs, and distances are those of XR. Distances between rows,
for pairs and rows, are those of XR too, times one number that makes the sum of its variances equal the number of inputs
that vary, as it is for standardised inputs: only the relative sizes in R matter there.

Units that do not look at rows take c and b from a distribution, or c from random orthonormal directions: in each group
of as many units as there are inputs, Q of the QR factorization of a normal matrix, with the signs that make it uniform
over all rotations.

Units from pairs of rows follow Bolager et al. (2023). In standardised inputs u, a unit with the rows u₁ and u₂ sees

    t(x) = a·(x − x₁),  a = (u₂ − u₁)/‖u₂ − u₁‖² in the units of x,  so that t(x₁) = 0 and t(x₂) = 1,

and its argument is low + (high − low)·t(x): it changes between two levels of φ (`Activation.levels`) just where the
training rows are. A radial unit has its centre at x₁, and −|b|·‖u − u₁‖² = high at x₂ gives |b| = −high/‖u₂ − u₁‖²
(without the squares for Laplace units).
The pair is drawn among a few random ones with probability ∝ ‖y₂ − y₁‖/‖x₂ − x₁‖, the steepness of the target between
them. The draw is one argmin: of independent exponential variables with rates pᵢ, the i-th is the least with
probability pᵢ/Σp.

What is drawn depends on the seed and on the set of distinct rows, not on their order (they are sorted, and chosen by a
hash of their content), nor on the number of units: each unit has its own row of random numbers, so the first m units of
a layer of M are the layer of m. To add a kind of unit, give it a name in `WEIGHT_INITS` and a branch in `draw`. Leaves
of trees are in `trees.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ocrep._errors import pick, unchanged_on_error
from ocrep._layers.activations import ACTIVATIONS, Activation
from ocrep._layers.columns import range_to_scale, rounding_of, squashed, standardized, to_squash, to_unit_interval
from ocrep._layers.hidden_map import HiddenMap, JoinedMap
from ocrep._layers.trees import grown
from ocrep._linalg.arrays import EPS, Array, array_namespace
from ocrep._linalg.parallel import on_chunks, slices_of
from ocrep._rows.block import Block, check_place, on_device
from ocrep._rows.checks import check_labels, check_lengths, check_numbers, checked_inputs, checked_weights
from ocrep._rows.survey import SAMPLE_ROWS, Range, RowSample, observed_range

# ------------------------------------------------------------------------------
# What the parameters mean, checked before a row is read.

FROM_ROWS = ("pairs", "rows", "trees")
"""Units that are taken from training rows."""
LEARNED = ("trees", "diagonal", "full")
"""Units, and metrics, that learn so much of the targets that they are judged only on rows that they have not seen."""
WEIGHT_INITS = ("uniform", "normal", "orthogonal", *FROM_ROWS)


def check_layer(layer: RandomLayer) -> None:
    """Raise if a parameter cannot work, before any row is read."""
    check_size("n_hidden", layer.n_hidden)
    check_flag("direct_link", layer.direct_link)
    _activation_of(layer.activation)
    if layer.weight_init == "trees":
        _check_leaves(layer)
    if layer.weight_init not in WEIGHT_INITS:
        pick("weight_init", layer.weight_init, dict.fromkeys(WEIGHT_INITS))
    _weight_factor(layer.weight_scale, layer.n_hidden)
    if layer.weight_init == "rows" and not _activation_of(layer.activation).radial:
        raise ValueError(
            f"weight_init='rows' centres units on training rows, and activation={layer.activation!r} has no centre: "
            "use activation='gaussian' or 'laplace', or weight_init='pairs'."
        )
    if layer.bias_range is not None:
        _ends_of(layer.bias_range)
        if layer.weight_init in FROM_ROWS:
            raise ValueError(
                f"bias_range={layer.bias_range!r} draws biases, but weight_init={layer.weight_init!r} takes them from "
                "the rows: use bias_range=None, or another weight_init."
            )
    if layer.units_see is not None:
        check_size("units_see", layer.units_see)
        for name, needs_all in (
            ("weight_init", layer.weight_init == "orthogonal"),
            ("activation", _activation_of(layer.activation).radial),
        ):
            if needs_all:
                raise ValueError(
                    f"units_see={layer.units_see} lets each unit see some inputs, but {name}={getattr(layer, name)!r} "
                    f"needs all of them: use units_see=None, or another {name}."
                )
    if isinstance(layer.input_scaling, str) and layer.input_scaling not in ("minmax", "squash"):
        raise ValueError(
            f"input_scaling={layer.input_scaling!r} is unknown: use 'minmax', 'squash', a pair (low, high), or None."
        )


def _check_leaves(layer: RandomLayer) -> None:
    """Raise if a parameter was set that leaves of trees do not have."""
    for name in ("activation", "weight_scale", "bias_range", "units_see"):
        value = getattr(layer, name)
        default = signature(RandomLayer).parameters[name].default
        if value is not default and value != default:
            raise ValueError(
                f"{name}={value!r} does not apply to weight_init='trees', whose units are 0 or 1 in the leaves of "
                f"trees: leave {name} at its default, {default!r}, or use another weight_init."
            )


def needs_sample(layer: RandomLayer) -> bool:
    """Whether a sample of rows must be known before the layer can be drawn."""
    return layer.weight_init in FROM_ROWS or _squashes(layer)


def _squashes(layer: RandomLayer) -> bool:
    scaling = layer.input_scaling  # which may be an array
    return isinstance(scaling, str) and scaling == "squash"


def check_nested(layer: RandomLayer) -> None:
    """Raise unless smaller layers are the beginning of larger ones."""
    if layer.weight_init == "orthogonal" or layer.weight_scale == "inverse_sqrt":
        raise ValueError(
            "Hidden sizes are compared along nested layers, but weight_init='orthogonal' and "
            "weight_scale='inverse_sqrt' draw each size differently: use weight_init='uniform', 'normal', "
            "'pairs', 'rows' or 'trees', and a number as weight_scale."
        )


def _activation_of(activation: str | Callable[[Array], Array]) -> Activation:
    """What a user may pass as `activation`: a name, or a function of an array."""
    if callable(activation):
        return Activation(activation)
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS[activation]
    return pick("activation", activation, ACTIVATIONS, also=", or a callable")


def _weight_factor(weight_scale: float | str, n_hidden: int) -> float:
    """What weights and biases are multiplied by."""
    if weight_scale == "inverse_sqrt":
        return 1.0 / math.sqrt(n_hidden)
    if isinstance(weight_scale, Real) and math.isfinite(weight_scale) and weight_scale > 0:
        return float(weight_scale)
    raise ValueError(f"weight_scale={weight_scale!r} must be a finite number > 0, or 'inverse_sqrt'.")


def _ends_of(bias_range: Any) -> tuple[float, float]:
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


def check_flag(name: str, value: Any) -> None:
    """Raise unless `value` is True or False: any text, also "no", would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} must be True or False.")


# ------------------------------------------------------------------------------
# Units that do not depend on the rows.


class Estimator(BaseEstimator):
    """The base of all estimators: their HTML links to their pages, and they may be drawn by `np.random`."""

    _doc_link_module = "ocrep"
    _doc_link_template = "https://ocrep.github.io/ocrep/api/{public_name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        room = "ocrep.literature." if type(self).__module__.startswith("ocrep.literature.") else "ocrep."
        return {"public_name": room + type(self).__name__}

    def __sklearn_clone__(self) -> Any:
        # `random_state` may be the module, as in scikit-learn, and a module cannot be copied.
        if getattr(self, "random_state", None) is not np.random:
            return super().__sklearn_clone__()
        bare = copy(self).set_params(random_state=None)
        return clone(bare).set_params(random_state=np.random)


def random_numbers(random_state: Any) -> np.random.RandomState:
    """The source of random numbers; drawing from it moves a given `Generator` or `RandomState` on."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)


def _orthogonal(rng: np.random.RandomState, n_inputs: int, n_hidden: int) -> np.ndarray:
    """Directions orthonormal within each group of `n_inputs` units; biases uniform."""
    groups = []
    for first in range(0, n_hidden, n_inputs):
        Q, R = np.linalg.qr(rng.standard_normal(size=(n_inputs, min(n_inputs, n_hidden - first))))
        groups.append(Q * np.sign(np.diag(R)))  # the signs make Q uniform over all rotations
    directions = np.concatenate(groups, axis=1)
    return np.column_stack([directions.T, rng.uniform(-1.0, 1.0, size=n_hidden)])


def _seen_inputs(seed: int, n_hidden: int, units_see: int, usable: np.ndarray) -> np.ndarray:
    """Units × inputs: True for `units_see` random inputs of each unit among the usable ones, or for all of these."""
    if units_see >= np.count_nonzero(usable):
        return np.broadcast_to(usable, (n_hidden, len(usable)))
    # One row per unit, so that a unit's inputs do not depend on how many units there are.
    order = np.random.default_rng([seed, 0]).random((n_hidden, len(usable)))
    order[:, ~usable] = np.inf
    seen = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(seen, np.argpartition(order, units_see - 1, axis=1)[:, :units_see], True, axis=1)
    return seen


def _checked_metric(metric: Any, n_inputs: int) -> np.ndarray:
    """A factor for each input, or a matrix."""
    R = np.asarray(metric, dtype=np.float64)
    if R.shape not in ((n_inputs,), (n_inputs, n_inputs)) or not np.isfinite(R).all():
        raise ValueError(
            f"metric has the shape {R.shape}, but it needs {n_inputs} finite numbers, one for each input, or a matrix "
            f"of {n_inputs} × {n_inputs} of them."
        )
    return R


# ------------------------------------------------------------------------------
# Units from training rows.

_CANDIDATES = 10
"""Random pairs per unit, one of which it takes."""
_ATTEMPTS = 10
"""How often a unit looks for candidates with different targets before it takes any pair."""
# Nearer rows, in standard deviations, differ by rounding: a unit that tells them apart would be steeper than 1/√ε.
_SAME = EPS**0.5
# Columns of a metric with less deviation, where they have 1 on average, are constant.
_LEAST_DEVIATION = 1e-6
# The first inputs decide the order of rows; a sample comes sorted by hashes, which decide where these are equal.
_ORDERING_INPUTS = 64


def _sample_of(X: Any, y: Any, weight: Any) -> RowSample:
    """The rows that units may come from; a target that is not of floating-point numbers is taken as labels."""
    if y is not None and not on_device(y):
        y = np.asarray(y)
    labels = y is not None and y.ndim == 1 and not array_namespace(y).isdtype(y.dtype, "real floating")
    block = Block(X, y, weight)
    if y is not None:
        check_lengths(X.shape[0], y=y)
        block = replace(block, y=check_labels(block) if labels else check_numbers(block))
    return RowSample.of(block, SAMPLE_ROWS, weight, labels=labels)


@dataclass(frozen=True, slots=True, eq=False)
class _ScaledRows:
    """Sampled rows in scaled inputs, sorted, and the same standardised or times a metric."""

    X: Any
    offset: np.ndarray
    """What must be subtracted from sparse rows, which are not shifted, so that they stay sparse."""
    U: Any
    measure: np.ndarray
    """What scaled inputs are multiplied by to give U: a factor for each, 0 for a constant one, or a matrix."""
    n_varied: int
    """How many inputs are not constant."""
    usable: np.ndarray
    """Which columns of U are not constant."""
    y: np.ndarray | None
    weight: np.ndarray
    labels: bool

    @classmethod
    def of(
        cls,
        sample: RowSample,
        center: np.ndarray,
        scale: np.ndarray,
        squash: np.ndarray | None,
        metric: np.ndarray | None,
        weight_init: str,
        eps: float,
    ) -> _ScaledRows:
        """Scale, sort and standardise; `eps` is the rounding of the inputs, and `weight_init` is for the message."""
        stays_sparse = sparse.issparse(sample.X) and squash is None
        if stays_sparse:
            X = sample.X.multiply(scale).tocsr()
        else:
            X = sample.X.toarray() if sparse.issparse(sample.X) else sample.X
            X = (X - center) * scale
            X = X if squash is None else squashed(X, squash)
        order = _order(X, sample)
        X = X[order]
        y = None if sample.y is None else sample.y[order]
        weight = sample.weight[order]
        U, inverse_std = standardized(X, weight, eps)
        if not inverse_std.any():
            raise ValueError(
                f"weight_init={weight_init!r} takes units from training rows with different inputs, but "
                f"{'only one sample is' if X.shape[0] else 'no row of positive weight is'} left when equal rows count "
                "once (of a stream, the first block is taken): give rows that differ, or use weight_init='uniform'."
            )
        offset = center * scale if stays_sparse else np.zeros(X.shape[1])
        measure = inverse_std
        usable = inverse_std > 0.0
        n_varied = int(np.count_nonzero(usable))
        if metric is not None:
            U, measure, usable = _in_metric(X, weight, inverse_std, metric)
        return cls(X, offset, U, measure, n_varied, usable, y, weight, sample.labels)

    def dense(self, rows: np.ndarray) -> np.ndarray:
        """Some rows by number, in scaled inputs."""
        X = self.X[rows]
        return X.toarray() - self.offset if sparse.issparse(X) else X


def _in_metric(
    X: Any, weight: np.ndarray, inverse_std: np.ndarray, metric: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray]:
    """XR with as much variance as the standardised inputs have, what X is multiplied by, and which columns vary."""
    varies = inverse_std > 0.0
    share = weight / weight.sum()
    if metric.ndim == 1 and sparse.issparse(X):
        R = np.where(varies, metric, 0.0)
        variances = (R / np.where(varies, inverse_std, 1.0)) ** 2
        Q = X.multiply(R).tocsr()
    else:
        R = np.where(varies, metric, 0.0) if metric.ndim == 1 else np.where(varies[:, None], metric, 0.0)
        Q = X * R if metric.ndim == 1 else X @ R
        Q = Q - share @ Q
        variances = share @ Q**2
    if not variances.sum() > 0.0:
        raise ValueError("The metric is 0 for all inputs that vary: no row would differ from another.")
    factor = math.sqrt(np.count_nonzero(varies) / variances.sum())
    return Q * factor, R * factor, np.sqrt(variances) * factor > _LEAST_DEVIATION


def _order(X: Any, sample: RowSample) -> np.ndarray:
    """The rows sorted by their inputs, then by their targets: the same order after a change of units."""
    n_rows, n_inputs = X.shape
    rank = np.zeros(n_rows, dtype=np.intp)
    columns = X[:, :_ORDERING_INPUTS].toarray() if sparse.issparse(X) else X[:, :_ORDERING_INPUTS]
    targets = (
        () if sample.y is None or n_inputs > _ORDERING_INPUTS else sample.y.T if sample.y.ndim == 2 else (sample.y,)
    )
    for values in (*columns.T, *targets):
        if n_rows <= 1 + rank.max(initial=0):
            break
        codes = np.unique(values, return_inverse=True)[1]
        rank = np.unique(rank * n_rows + codes, return_inverse=True)[1]
    return np.argsort(rank, kind="stable")


def _units_from_pairs(
    rows: _ScaledRows, activation: Activation, factor: float, n_units: int, seed: int, units_see: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Weights (units × inputs), biases, and the metric of radial units; arguments are `factor` times the levels."""
    seen = None if units_see is None else _seen_inputs(seed, n_units, units_see, rows.usable)
    target_distances = _target_distances(rows.y, rows.weight, labels=rows.labels)
    first, second = _chosen_pairs(rows.U, seen, target_distances, n_units, seed).T
    difference = _differences(rows.U, seen, second, first, np.arange(n_units))
    difference = difference.toarray() if sparse.issparse(difference) else difference
    squared = row_norms(difference, squared=True)
    x1 = rows.dense(first)
    low, high = activation.levels
    if activation.radial:
        widths = factor**2 / squared if activation.power == 2 else factor / np.sqrt(squared)
        return x1, -high * widths, rows.measure
    # Weights of the columns of U, as weights of the scaled inputs.
    directions = difference / squared[:, None]
    directions = directions * rows.measure if rows.measure.ndim == 1 else directions @ rows.measure.T
    weights = factor * (high - low) * directions
    return weights, factor * low - np.sum(weights * x1, axis=1), None


def _units_on_rows(
    rows: _ScaledRows, activation: Activation, factor: float, n_units: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres, biases and metric of units exp(−factor²·‖u − c‖²/d), d the number of inputs that vary, or its root.

    The centres are training rows in random order. Rows come twice only if there are fewer than units.
    """
    n_rows = rows.X.shape[0]
    rounds = [np.random.default_rng([seed, i]).permutation(n_rows) for i in range(-(-n_units // n_rows))]
    centers = rows.dense(np.concatenate(rounds)[:n_units])
    d = rows.n_varied
    width = factor**2 / d if activation.power == 2 else factor / math.sqrt(d)
    return centers, np.full(n_units, width), rows.measure


def _chosen_pairs(
    U: Any,
    seen: np.ndarray | None,
    target_distances: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
    n_units: int,
    seed: int,
) -> np.ndarray:
    """Two numbers of rows per unit, drawn from its candidates with probability ∝ ‖Δy‖/‖Δx‖, or 1/‖Δx‖ without targets.

    A unit that found no candidates with different targets in all attempts but the last takes near ones of any targets;
    one whose candidates are all equal rows takes any row that differs.
    """
    n_rows = U.shape[0]
    chosen = np.zeros((n_units, 2), dtype=np.intp)
    waiting = np.arange(n_units)
    random = pairs = np.empty(0)
    for attempt in range(1, _ATTEMPTS + 1):
        # One row per unit, so that a unit's numbers depend neither on other units nor on how many there are.
        random = np.random.default_rng([seed, attempt]).random((n_units, _CANDIDATES, 3))[waiting]
        pairs = np.minimum((random[:, :, :2] * n_rows).astype(np.intp), n_rows - 1)
        distance = _input_distances(U, seen, pairs, waiting)
        differ = distance > _SAME
        rate = np.where(differ, 1.0, 0.0) / np.where(differ, distance, 1.0)
        if target_distances is not None and attempt < _ATTEMPTS:
            rate *= target_distances(pairs[:, :, 0], pairs[:, :, 1])
        possible = rate > 0.0
        exponential = np.where(possible, -np.log1p(-random[:, :, 2]) / np.where(possible, rate, 1.0), np.inf)
        best = np.argmin(exponential, axis=1)
        found = possible.any(axis=1)
        chosen[waiting[found]] = pairs[found, best[found]]
        pairs = pairs[~found]
        random = random[~found]
        waiting = waiting[~found]
        if not len(waiting):
            return chosen
    for unit, (first, _), number in zip(waiting, pairs[:, 0], random[:, 0, 2], strict=True):
        # Standardised rows differ from any one of them by at least 1 in the mean square, so others are found.
        all_rows = np.stack([np.full(n_rows, first), np.arange(n_rows)], axis=1)
        others = np.flatnonzero(_input_distances(U, seen, all_rows[None], np.array([unit]))[0] > _SAME)
        chosen[unit] = first, others[int(number * len(others))]
    return chosen


def _input_distances(U: Any, seen: np.ndarray | None, pairs: np.ndarray, units: np.ndarray) -> np.ndarray:
    """‖u_a − u_b‖ for the pairs, units × candidates × 2, of some units."""
    n_units, n_pairs, _ = pairs.shape
    distances = np.empty((n_units, n_pairs))
    for part in slices_of(n_units, n_pairs * U.shape[1]):
        a, b = pairs[part].reshape(-1, 2).T
        D = _differences(U, seen, a, b, np.repeat(units[part], n_pairs))
        distances[part] = row_norms(D).reshape(-1, n_pairs)
    return distances


def _differences(U: Any, seen: np.ndarray | None, a: np.ndarray, b: np.ndarray, units: np.ndarray) -> Any:
    """u_a − u_b for rows by number, in the inputs that the given units see."""
    D = U[a] - U[b]
    if seen is None:
        return D
    return D.multiply(seen[units]).tocsr() if sparse.issparse(D) else D * seen[units]


def _target_distances(
    y: np.ndarray | None, weight: np.ndarray, *, labels: bool
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """‖Δy‖ after division of each target by its standard deviation; 0 or 1 for labels; None if all are equal."""
    if y is None:
        return None
    if labels:
        codes = np.unique(y, return_inverse=True)[1]
        return (lambda a, b: (codes[a] != codes[b]).astype(np.float64)) if codes.any() else None
    T = y.reshape(len(y), -1).astype(np.float64)
    T = T / np.maximum(np.abs(T).max(axis=0), np.finfo(np.float64).tiny)  # so that no square overflows
    T, inverse_std = standardized(T, weight, EPS)
    return (lambda a, b: np.linalg.norm(T[a] - T[b], axis=-1)) if inverse_std.any() else None


# ------------------------------------------------------------------------------


class RandomLayer(TransformerMixin, Estimator):
    """A hidden layer whose input weights are drawn once and never trained.

    Parameters
    ----------
    n_hidden : int, default=200
        Number of hidden units M.
    activation : str or callable, default="sigmoid"
        "sigmoid", "tanh", "relu", "sin", "gaussian" (exp(−|b|·‖x − c‖²) about random centres c), "laplace"
        (exp(−|b|·‖x − c‖)), "hardlimit", "identity", or a function of an array that acts on each entry by itself.
    input_scaling : "minmax", "squash", (low, high) or None, default="minmax"
        "minmax" brings each input to [−1, 1] by its range over the rows of positive weight; `(low, high)`,
        numbers or one per input, gives that range; None leaves inputs alone. "squash" divides the distance from the
        median by half that of the quartiles, bends it with z/√(1 + (z/3)²), so that nothing lies beyond ±3, and
        standardises the result: a few absurd values change nothing for other rows. Constant inputs become 0.
    weight_init : {"uniform", "normal", "orthogonal", "pairs", "rows", "trees"}, default="uniform"
        Distribution of weights and biases: U(−1, 1), N(0, 1), or directions orthonormal in groups of as many
        units as there are inputs, with U(−1, 1) biases. "pairs" takes each unit from two training rows [1]_, "rows"
        centres "gaussian" or "laplace" units on single ones, and "trees" makes units of the leaves of trees; see the
        notes.
    weight_scale : float or "inverse_sqrt", default=1.0
        Factor on weights and biases; "inverse_sqrt" is 1/√M. It divides the width of radial units from rows.
    bias_range : (low, high) or None, default=None
        Biases U(low, high) before `weight_scale`, such as (0, 1); None leaves their distribution to `weight_init`.
        Not for "pairs", "rows" and "trees".
    units_see : int, default=None
        How many inputs each unit sees, chosen at random among those that are not constant; None, or a number that
        is as large, means all. Not for "orthogonal" weights and "trees", and not for "gaussian" and "laplace" units.
    direct_link : bool, default=False
        Whether to put the scaled inputs in front of the hidden units.
    random_state : int, RandomState, Generator or None, default=None
        Seed. Each unit draws its weights and bias together, so with one seed the first m units of a layer of M
        are the layer of m (but for "orthogonal" and "inverse_sqrt").

    Attributes
    ----------
    weights_ : ndarray of shape (n_features_in_, n_hidden)
        C of H = φ(XC + b), acting on the scaled inputs. Leaves of trees have none: there are no columns then.
    biases_ : ndarray of shape (n_hidden,)
        b.
    center_, scale_ : ndarray of shape (n_features_in_,)
        The scaled input is (x − center_)·scale_; with "squash", that is z.
    map_ : HiddenMap
        The fitted layer as a pure function of arrays.

    Notes
    -----
    With `weight_init="pairs"` a unit belongs to two training rows x₁ and x₂, and changes from the one to the other:
    tanh is −½ at x₁ and ½ at x₂, sigmoid ¼ and ¾, sin and identity −½ and ½, relu and hardlimit 0 and 1; a function of
    your own gets −1 and 1. `weight_scale` multiplies the arguments. A radial unit is 1 at x₁ and ½ as far away as x₂.
    Each unit chooses its pair among ten random ones with probability proportional to ‖y₂ − y₁‖/‖x₂ − x₁‖, so steep
    parts of the target get more units. Distances are those of standardised inputs; `input_scaling` scales what
    `weights_` and the direct link see. Targets are divided by their standard deviations; labels differ by 0 or 1. `fit`
    takes floating-point targets as numbers and others as labels; without targets it only prefers near rows.

    With `weight_init="rows"` units are centred on training rows in random order: exp(−`weight_scale`²·‖u − c‖²/d) for
    "gaussian", exp(−`weight_scale`·‖u − c‖/√d) for "laplace", in standardised inputs u, where d is the number of inputs
    that vary. A Laplace unit has a cone at its centre, so the model follows single rows more closely and is continuous
    but not smooth there: it has no derivative at a centre.

    With `weight_init="trees"` a unit is 1 for the rows that end in a leaf of a tree, and 0 for others. The trees are by
    turns extremely randomized [2]_ and of best thresholds among half of the inputs. They divide the scaled inputs, and
    explain all targets together, each tree what those before it left, as in boosting. They have at most 24 leaves of at
    least 3 rows each, one of which is no unit, because the leaves of a tree add up to one. There are as many trees as
    `n_hidden` leaves need. Such units have no activation, weights, biases or `weight_scale`: these parameters stay at
    their defaults, which are ignored. Their derivative is 0. The leaves know the targets of their rows, so networks
    grow them anew without each fold before rules judge them on it.

    These rows, and the quantiles of "squash", come from at most 10,000 distinct rows of positive weight, chosen by a
    hash of what they hold. So the order of the rows does not matter, and a weight equals repetition. Rules that hold
    rows out keep the layer fixed, and pairs were chosen by the targets of all rows, so their errors are a little too
    small.

    References
    ----------
    .. [1] Bolager, Burak, Datar, Sun, Dietrich, "Sampling weights of deep neural networks", NeurIPS (2023).
    .. [2] Geurts, Ernst, Wehenkel, "Extremely randomized trees", Machine Learning 63 (2006).

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
            Targets; only `weight_init="pairs"` and "trees" look at them.
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
            targets = y if self.weight_init in FROM_ROWS else None
            sample = _sample_of(X, targets, weight) if needs_sample(self) else None
            self.draw(X.shape[1], X.dtype, observed, sample)
            self.map_ = self.map_.to_device_of(X)  # drawn on the host, so that a seed gives one layer on every device
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

        def worker(block_size: int) -> Callable[[slice], None]:
            workspace = np.empty((block_size, n_outputs))

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
        units = [f"randomlayer{i}" for i in range(self.map_.n_units)]
        return np.asarray([*(inputs if self.map_.direct_link else []), *units], dtype=object)

    def take(self, units: Any) -> RandomLayer:
        """The fitted layer of some units; the first m are what a layer of m with this seed would have drawn."""
        part = copy(self)
        part.map_ = self.map_.take(units)
        return part.set_params(n_hidden=part.map_.n_units)

    def _with_map(self, change: Callable[[HiddenMap], HiddenMap]) -> RandomLayer:
        """The same layer in another precision or place."""
        changed = copy(self)
        changed.map_ = change(self.map_)
        return changed

    def draw(
        self,
        n_inputs: int,
        dtype: Any,
        observed: Range | None = None,
        sample: RowSample | None = None,
        metric: np.ndarray | None = None,
    ) -> RandomLayer:
        """Fit to checked inputs of this number and type: "minmax" needs their range, "pairs" a sample of rows.

        "squash" needs both. With a metric, a factor for each input or a matrix, the units see scaled inputs times it.
        """
        eps = rounding_of(dtype)
        given = None if metric is None else _checked_metric(metric, n_inputs)
        squash = None
        if _squashes(self):
            assert sample is not None
            assert observed is not None
            center, scale, squash = to_squash(sample, observed, eps)
        else:
            center, scale = to_unit_interval(*range_to_scale(self.input_scaling, n_inputs, observed), eps)
        activation = _activation_of(self.activation)
        factor = _weight_factor(self.weight_scale, self.n_hidden)
        rng = random_numbers(self.random_state)
        trees = None
        if self.weight_init in FROM_ROWS:
            assert sample is not None
            # One number from the user's generator; the numbers of each unit follow from it and the unit's place.
            seed = int(rng.randint(2**31 - 1))
            rows = _ScaledRows.of(sample, center, scale, squash, given, self.weight_init, eps)
            if self.weight_init == "trees":
                X = rows.dense(np.arange(rows.X.shape[0]))
                metric = None
                if given is not None and given.ndim == 2:  # factors would change no division
                    metric = rows.measure
                    X = X @ metric
                trees = grown(X, rows.y, rows.weight, labels=rows.labels, n_units=self.n_hidden, seed=seed)
                activation = ACTIVATIONS["identity"]
                weights = np.empty((0, n_inputs))
                biases = np.empty(0)
            elif self.weight_init == "rows":
                weights, biases, metric = _units_on_rows(rows, activation, factor, self.n_hidden, seed)
            else:
                weights, biases, metric = _units_from_pairs(
                    rows, activation, factor, self.n_hidden, seed, self.units_see
                )
        else:
            units = factor * self._random_units(rng, scale > 0.0, given)
            weights = units[:, :-1]
            metric = given
            if given is not None and not activation.radial:
                weights = weights * given if given.ndim == 1 else weights @ given.T
                metric = None
            biases = units[:, -1].copy()
        weights = np.ascontiguousarray(weights.T)
        link = bool(self.direct_link)
        self.map_ = HiddenMap(weights, biases, center, scale, activation, link, metric, squash, trees)
        return self

    def _random_units(self, rng: np.random.RandomState, varies: np.ndarray, metric: np.ndarray | None) -> np.ndarray:
        """Units that do not depend on the rows, before they are scaled: weights and bias in one row each."""
        # A seed from a copy, so that units that see some inputs have the weights of units that see all.
        seed = 0 if self.units_see is None else int(deepcopy(rng).randint(2**31 - 1))
        # One row per unit, its weights and its bias together: the first m units of a layer of M are the layer of m.
        size = self.n_hidden, len(varies) + 1
        if self.weight_init == "orthogonal":
            units = _orthogonal(rng, len(varies), self.n_hidden)
        else:
            units = rng.standard_normal(size) if self.weight_init == "normal" else rng.uniform(-1.0, 1.0, size)
        if self.bias_range is not None:  # what was drawn U(−1, 1) or N(0, 1) becomes U(low, high)
            low, high = _ends_of(self.bias_range)
            share = ndtr(units[:, -1]) if self.weight_init == "normal" else (units[:, -1] + 1.0) / 2.0
            units[:, -1] = low + (high - low) * share
        if self.units_see is not None:
            usable = varies  # columns of scaled inputs times the metric that are not constant
            if metric is not None:
                usable = varies & (metric != 0.0) if metric.ndim == 1 else (metric[varies] != 0.0).any(axis=0)
            units[:, :-1] *= _seen_inputs(seed, self.n_hidden, self.units_see, usable)
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
        """The mid-range of each input, or its median."""
        return self.map_.center

    @property
    def scale_(self) -> np.ndarray:
        """The factor that brings each centred input to [−1, 1], or divides it by half the distance of the quartiles."""
        return self.map_.scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class JoinedLayers:
    """Drawn layers next to each other: the hidden part of a stack of networks."""

    def __init__(self, layers: tuple[RandomLayer, ...]) -> None:
        self.layers = layers

    @property
    def map_(self) -> JoinedMap:
        """All layers as one function of the inputs."""
        return JoinedMap(tuple(layer.map_ for layer in self.layers))

    @property
    def center_(self) -> np.ndarray:
        """The middle of each input, as the first layer sees it."""
        return self.layers[0].center_

    def _with_map(self, change: Callable[[HiddenMap], HiddenMap]) -> JoinedLayers:
        """The same layers in another precision or place."""
        return JoinedLayers(tuple(layer._with_map(change) for layer in self.layers))
