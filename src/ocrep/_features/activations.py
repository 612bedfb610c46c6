"""The activations φ of hidden units, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from array_api_compat import is_numpy_namespace, is_torch_namespace

from ocrep._linalg.arrays import Array, array_namespace, device_of


@dataclass(frozen=True, slots=True)
class Activation:
    """φ, and what it is applied to: XC + b, or −|b|·‖x − c‖² for radial units."""

    function: Callable[[Array], Array]
    radial: bool = False
    built_in: bool = False
    """Whether φ is one of ours: it may overwrite its argument, and run on several threads."""
    argument: float = 1.0
    """What XC + b is multiplied by before φ sees it; a power of 2, so that nothing is rounded."""


def overwritten(function: str, Z: Array, *others: Array) -> Array:
    """function(Z, …) of each entry, in the memory of Z where the library can: new memory costs more than a tanh."""
    xp = array_namespace(Z)
    if is_numpy_namespace(xp) or is_torch_namespace(xp):
        return getattr(xp, function)(Z, *others, out=Z)
    return getattr(xp, function)(Z, *others)


def _sigmoid(Z: Array) -> Array:
    # 1/(1 + e⁻ᶻ) = (1 + tanh(z/2))/2, given z/2: one library call that cannot overflow, exact to ε in absolute terms.
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
    "sigmoid": Activation(_sigmoid, built_in=True, argument=0.5),
    "tanh": Activation(_tanh, built_in=True),
    "relu": Activation(_relu, built_in=True),
    "sin": Activation(_sin, built_in=True),
    "gaussian": Activation(_exp, radial=True, built_in=True),
    "hardlimit": Activation(_hardlimit, built_in=True),
    "identity": Activation(_identity, built_in=True),
}
