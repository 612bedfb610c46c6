"""H = φ(XC + b) as a pure function of arrays, and the table of activations φ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ocrep.device_rows import beside
from ocrep.kernels import Array, array_namespace, as_float64, device_of, overwritten
from ocrep.threads import on_chunks


@dataclass(frozen=True, slots=True)
class Activation:
    """φ, and what it is applied to: XC + b, or −|b|·‖x − c‖² for radial units."""

    function: Callable[[Array], Array]
    radial: bool = False
    built_in: bool = False
    """Whether φ is one of ours: it may overwrite its argument, and run on several threads."""


def _sigmoid(Z: Array) -> Array:
    # 1/(1 + e⁻ᶻ) = (1 + tanh(z/2))/2: one library call that cannot overflow, exact to ε in absolute terms.
    Z *= 0.5
    Z = overwritten("tanh", Z)
    Z *= 0.5
    Z += 0.5
    return Z


def _tanh(Z: Array) -> Array:
    return overwritten("tanh", Z)


def _sin(Z: Array) -> Array:
    return overwritten("sin", Z)


def _exp(Z: Array) -> Array:
    return overwritten("exp", Z)


def _identity(Z: Array) -> Array:
    return Z


def _relu(Z: Array) -> Array:
    zero = array_namespace(Z).zeros((), dtype=Z.dtype, device=device_of(Z))
    return overwritten("maximum", Z, zero)


def _hardlimit(Z: Array) -> Array:
    return array_namespace(Z).astype(Z >= 0.0, Z.dtype)


# Named functions, not lambdas, so that fitted layers can be pickled.
ACTIVATIONS: dict[str, Activation] = {
    "sigmoid": Activation(_sigmoid, built_in=True),
    "tanh": Activation(_tanh, built_in=True),
    "relu": Activation(_relu, built_in=True),
    "sin": Activation(_sin, built_in=True),
    "gaussian": Activation(_exp, radial=True, built_in=True),
    "hardlimit": Activation(_hardlimit, built_in=True),
    "identity": Activation(_identity, built_in=True),
}


@dataclass(frozen=True, eq=False)
class HiddenMap:
    """X ↦ H or [X | H], a pure function of arrays; X is the scaled input (x − center)·scale."""

    weights: Array
    biases: Array
    center: Array
    scale: Array
    activation: Activation
    direct_link: bool

    def __call__(self, X: Any) -> Array:
        """Apply to a dense array of any library, or to a SciPy sparse matrix."""
        if sparse.issparse(X):
            if not (self.direct_link or self.activation.radial):
                weights, biases = self._folded
                return self._activate(np.asarray(X @ weights) + biases)
            X = X.toarray()
        if self.activation.built_in and isinstance(self.weights, np.ndarray):
            return self._by_chunks(np.asarray(X))
        X = self._scaled(X)
        xp = array_namespace(X)
        H = self._activate(self._arguments(X, xp.matmul(X, self.weights)))
        return xp.concat([X, H], axis=1) if self.direct_link else H

    def _scaled(self, X: Any) -> Array:
        # Subtracting the mid-range first keeps the digits that folding a column like 10⁴ ± 1 would lose.
        X = (as_float64(X) - self.center) * self.scale
        return array_namespace(X).astype(X, self.weights.dtype, copy=False)

    def _by_chunks(self, X: np.ndarray) -> np.ndarray:
        """Fill one array, a few rows at a time and all steps at once, so that they are done in the cache."""
        n_inputs, n_units = self.weights.shape
        first = n_inputs if self.direct_link else 0
        out = np.empty((X.shape[0], first + n_units), dtype=self.weights.dtype)

        def fill(chunk: slice) -> None:
            x, Z = self._scaled(X[chunk]), out[chunk, first:]
            out[chunk, :first] = x[:, :first]
            np.matmul(x, self.weights, out=Z)
            H = self._activate(self._arguments(x, Z))
            if H is not Z:
                Z[...] = H

        on_chunks(fill, X.shape[0], n_inputs + n_units)
        return out

    def astype(self, dtype: Any) -> HiddenMap:
        """The same map computed in another precision; the input is still centred in float64."""
        xp = array_namespace(self.weights)
        return replace(self, weights=xp.astype(self.weights, dtype), biases=xp.astype(self.biases, dtype))

    def beside(self, X: Any) -> HiddenMap:
        """The same map in the library and on the device of X."""
        arrays = {name: beside(getattr(self, name), X) for name in ("weights", "biases", "center", "scale")}
        return replace(self, **arrays)

    def take(self, units: Any) -> HiddenMap:
        """The map of some units, by a slice or an index."""
        return replace(self, weights=self.weights[:, units], biases=self.biases[units])

    @cached_property
    def _folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases with the scaling in them, so that X can stay sparse."""
        return self.scale[:, None] * self.weights, self.biases - (self.center * self.scale) @ self.weights

    def _arguments(self, X: Array, products: Array) -> Array:
        """What φ is applied to: XC + b, or −|b|·‖x − c‖² from ‖x‖² − 2x·c + ‖c‖²."""
        if not self.activation.radial:
            products += self.biases
            return products
        xp = array_namespace(X)
        products *= -2.0
        products += xp.sum(X * X, axis=1)[:, None]
        products += xp.sum(self.weights * self.weights, axis=0)
        # Rounding must not make a squared distance negative.
        products = overwritten("maximum", products, xp.zeros((), dtype=products.dtype, device=device_of(products)))
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
