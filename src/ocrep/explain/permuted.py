"""The outputs of a network when some of its inputs are permuted, without forming all units anew.

Let D be the change of the permuted inputs, in scaled inputs, n × k for a group of k of them. What φ is applied to,
s·C + b, becomes s·C + b + D·C_k with the k rows of C that belong to them: k products for each unit instead of p.
Squared distances become

    ‖q + δ − c‖² = ‖q − c‖² − 2δ·c + (2q·δ + ‖δ‖²),   δ = D·R_k with a metric R,

again k products, δ·c = D·(R_k C), and one number for each row. Both are one product with k or k + 1 columns, added to
what is computed once for all groups and repeats. Units that do not see the inputs stay as they are, and so do trees
that do not compare them. What is left to do is φ. Rounding is that of the sum itself, as in `HiddenMap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ocrep._layers.hidden_map import HiddenMap
from ocrep._layers.paths import leaf_values
from ocrep._linalg.parallel import BLOCK_ENTRIES, on_chunks, row_slices, slices_of
from ocrep.estimators.base import ClosedForm
from ocrep.explain.models import maps_of, to_host_or_number

# Units that a group of inputs reaches are computed by themselves if they are fewer than this share.
_FEW = 0.6
# Entries of an array that stays in the caches while it is worked on again and again.
_CACHED = 2**16


def permuted_outputs(
    network: ClosedForm, inputs: np.ndarray, groups: Sequence[np.ndarray], orders: Sequence[np.ndarray]
) -> Iterator[tuple[int, np.ndarray]]:
    """For each group of inputs, its number and HW + b under each order of its values, repeats × rows × outputs."""
    maps, _ = maps_of(network)
    n_rows, n_outputs = len(inputs), maps[0][1].shape[1]
    # Products of unchanged inputs serve as many groups as there is room for.
    at_a_time = max(1, 2 * BLOCK_ENTRIES // (len(orders) * n_rows * n_outputs))
    for some in row_slices(len(groups), at_a_time):
        held = np.empty((some.stop - some.start, len(orders), n_rows, n_outputs))
        held[...] = to_host_or_number(network.intercept_)
        for features, W in maps:
            if isinstance(features, HiddenMap):
                _add_layer(held, features, W, inputs, groups[some], orders)
            else:
                _add_linear(held, W, inputs, groups[some], orders)
        for place in range(some.stop - some.start):
            yield some.start + place, held[place]


def _add_linear(held: np.ndarray, W: np.ndarray, x: np.ndarray, groups: Any, orders: Any) -> None:
    base = x @ W
    for group, found in zip(groups, held, strict=True):
        for order, outputs in zip(orders, found, strict=True):
            outputs += base + (x[np.ix_(order, group)] - x[:, group]) @ W[group]


def _add_layer(held: np.ndarray, hidden: HiddenMap, W: np.ndarray, x: np.ndarray, groups: Any, orders: Any) -> None:
    scaled = hidden.scaled(x)
    if hidden.direct_link:
        _add_linear(held, W[: x.shape[1]], scaled, groups, orders)
        W = W[x.shape[1] :]
    if hidden.trees is not None:
        _add_trees(held, hidden, W, scaled, groups, orders)
        return

    few = max(32, _CACHED // hidden.n_units)
    values = [np.ascontiguousarray(scaled[:, group]) for group in groups]

    def worker(height: int) -> Callable[[slice], None]:
        del height
        room = np.empty((few, hidden.n_units))

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, few):
                rows = slice(start, min(start + few, part.stop))
                _add_units(held[:, :, rows], hidden, W, scaled, rows, groups, values, orders, room[: rows.stop - start])

        return fill

    on_chunks(worker, len(x), 2 * hidden.n_units)


def _add_units(
    held: np.ndarray,
    hidden: HiddenMap,
    W: np.ndarray,
    x: np.ndarray,
    part: slice,
    groups: Any,
    values: Any,
    orders: Any,
    room: np.ndarray,
) -> None:
    """Add the units' part to the outputs of some rows."""
    arguments, change_of = _radial(hidden, x[part]) if hidden.activation.radial else _products(hidden, x[part])
    whole = None
    for group, own, found in zip(groups, values, held, strict=True):
        columns, reached = change_of(group)
        few = np.count_nonzero(reached) < _FEW * len(reached)
        units = np.flatnonzero(reached) if few else slice(None)
        base, rows_of_change, weights = arguments[:, units], columns[1][:, units], W[units]
        kept: Any = 0.0
        if few:
            if whole is None:
                whole = _activated(hidden, arguments.copy(), slice(None)) @ W
            kept = whole - _activated(hidden, base.copy(), units) @ weights
        Z = np.empty(base.shape) if few else room
        for order, outputs in zip(orders, found, strict=True):
            change = columns[0](own[order[part]])
            # One column: NumPy's product is faster than that of BLAS.
            (np.multiply if change.shape[1] == 1 else np.matmul)(change, rows_of_change, out=Z)
            Z += base
            outputs += _activated(hidden, Z, units) @ weights + kept


