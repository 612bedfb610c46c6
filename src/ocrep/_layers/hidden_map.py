"""`HiddenMap`: from inputs to features, H = φ(XC + b) or [X | H], as a pure function of arrays.

A drawn layer is three steps, each with its own arrays: the scaling x ↦ (x − center)·scale, which may be squashed
(`columns.py`); what φ is applied to, XC + b or, for radial units with centres c, −|b|·‖(x − c)R‖² or −|b|·‖(x − c)R‖
with a metric R, diagonal or full; and φ itself (`activations.py`). Leaves of trees (`trees.py`) take the place of the
last two. With a direct link, the scaled inputs come first: [X | H]. For XC + b a metric is part of C, (XR)C = X(RC):
that costs no digits, since the rounding of both is bounded by ε|X||R||C|.

Digits and cost:

- The mid-range is subtracted before anything else. Folding the scaling into C and b, as C·scale and b − C·center·scale,
  would cancel the leading digits of a column like 10⁴ ± 1. Only sparse rows are folded, column by column, and only
  columns whose range is not far from zero: so they stay sparse. Squashed zeros are not zero: such rows become dense.
- ‖x − c‖² is ‖x‖² − 2x·c + ‖c‖², one matrix product instead of n·M differences. The squares cancel where the centres
  lie far from the origin: so units with a metric take x and c relative to the mean of the centres. A negative result is
  rounding, and is set to 0. Where the root is taken, δ(‖x‖² + ‖c‖²) is subtracted first, δ = (p + 8)·ε a bound on the
  rounding of p products: so the distance of a row from itself is 0, and not √ε.
- Gradients of H(x)·w with respect to x: for XC + b they are (φ'(XC + b) ∘ w)Cᵀ. For radial units, in q = xR, they are
  Σⱼ aⱼ(q − cⱼ) = q·Σⱼaⱼ − Cₐ with Cₐ = aCᵀ, aⱼ = −2|bⱼ|wⱼHⱼ or, without the square, −|bⱼ|wⱼHⱼ/‖q − cⱼ‖, times Rᵀ. So no
  array of n·M·p numbers is needed. At a centre the cone of a Laplace unit has no derivative: the mean over all
  directions is taken, which is 0. The chain rule multiplies by the slope of the scaling.
- H costs n·p·M multiplications and n·M evaluations of φ. On the host it is computed in memory that the caller gives,
  the biases as one more row of C, because the allocation of new memory costs more than a tanh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._documentation import shown_in_short
from ocrep._layers.activations import Activation, overwritten
from ocrep._layers.columns import rounding_of, squashed, squashed_slope, unsquashed
from ocrep._layers.trees import Trees
from ocrep._linalg.arrays import Array, array_namespace, as_columns, as_float64, device_of, to_device_of, to_host
from ocrep._linalg.parallel import slices_of

# How far a scaled column's zero may lie from its mid-range, where the range is [−1, 1], for the column to be folded.
_FAR = 2.0
_ARRAYS = ("weights", "biases", "center", "scale", "metric", "squash")


@dataclass(frozen=True, eq=False, repr=False)
class HiddenMap:
    """X ↦ H or [X | H], a pure function of arrays; X is the scaled input, (x − center)·scale or that squashed."""

    weights: Array
    biases: Array
    center: Array
    scale: Array
    activation: Activation
    direct_link: bool
    metric: Array | None = None
    """For radial units, what scaled inputs are multiplied by before distances are taken, and for trees before they are
    divided: a factor for each, or a matrix; None leaves them alone. Other units have it in their weights."""
    squash: Array | None = None
    """For squashed inputs, their means and inverse deviations, two rows; None for inputs that are not squashed."""
    trees: Trees | None = None
    """Trees whose leaves are the units; these have neither weights nor biases."""

    __repr__ = shown_in_short

    def __call__(self, X: Any, out: np.ndarray | None = None) -> Array:
        """Apply to a dense array of any library, or to a SciPy sparse matrix.

        On the host the result may be given a place, `out` of at least as many rows: new memory costs more than a tanh.
        """
        if sparse.issparse(X):
            stays_sparse = self.squash is None and self.trees is None
            if stays_sparse and not (self.direct_link or self.activation.radial):
                return self._activate(self._sparse_arguments(X))
            X = X.toarray()
        if self.activation.built_in and isinstance(self.weights, np.ndarray):
            return self._in_place(np.asarray(X), out)
        xp = array_namespace(self.weights)
        scaled = self.scaled(X)
        X = xp.astype(scaled, self.weights.dtype, copy=False)
        if self.trees is not None:
            H = xp.astype(self.trees(self.measured(scaled)), X.dtype)
        else:
            inputs = self.measured(X)
            H = self._activate(self._arguments(inputs, xp.matmul(inputs, self.centers)))
        return xp.concat([X, H], axis=1) if self.direct_link else H

    def scaled(self, X: Any) -> Array:
        """The inputs as units and the direct link see them, in float64."""
        X = (as_float64(X) - self.center) * self.scale
        return X if self.squash is None else squashed(X, self.squash)

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """The inputs, on the host, that `scaled` turns into x; of a constant input, its value."""
        center, scale = to_host(self.center), to_host(self.scale)
        if self.squash is not None:
            x = unsquashed(x, to_host(self.squash))
        return center + np.divide(x, scale, out=np.zeros(np.broadcast(x, scale).shape), where=scale > 0.0)

    def middle(self) -> np.ndarray:
        """The row whose scaled inputs are 0: the middle of each range, or the mean of squashed inputs."""
        return self.unscaled(np.zeros(self.center.shape[0]))

    def to_host(self) -> HiddenMap:
        """The same map in float64 arrays of NumPy."""
        if isinstance(self.weights, np.ndarray) and self.weights.dtype == np.float64:
            return self
        moved = self._with_arrays(_ARRAYS, lambda array: to_host(array).astype(np.float64, copy=False))
        return moved if self.trees is None else replace(moved, trees=self.trees.to_host())

    def _in_place(self, X: np.ndarray, out: np.ndarray | None) -> np.ndarray:
        n_inputs = self.weights.shape[0]
        first = n_inputs if self.direct_link else 0
        if out is None:
            out = np.empty((X.shape[0], first + self.n_units), dtype=self.weights.dtype)
        # The biases as one more input: the product adds them at no cost.
        inputs = np.empty((X.shape[0], n_inputs + 1))
        inputs[:, n_inputs] = 1.0
        x = inputs[:, :n_inputs]
        if self.squash is None:
            np.subtract(X, self.center, out=x)
            x *= self.scale
        else:
            x[...] = self.scaled(X)
        H = out[: X.shape[0]]
        H[:, :first] = x[:, :first]
        Z = H[:, first:]
        if self.trees is not None:
            Z[...] = self.trees(self.measured(x))
            return H
        inputs = inputs.astype(self.weights.dtype, copy=False)
        x = inputs[:, :n_inputs]
        if self.activation.radial:
            x = self.measured(x)
            self._arguments(x, np.matmul(x, self.centers, out=Z))
        else:
            np.matmul(inputs, self._with_biases, out=Z)
        activated = self._activate(Z)
        if activated is not Z:
            Z[...] = activated
        return H

    def astype(self, dtype: Any) -> HiddenMap:
        """The same map computed in another precision; the input is still centred in float64."""
        xp = array_namespace(self.weights)
        # Trees compare in float64, whatever the precision of the map.
        names = ("weights", "biases", "metric") if self.trees is None else ("weights", "biases")
        return self._with_arrays(names, lambda array: xp.astype(array, dtype))

    def to_device_of(self, X: Any) -> HiddenMap:
        """The same map in the library and on the device of X."""
        moved = self._with_arrays(_ARRAYS, partial(to_device_of, X))
        return moved if self.trees is None else replace(moved, trees=self.trees.to_device_of(X))

    def arrays(self) -> list[Array]:
        """All arrays that decide what the map computes."""
        own = [array for name in _ARRAYS if (array := getattr(self, name)) is not None]
        return own if self.trees is None else [*own, *self.trees.arrays().values()]

    def _with_arrays(self, names: tuple[str, ...], change: Callable[[Array], Array]) -> HiddenMap:
        arrays = {name: getattr(self, name) for name in names}
        return replace(self, **{name: change(array) for name, array in arrays.items() if array is not None})

    @property
    def n_units(self) -> int:
        """Columns of H."""
        return self.weights.shape[1] if self.trees is None else self.trees.n_units

    @property
    def n_features(self) -> int:
        """Columns of [X | H] with a direct link, else of H."""
        return self.n_units + (self.weights.shape[0] if self.direct_link else 0)

    def take(self, units: Any) -> HiddenMap:
        """The map of some units only."""
        if self.trees is not None:
            return replace(self, trees=self.trees.take(units))
        return replace(self, weights=self.weights[:, units], biases=self.biases[units])

    def _sparse_arguments(self, X: Any) -> np.ndarray:
        """What φ is applied to, of rows that stay sparse but for columns far from zero, in which nothing is zero."""
        weights, biases = self._folded
        Z: np.ndarray = np.asarray(X @ weights) + biases
        if self._far.size:
            far = self._far
            x = (X[:, far].toarray() - self.center[far]) * self.scale[far]
            Z += (self.activation.argument * x) @ self.weights[far]
        return Z

    @cached_property
    def _far(self) -> np.ndarray:
        """Columns whose range lies further from zero than it is wide: folding would lose their digits."""
        return np.flatnonzero(np.abs(self.center * self.scale) > _FAR)

    @cached_property
    def _folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases with the scaling in them, so that X can stay sparse."""
        factor = self.activation.argument
        center = self.center.copy()
        scale = self.scale.copy()
        center[self._far] = scale[self._far] = 0.0
        return factor * scale[:, None] * self.weights, factor * (self.biases - (center * scale) @ self.weights)

    @cached_property
    def origin(self) -> Array:
        """The mean of the centres: about it, the squares of distances keep their digits."""
        return array_namespace(self.weights).mean(self.weights, axis=1)

    def measured(self, X: Array) -> Array:
        """Scaled inputs as radial units and trees measure them: times the metric, for radial units about the origin."""
        if self.metric is None:
            return X
        X = X if self.trees is not None else X - self.origin
        return X * self.metric if self.metric.ndim == 1 else array_namespace(X).matmul(X, self.metric)

    @cached_property
    def centers(self) -> Array:
        """C as radial units measure it."""
        if self.metric is None:
            return self.weights
        shifted = self.weights - self.origin[:, None]
        if self.metric.ndim == 1:
            return shifted * self.metric[:, None]
        xp = array_namespace(shifted)
        return xp.matmul(xp.matrix_transpose(self.metric), shifted)

    @property
    def slack(self) -> float:
        """δ: what share of ‖x‖² + ‖c‖² is rounding and subtracted from squared distances before a root is taken."""
        if self.activation.power == 2:
            return 0.0
        return (self.weights.shape[0] + 8) * rounding_of(self.weights.dtype)

    @cached_property
    def _with_biases(self) -> np.ndarray:
        """C above b, times the factor on φ's argument."""
        return self.activation.argument * np.vstack([self.weights, self.biases])

    def __getstate__(self) -> dict[str, Any]:
        # Without the cached arrays: they can be computed again, and would double a model file.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _arguments(self, X: Array, products: Array) -> Array:
        """What φ is applied to: XC + b, or −|b|·‖x − c‖² from ‖x‖² − 2x·c + ‖c‖², or minus |b| times its root."""
        if not self.activation.radial:
            products += self.biases
            products *= self.activation.argument
            return products
        distances = self._distances(X, products)
        distances *= -array_namespace(X).abs(self.biases)
        return distances

    def _distances(self, X: Array, products: Array) -> Array:
        """‖x − c‖² or, for Laplace units, ‖x − c‖, from the products x·c, which are overwritten."""
        xp = array_namespace(X)
        products *= -2.0
        keep = 1.0 - self.slack
        products += keep * xp.sum(X * X, axis=1)[:, None]
        products += keep * xp.sum(self.centers * self.centers, axis=0)
        # Rounding must not make a squared distance negative.
        products = overwritten("maximum", products, xp.zeros((), dtype=products.dtype, device=device_of(products)))
        return products if self.activation.power == 2 else overwritten("sqrt", products)

    def gradients(self, X: Any, W: Array, *, scaled: bool = False) -> Array:
        """∂(H(x)W)/∂x for each row: an array of rows × inputs × outputs in float64.

        W has a row for each feature, those of a direct link included. With `scaled` the derivatives are those with
        respect to the scaled inputs. Leaves and "hardlimit" units are constant between their jumps: their part is 0
        (`paths.leaf_slopes` gives differences in place of it).
        """
        xp = array_namespace(self.weights)
        X = as_float64(X.toarray() if sparse.issparse(X) else X)
        W = as_columns(W)
        if W.shape[0] != self.n_features:
            raise ValueError(
                f"W has {W.shape[0]} rows, but the layer has {self.n_features} features: it needs one for each."
            )
        exact = self if self.weights.dtype == xp.float64 else self.astype(xp.float64)
        n_rows, n_inputs = X.shape
        parts = slices_of(n_rows, 2 * self.n_units + n_inputs * W.shape[1])
        found = [exact._gradients_of(X[part, ...], W, scaled) for part in parts]
        nothing = xp.zeros((0, n_inputs, W.shape[1]), dtype=xp.float64, device=device_of(self.weights))
        return xp.concat(found or [nothing], axis=0)

    def _gradients_of(self, X: Array, W: Array, scaled: bool) -> Array:
        xp = array_namespace(X)
        Z = (X - self.center) * self.scale
        x = Z if self.squash is None else squashed(Z, self.squash)
        n_linked = self.weights.shape[0] if self.direct_link else 0
        if self.trees is not None:
            G = xp.zeros((*X.shape, W.shape[1]), dtype=X.dtype, device=device_of(X))
        else:
            G = self._unit_gradients(x, W[n_linked:, ...])
        if self.direct_link:
            G = G + W[:n_linked, ...]
        if scaled:
            return G
        slope = self.scale + xp.zeros_like(Z) if self.squash is None else squashed_slope(Z, self.squash) * self.scale
        return G * slope[:, :, None]

    def _unit_gradients(self, x: Array, W: Array) -> Array:
        """∂(φ(x)W)/∂x of scaled inputs, one product for each output."""
        xp = array_namespace(x)
        q = self.measured(x)
        products = xp.matmul(q, self.centers)
        if not self.activation.radial:
            products += self.biases
            factors = self.activation.slope(products)
        else:
            distances = self._distances(q, products)
            b = xp.abs(self.biases)
            factors = -b * xp.exp(-b * distances)
            if self.activation.power == 2:
                factors *= 2.0
            else:
                away = distances > 0.0
                factors = xp.where(away, factors, xp.zeros_like(factors)) / xp.where(
                    away, distances, xp.ones_like(factors)
                )
        C = xp.matrix_transpose(self.centers)
        gradients = []
        for output in range(W.shape[1]):
            weighted = factors * W[:, output]
            g = xp.matmul(weighted, C)
            if self.activation.radial:
                g = q * xp.sum(weighted, axis=1)[:, None] - g
            if self.metric is not None:
                g = g * self.metric if self.metric.ndim == 1 else xp.matmul(g, xp.matrix_transpose(self.metric))
            gradients.append(g)
        return xp.stack(gradients, axis=2)

    def _activate(self, Z: Array) -> Array:
        shape = Z.shape
        H = self.activation.function(Z)
        if getattr(H, "shape", None) != shape:
            raise ValueError(
                f"The activation must turn an array of shape {shape} into another of that shape, acting on each entry "
                f"by itself; it gave {getattr(H, 'shape', type(H).__name__)}."
            )
        return H


