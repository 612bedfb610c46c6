"""What the parameters of a hidden layer mean, checked before a row is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ocrep._errors import pick
from ocrep._features.activations import ACTIVATIONS, Activation
from ocrep._linalg.arrays import Array

if TYPE_CHECKING:
    from ocrep._features.random_layer import RandomLayer

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
