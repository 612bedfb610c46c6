"""`HiddenMap`: from inputs to features, H = φ(XC + b) or [X | H], as a pure function of arrays.

A drawn layer is three steps, each with its own arrays: the scaling x ↦ (x − center)·scale, which may be squashed
(`columns.py`); what φ is applied to, XC + b or, for radial units with centres c, −|b|·‖D(x − c)‖² or −|b|·‖D(x − c)‖
with a diagonal metric D; and φ itself (`activations.py`). Leaves of trees (`trees.py`) take the place of the last two.
With a direct link, the scaled inputs come first: [X | H].

Digits and cost:

- The mid-range is subtracted before anything else. Folding the scaling into C and b, as C·scale and b − C·center·scale,
  would cancel the leading digits of a column like 10⁴ ± 1. Only sparse rows are folded, column by column, and only
  columns whose range is not far from zero: so they stay sparse. Squashed zeros are not zero: such rows become dense.
- ‖x − c‖² is ‖x‖² − 2x·c + ‖c‖², one matrix product instead of n·M differences. The squares cancel where the centres
  lie far from the origin: so units with a metric take x and c relative to the mean of the centres. A negative result is
  rounding, and is set to 0. Where the root is taken, δ(‖x‖² + ‖c‖²) is subtracted first, δ = (p + 8)·ε a bound on the
  rounding of p products: so the distance of a row from itself is 0, and not √ε.
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
from ocrep._layers.columns import rounding_of, squashed
from ocrep._layers.trees import Trees
from ocrep._linalg.arrays import Array, array_namespace, as_float64, device_of, to_device_of

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
    """For radial units, what each scaled input is multiplied by before distances are taken; None leaves them alone."""
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
            H = xp.astype(self.trees(scaled), X.dtype)
        else:
            inputs = self.measured(X)
            H = self._activate(self._arguments(inputs, xp.matmul(inputs, self.centers)))
        return xp.concat([X, H], axis=1) if self.direct_link else H

    def scaled(self, X: Any) -> Array:
        """The inputs as units and the direct link see them, in float64."""
        X = (as_float64(X) - self.center) * self.scale
        return X if self.squash is None else squashed(X, self.squash)

    def _in_place(self, X: np.ndarray, out: np.ndarray | None) -> np.ndarray:
        n_inputs = self.weights.shape[0]
        first = n_inputs if self.direct_link else 0
        if out is None:
            out = np.empty((X.shape[0], first + self.n_units), dtype=self.weights.dtype)
        # The biases as one more input: the product adds them at no cost.
        inputs = np.empty((X.shape[0], n_inputs + 1))
        inputs[:, n_inputs] = 1.0
        x = np.subtract(X, self.center, out=inputs[:, :n_inputs])
        x *= self.scale
        if self.squash is not None:
            x[...] = squashed(x, self.squash)
        H = out[: X.shape[0]]
        H[:, :first] = x[:, :first]
        Z = H[:, first:]
        if self.trees is not None:
            Z[...] = self.trees(x)
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
        return self._with_arrays(("weights", "biases", "metric"), lambda array: xp.astype(array, dtype))

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
        """Scaled inputs as radial units measure them."""
        return X if self.metric is None else (X - self.origin) * self.metric

    @cached_property
    def centers(self) -> Array:
        """C as radial units measure it."""
        return self.weights if self.metric is None else (self.weights - self.origin[:, None]) * self.metric[:, None]

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
        xp = array_namespace(X)
        products *= -2.0
        keep = 1.0 - self.slack
        products += keep * xp.sum(X * X, axis=1)[:, None]
        products += keep * xp.sum(self.centers * self.centers, axis=0)
        # Rounding must not make a squared distance negative.
        products = overwritten("maximum", products, xp.zeros((), dtype=products.dtype, device=device_of(products)))
        if self.activation.power == 1:
            products = overwritten("sqrt", products)
        products *= -xp.abs(self.biases)
        return products

    def _activate(self, Z: Array) -> Array:
        shape = Z.shape
        H = self.activation.function(Z)
        if getattr(H, "shape", None) != shape:
            raise ValueError(
                f"The activation must turn an array of shape {shape} into another of that shape, acting on each entry "
                f"by itself; it gave {getattr(H, 'shape', type(H).__name__)}."
            )
        return H
