"""The activations φ of hidden units, in one table.

"To add something" in docs/architecture.md says what a new one touches. Functions may overwrite their argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from array_api_compat import is_numpy_namespace, is_torch_namespace

from ocrep._linalg.arrays import Array, array_namespace, device_of


@dataclass(frozen=True)
class Activation:
    """φ, and what it is applied to: XC + b, or −|b|·‖x − c‖^power for radial units."""

    function: Callable[[Array], Array]
    radial: bool = False
    built_in: bool = False
    """Whether φ is one of ours: it may overwrite its argument, and run on several threads."""
    argument: float = 1.0
    """What XC + b is multiplied by before φ sees it; a power of 2, so that nothing is rounded."""
    levels: tuple[float, float] = (-1.0, 1.0)
    """XC + b at the two rows of a unit from a pair; −|b|·‖x − c‖^power for radial units, centred at the first."""
    power: int = 2
    """Of the distance, for radial units: 2 or 1."""

    def slope(self, Z: Array) -> Array:
        """φ' of XC + b; at a kink or a jump the derivative from the left, which for a jump is 0."""
        known = _SLOPES.get(self.function)
        if known is None:
            raise ValueError(
                f"The derivative of the activation {self.function!r}, a function of your own, is not known: use one of "
                f"the named activations, {', '.join(sorted(ACTIVATIONS))}."
            )
        return known(Z)


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


def _laplace(Z: Array) -> Array:
    # The same function as of Gaussian units, of a distance that is not squared. Files tell them apart by name.
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
    # Levels: φ is ¼ and ¾ for sigmoid, −½ and ½ for tanh, sin and identity, 0 and 1 for relu and hardlimit.
    "sigmoid": Activation(_sigmoid, built_in=True, argument=0.5, levels=(-math.log(3.0), math.log(3.0))),
    "tanh": Activation(_tanh, built_in=True, levels=(-math.atanh(0.5), math.atanh(0.5))),
    "relu": Activation(_relu, built_in=True, levels=(0.0, 1.0)),
    "sin": Activation(_sin, built_in=True, levels=(-math.pi / 6, math.pi / 6)),
    # 1 at its centre and ½ at the other row.
    "gaussian": Activation(_exp, radial=True, built_in=True, levels=(0.0, -math.log(2.0))),
    "laplace": Activation(_laplace, radial=True, built_in=True, levels=(0.0, -math.log(2.0)), power=1),
    "hardlimit": Activation(_hardlimit, built_in=True),
    "identity": Activation(_identity, built_in=True, levels=(-0.5, 0.5)),
}


def _tanh_slope(Z: Array) -> Array:
    H = array_namespace(Z).tanh(Z)
    return 1.0 - H * H


_SLOPES: dict[Callable[[Array], Array], Callable[[Array], Array]] = {
    _sigmoid: lambda Z: 0.25 * _tanh_slope(0.5 * Z),
    _tanh: _tanh_slope,
    _relu: lambda Z: array_namespace(Z).astype(Z > 0.0, Z.dtype),
    _sin: lambda Z: array_namespace(Z).cos(Z),
    _hardlimit: lambda Z: array_namespace(Z).zeros_like(Z),
    _identity: lambda Z: array_namespace(Z).ones_like(Z),
}
