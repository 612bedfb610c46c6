"""Weights that do not depend on the rows: their distributions, and which inputs each unit sees."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtr


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
DISTRIBUTIONS: dict[str, Callable[[np.random.RandomState, int, int], np.ndarray]] = {
    "uniform": _uniform,
    "normal": _normal,
    "orthogonal": _orthogonal,
}


def draw_units(
    weight_init: str, rng: np.random.RandomState, n_inputs: int, n_hidden: int, bias_range: Any = None
) -> np.ndarray:
    """One row per unit: its weights, then its bias, within `bias_range` if that is given."""
    units = DISTRIBUTIONS[weight_init](rng, n_inputs, n_hidden)
    if bias_range is not None:
        units[:, -1] = _within(ends_of(bias_range), units[:, -1], normal=weight_init == "normal")
    return units


def ends_of(bias_range: Any) -> tuple[float, float]:
    """The two ends of a range of biases."""
    ends = np.asarray(bias_range, dtype=object)
    if ends.shape == (2,) and all(isinstance(end, Real) and math.isfinite(end) for end in ends) and ends[0] <= ends[1]:
        return float(ends[0]), float(ends[1])
    raise ValueError(
        f"bias_range={bias_range!r} must be a pair of finite numbers (low, high) with low ≤ high, or None."
    )


def _within(ends: tuple[float, float], biases: np.ndarray, *, normal: bool) -> np.ndarray:
    """Biases drawn U(−1, 1) or N(0, 1) as U(low, high): each unit still draws its weights and bias together."""
    low, high = ends
    share = ndtr(biases) if normal else (biases + 1.0) / 2.0
    return low + (high - low) * share


def seen_inputs(seed: int, n_hidden: int, units_see: int | None, usable: np.ndarray) -> np.ndarray | None:
    """Units × inputs: True for `units_see` random inputs of each unit among the usable ones; None if it sees all."""
    if units_see is None or units_see >= np.count_nonzero(usable):
        return None
    order = np.random.default_rng([seed, 0]).random((n_hidden, len(usable)))
    order[:, ~usable] = np.inf
    seen = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(seen, np.argpartition(order, units_see - 1, axis=1)[:, :units_see], True, axis=1)
    return seen
