"""The triangular root of the products of features and targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, cholesky, times_inverse
from ocrep._linalg.triangle import Triangle


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """FᵀF, FᵀT and the squared length of each target, for features F and targets T; those of parts add up."""

    FF: Array
    FT: Array
    TT: Array

    @classmethod
    def of(cls, F: Array, T: Array) -> Products:
        xp = array_namespace(F)
        Ft = xp.matrix_transpose(F)
        return cls(xp.matmul(Ft, F), xp.matmul(Ft, T), xp.sum(T * T, axis=0))

    def merge(self, other: Products) -> Products:
        return Products(self.FF + other.FF, self.FT + other.FT, self.TT + other.TT)

    @property
    def squares(self) -> Array:
        """The squared length of each feature."""
        return array_namespace(self.FF).linalg.diagonal(self.FF)

    @property
    def representable(self) -> bool:
        """Whether no square over- or underflowed, and no feature is zero."""
        xp = array_namespace(self.FF)
        parts = (self.FF, self.FT, self.TT)
        bounded = all(bool(xp.all(xp.abs(part) < 1.0 / SMALLEST**2)) for part in parts)
        return bounded and bool(xp.all(self.squares > SMALLEST**2))

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"FF": np.asarray(self.FF), "FT": np.asarray(self.FT), "TT": np.asarray(self.TT)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Products:
        return cls(arrays["FF"], arrays["FT"], arrays["TT"])


def root(products: Products) -> Triangle | None:
    """The triangle with these products, by Cholesky; what is left of a target is zero if it is less than its rounding.

    None where the features are not positive definite to working precision.
    """
    xp = array_namespace(products.FF)
    R = cholesky(products.FF)
    if R is None:
        return None
    Zt = transposed_root(products.FT, R)
    rest = products.TT - xp.sum(Zt * Zt, axis=1)
    certain = rest > EPS * rounding_over_eps(products, R, Zt)
    left = xp.sqrt(xp.where(certain, rest, xp.zeros_like(rest)))
    return Triangle(R, xp.matrix_transpose(Zt), left)


def transposed_root(FT: Array, R: Array) -> Array:
    """Zᵀ of RᵀZ = FᵀT."""
    xp = array_namespace(R)
    return times_inverse(xp.asarray(xp.matrix_transpose(FT), copy=True), R)


def rounding_over_eps(products: Products, R: Array, Zt: Array) -> Array:
    """The rounding error of each target's squared residual, over ε: products are wrong by ε of what was summed."""
    xp = array_namespace(R)
    return products.TT + xp.matmul(least_squares_weights(R, Zt) ** 2, products.squares)


def least_squares_weights(R: Array, Zt: Array) -> Array:
    """Wᵀ of RW = Z, by back substitution."""
    xp = array_namespace(R)
    upside_down = 1.0 * xp.flip(Zt, axis=1)
    return xp.flip(times_inverse(upside_down, xp.flip(xp.matrix_transpose(R))), axis=1)


def diagonal_ratio(R: Array) -> float:
    """The largest over the smallest diagonal entry: a lower bound of the condition number of a triangle."""
    xp = array_namespace(R)
    entries = xp.abs(xp.linalg.diagonal(R))
    least = float(xp.min(entries))
    return float(xp.max(entries)) / least if least > 0.0 else float("inf")