def _products(hidden: HiddenMap, x: np.ndarray) -> tuple[np.ndarray, Any]:
    C = hidden.activation.argument * hidden.weights

    def change_of(group: np.ndarray) -> Any:
        return (lambda new: new - x[:, group], C[group]), (C[group] != 0.0).any(axis=0)

    return x @ C + hidden.activation.argument * hidden.biases, change_of


def _radial(hidden: HiddenMap, x: np.ndarray) -> tuple[np.ndarray, Any]:
    """Squared distances, with what `HiddenMap` subtracts for rounding; times −|b| if no root is taken of them."""
    q, C, keep = hidden.measured(x), hidden.centers, 1.0 - hidden.slack
    factor = -np.abs(hidden.biases) if hidden.activation.power == 2 else np.ones(hidden.n_units)
    base = q @ (-2.0 * factor * C)
    base += factor * (keep * np.sum(C * C, axis=0) + keep * np.sum(q * q, axis=1)[:, None])
    R = np.ones(x.shape[1]) if hidden.metric is None else hidden.metric

    def change_of(group: np.ndarray) -> Any:
        # Without a full metric, inputs of the group change only themselves.
        at: Any = slice(None) if R.ndim == 2 else group
        own = R[group] if R.ndim == 2 else np.diag(R[group])

        def columns(new: np.ndarray) -> np.ndarray:
            change = new - x[:, group]
            delta = change @ own
            return np.column_stack([change, keep * np.sum(delta * (2.0 * q[:, at] + delta), axis=1)])

        return (columns, np.vstack([own @ (-2.0 * factor * C[at]), factor])), np.ones(hidden.n_units, dtype=bool)

    return base, change_of


def _activated(hidden: HiddenMap, Z: np.ndarray, units: Any) -> np.ndarray:
    """φ, in place where it can be."""
    if hidden.activation.radial:
        if hidden.activation.power == 2:
            np.minimum(Z, 0.0, out=Z)
        else:
            np.maximum(Z, 0.0, out=Z)
            np.sqrt(Z, out=Z)
            Z *= -np.abs(hidden.biases[units])
    return hidden.activation.function(Z)


def _add_trees(held: np.ndarray, hidden: HiddenMap, W: np.ndarray, x: np.ndarray, groups: Any, orders: Any) -> None:
    trees = hidden.trees
    assert trees is not None
    values = leaf_values(trees, W)
    nothing = np.zeros(0, dtype=np.int64)
    some = []
    for group in groups:
        compares = np.append(0, np.cumsum(np.isin(trees.feature, group)))
        counts = compares[np.append(trees.roots, len(trees.feature))]
        reached = np.diff(counts) > 0 if hidden.metric is None else np.ones(len(trees.roots), dtype=bool)
        some.append(replace(trees, roots=trees.roots[reached], unit_tree=nothing, unit_node=nothing))
    for rows in slices_of(len(x), 8 * len(trees.roots) + x.shape[1]):
        base = _sums(values, trees.leaves(hidden.measured(x[rows])))
        for group, own, found in zip(groups, some, held, strict=True):
            kept = base - _sums(values, own.leaves(hidden.measured(x[rows])))
            for order, outputs in zip(orders, found, strict=True):
                moved = x[rows].copy()
                moved[:, group] = x[np.ix_(order[rows], group)]
                outputs[rows] += kept + _sums(values, own.leaves(hidden.measured(moved)))


def _sums(values: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """Σ values of the leaves of each row: rows × outputs."""
    return np.column_stack([np.take(own, leaves).sum(axis=1) for own in values.T])
