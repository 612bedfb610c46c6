"""H = φ(XC + b) as a pure function of arrays, and the table of activations φ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ocrep.kernels import Array, array_namespace, as_float64, device_of, overwritten


@dataclass(frozen=True, slots=True)
class Activation:
    """φ, and what it is applied to: XC + b, or −|b|·‖x − c‖² for radial units."""

    function: Callable[[Array], Array]
    radial: bool = False


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
    "sigmoid": Activation(_sigmoid),
    "tanh": Activation(_tanh),
    "relu": Activation(_relu),
    "sin": Activation(_sin),
    "gaussian": Activation(_exp, radial=True),
    "hardlimit": Activation(_hardlimit),
    "identity": Activation(_identity),
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
        # Subtracting the mid-range first keeps the digits that folding a column like 10⁴ ± 1 would lose.
        X = (as_float64(X) - self.center) * self.scale
        xp = array_namespace(X)
        Z = xp.matmul(X, self.weights)
        if self.activation.radial:
            Z = self._minus_distances(X, Z)
        else:
            Z += self.biases
        H = self._activate(Z)
        return xp.concat([X, H], axis=1) if self.direct_link else H

    def take(self, units: Any) -> HiddenMap:
        """The map of some units, by a slice or an index."""
        return replace(self, weights=self.weights[:, units], biases=self.biases[units])

    @cached_property
    def _folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases with the scaling in them, so that X can stay sparse."""
        return self.scale[:, None] * self.weights, self.biases - (self.center * self.scale) @ self.weights

    def _minus_distances(self, X: Array, products: Array) -> Array:
        """−|b|·‖x − c‖², from ‖x‖² − 2x·c + ‖c‖², which rounding must not make negative."""
        xp = array_namespace(X)
        products *= -2.0
        products += xp.sum(X * X, axis=1)[:, None]
        products += xp.sum(self.weights * self.weights, axis=0)
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