@dataclass(frozen=True, eq=False, repr=False)
class JoinedMap:
    """The features of several maps next to each other, [H₁ | H₂ | …]: the layers of a stack of networks."""

    maps: tuple[HiddenMap, ...]

    __repr__ = shown_in_short

    def __call__(self, X: Any, out: np.ndarray | None = None) -> Array:
        """Apply to a dense array of any library, or to a SciPy sparse matrix; on the host in `out` if it is given."""
        first = self.maps[0].weights
        if not isinstance(first, np.ndarray):
            return array_namespace(first).concat([part(X) for part in self.maps], axis=1)
        if out is None:
            out = np.empty((X.shape[0], self.n_features), dtype=first.dtype)
        H = out[: X.shape[0]]
        for part, columns in zip(self.maps, self.columns, strict=True):
            place = H[:, columns]
            found = part(X, place)
            if not np.may_share_memory(found, place):  # sparse rows, and functions of the user's own
                place[...] = found
        return H

    @property
    def columns(self) -> list[slice]:
        """Which features are those of each map."""
        ends = np.cumsum([part.n_features for part in self.maps]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    @property
    def n_units(self) -> int:
        return sum(part.n_units for part in self.maps)

    @property
    def n_features(self) -> int:
        return sum(part.n_features for part in self.maps)
