"""What the units of a layer add up to when inputs move: along a straight path, and over the thresholds of trees.

`path_contributions` divides f(x) − f(x₀), f = HW, among the inputs, as integrated gradients do (Sundararajan, Taly,
Yan, *Axiomatic attribution for deep networks*, 2017): along s(t) = s₀ + tΔ in the scaled inputs, t from 0 to 1, input
j gets Δⱼ∫∂f/∂sⱼ dt. These add up to f(x) − f(x₀). One hidden layer hardly needs quadrature:

- Units φ(s·c + b) see only a(t) = a₀ + tα with α = Δ·c, and ∫φ'(a(t)) dt = (φ(a₁) − φ(a₀))/α. So input j gets
  w·cⱼΔⱼ·(φ(a₁) − φ(a₀))/α, also over kinks and jumps. Where α is rounding, φ' takes the place of the quotient.
- Radial units see d²(t) = ‖q₀ − c + tδ‖² = A + 2Bt + Dt², q = sR and δ = ΔR with a metric R. The gradient of
  e^{−bd²} is −2b(q(t) − c)e^{−bd²}: so two numbers are needed, K₀ = 2b∫e^{−bd²}dt, a difference of error functions,
  and K₁ = 2b∫t·e^{−bd²}dt. As (B + Dt)·2b·e^{−bd²} is a derivative, D·K₁ = H₀ − H₁ − B·K₀, and the sum of all inputs
  is exact whatever the rounding of K₀.
- For e^{−bd} the same holds with K₀ = b∫e^{−bd}/d dt. With the least distance m of the line from c and
  √D·(t + B/D) = m·sinh(u) it is b/√D·∫e^{−bm·cosh(u)}du, which is smooth: 16 points of Gauss's rule.
- Leaves: f jumps where the path crosses a threshold, and the input that is compared there gets the jump. Inputs that
  cross at the same time, as columns of 0 and 1 do, take turns, once from the first to the last and once in reverse,
  and get the mean of both.

`leaf_slopes` are differences (f(x + up) − f(x − down))/(up + down) of leaves, one input at a time. A row that moves in
input j leaves its way through a tree at the first node that compares j and lies between: only from there it is followed
again. Both walk on the host, whatever the library of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import erf

from ocrep._layers.activations import Activation
from ocrep._layers.columns import squashed, unsquashed
from ocrep._layers.hidden_map import HiddenMap
from ocrep._layers.trees import Trees
from ocrep._linalg.arrays import Array, to_device_of, to_host
from ocrep._linalg.parallel import slices_of

# How far an input is moved, in units of half its range, or of half the distance between its quartiles.
_STEP = 1.25
# Changes of a unit's argument below this, relative to it, are rounding.
_ROUNDING = 1e-9
_TIE = 1e-12
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def path_contributions(hidden: HiddenMap, start: np.ndarray, X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """What each input adds to H(x)W from H(start)W: rows × inputs × outputs. The map is in float64 on the host."""
    parts = slices_of(len(X), 8 * hidden.n_units + X.shape[1] * W.shape[1])
    found = [_contributions_of(hidden, start, X[part], W) for part in parts]
    return np.concatenate(found) if found else np.zeros((0, X.shape[1], W.shape[1]))


def _contributions_of(hidden: HiddenMap, start: np.ndarray, X: np.ndarray, W: np.ndarray) -> np.ndarray:
    first, last = hidden.scaled(start[None]), hidden.scaled(X)
    change = last - first
    n_linked = hidden.weights.shape[0] if hidden.direct_link else 0
    found = change[:, :, None] * W[:n_linked] if n_linked else np.zeros((*X.shape, W.shape[1]))
    W = W[n_linked:]
    if hidden.trees is not None:
        values = leaf_values(hidden.trees, W)
        return found + jumps(hidden.trees, hidden.measured(first)[0], hidden.measured(last), values)
    H0, H1 = (hidden(rows)[:, n_linked:] for rows in (start[None], X))
    C = hidden.centers
    if not hidden.activation.radial:
        quotients = _quotients(hidden.activation, first @ C + hidden.biases, change @ C, H1 - H0)
        for output in range(W.shape[1]):
            found[:, :, output] += change * ((quotients * W[:, output]) @ C.T)
        return found
    q0, q1 = hidden.measured(first), hidden.measured(last)
    delta = q1 - q0
    D = np.sum(delta**2, axis=1)[:, None]
    moves = D > 0.0
    D = np.where(moves, D, 1.0)
    B = np.sum(delta * q0, axis=1)[:, None] - delta @ C
    A = np.sum((q0.T - C) ** 2, axis=0)
    K0 = (_bump_integrals if hidden.activation.power == 2 else _cone_integrals)(np.abs(hidden.biases), A, B, D)
    K1 = np.where(moves, (H0 - H1 - B * K0) / D, 0.0)
    for output in range(W.shape[1]):
        w0, w1 = K0 * W[:, output], K1 * W[:, output]
        g = w0 @ C.T - q0 * w0.sum(axis=1)[:, None] - delta * w1.sum(axis=1)[:, None]
        if hidden.metric is not None:
            g = g * hidden.metric if hidden.metric.ndim == 1 else g @ hidden.metric.T
        found[:, :, output] += change * g
    return found


def _quotients(activation: Activation, a: np.ndarray, alpha: np.ndarray, rise: np.ndarray) -> np.ndarray:
    """(φ(a + α) − φ(a))/α, or φ' where α is rounding."""
    still = np.abs(alpha) <= _ROUNDING * (1.0 + np.abs(a))
    found = rise / np.where(still, 1.0, alpha)
    if still.any():
        rows, units = np.nonzero(still)
        at = np.broadcast_to(a, alpha.shape)[rows, units] + alpha[rows, units] / 2
        found[rows, units] = activation.slope(at) if activation.built_in else _own_slope(activation, at)
    return found


def _own_slope(activation: Activation, at: np.ndarray) -> np.ndarray:
    """The slope of a function of the user's own, by a central difference."""
    step = 1e-5 * (1.0 + np.abs(at))
    above, below = (activation.function(np.array(at + sign * step)) for sign in (1.0, -1.0))
    return (above - below) / (2.0 * step)


def _bump_integrals(b: np.ndarray, A: np.ndarray, B: np.ndarray, D: np.ndarray) -> np.ndarray:
    """2b∫e^{−b(A + 2Bt + Dt²)}dt from 0 to 1."""
    root = np.sqrt(b * D)
    short = root < 1e-6
    root = np.where(short, 1.0, root)
    turn = B / D
    least = np.exp(-b * np.maximum(A - B * turn, 0.0))
    found = least * (erf(root * (1.0 + turn)) - erf(root * turn)) * (np.sqrt(np.pi) / 2.0) / root
    return 2.0 * b * np.where(short, np.exp(-b * np.maximum(A + B + D / 4.0, 0.0)), found)


def _cone_integrals(b: np.ndarray, A: np.ndarray, B: np.ndarray, D: np.ndarray) -> np.ndarray:
    """b∫e^{−bd}/d dt from 0 to 1, d² = A + 2Bt + Dt²."""
    root = np.sqrt(D)
    turn = B / D
    # A line through the centre has no least distance > 0; K₀ is then multiplied by 0, and must only be finite.
    least = np.sqrt(np.maximum(A - B * turn, 1e-24 * (A + D) + np.finfo(np.float64).tiny))
    start, end = np.arcsinh(turn * root / least), np.arcsinh((1.0 + turn) * root / least)
    half = (end - start) / 2.0
    total = np.zeros_like(half)
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        total += weight * np.exp(-b * least * np.cosh(start + half * (1.0 + point)))
    return b / root * half * total


# ------------------------------------------------------------------------------
# Leaves of trees


def leaf_values(trees: Trees, W: np.ndarray) -> np.ndarray:
    """What each node adds to HW if it is the leaf of a row: nodes × outputs; the last leaf of a tree is no unit."""
    values = np.zeros((len(trees.feature), W.shape[1]))
    values[trees.unit_node] = W
    return values


def leaf_slopes(hidden: HiddenMap, X: Any, W: Array) -> Array:
    """Differences of leaves across an input's spread, over the distance: rows × inputs × outputs, on X's device."""
    own = hidden.to_host()
    trees = own.trees
    assert trees is not None
    weights = to_host(W).astype(np.float64, copy=False)
    values = leaf_values(trees, weights[own.n_features - own.n_units :])
    rows = X.toarray() if sparse.issparse(X) else to_host(X)
    Z = (rows.astype(np.float64, copy=False) - own.center) * own.scale
    lowest, highest = np.full(Z.shape[1], np.inf), np.full(Z.shape[1], -np.inf)
    inner = trees.feature >= 0
    np.minimum.at(lowest, trees.feature[inner], trees.threshold[inner])
    np.maximum.at(highest, trees.feature[inner], trees.threshold[inner])
    divides = lowest <= highest
    lowest, highest = np.where(divides, lowest, 0.0), np.where(divides, highest, 0.0)
    up, down = Z + _STEP, Z - _STEP
    if own.squash is None:
        points = Z, up, down
    else:
        points = tuple(squashed(moved, own.squash) for moved in (Z, up, down))
        lowest, highest = unsquashed(lowest, own.squash), unsquashed(highest, own.squash)
    if own.metric is None:
        # Beyond the outermost thresholds nothing changes, so a step ends there.
        up, down = np.minimum(up, np.maximum(Z, highest)), np.maximum(down, np.minimum(Z, lowest))
        found = differences(trees, *points, values)
    else:
        found = np.stack([_moved(own, trees, points, j, values) for j in range(Z.shape[1])], axis=1)
    distance = up - down
    slope = np.where(distance > 0.0, own.scale / np.where(distance > 0.0, distance, 1.0), 0.0)
    return to_device_of(hidden.weights, found * slope[:, :, None])


def _moved(own: HiddenMap, trees: Trees, points: Any, column: int, values: np.ndarray) -> np.ndarray:
    """The difference of leaves for one input, for inputs times a metric, where each may change several."""
    found = []
    for moved in points[1:]:
        x = points[0].copy()
        x[:, column] = moved[:, column]
        found.append(values[trees.leaves(own.measured(x))].sum(axis=1))
    return found[0] - found[1]


def differences(trees: Trees, x: np.ndarray, up: np.ndarray, down: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each input, the sum over trees of values where it is `up` minus those where it is `down`."""
    n_rows, n_inputs = x.shape
    found = np.zeros((n_rows, n_inputs, values.shape[1]))
    bounds = _bounds(trees)
    for rows in slices_of(n_rows, 16 * len(trees.roots)):
        leaf, pair, place, above, other = _astray(trees, x[rows], up[rows], down[rows], bounds)
        for output, own in enumerate(values.T):
            jump = own[other] - own[leaf[pair]]
            total = np.bincount(place, np.where(above, jump, -jump), x[rows].size)
            found[rows, :, output] = total.reshape(-1, n_inputs)
    return found


def _astray(
    trees: Trees, x: np.ndarray, up: np.ndarray, down: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The leaf of each pair of row and tree; and of all that reach another leaf if one input is moved, the pair, the
    place of that input in x, whether it is moved up, and the other leaf.

    A row on the left of a node can cross its threshold only upwards, and one on the right only downwards.
    """
    n_rows, n_inputs = x.shape
    n_nodes, n_trees = len(trees.feature), len(trees.roots)
    feature = trees.steps[0]
    children = np.concatenate([trees.right, trees.left])  # that of a node on the left is n_nodes further on
    moved_to = np.concatenate([down.ravel(), up.ravel()])
    bound_of = np.concatenate(bounds)
    entries = x.ravel()
    pair = np.arange(n_rows * n_trees)
    row = np.repeat(np.arange(0, x.size, n_inputs), n_trees)
    node = np.tile(trees.roots, n_rows)
    leaf = node.copy()
    begun = []
    while True:
        inner = np.flatnonzero(trees.feature[node] >= 0)
        leaf[pair] = node
        if not len(inner):
            break
        pair, row, node = pair[inner], row[inner], node[inner]
        place = row + feature[node]
        threshold = trees.threshold[node]
        is_left = entries[place] <= threshold
        moved = moved_to[place + is_left * x.size]
        # At the first node that divides: further down, the node's bounds have been left already.
        crosses = ((moved <= threshold) != is_left) & ((moved <= bound_of[node + is_left * n_nodes]) == is_left)
        new = np.flatnonzero(crosses)
        begun.append(
            (pair[new], place[new], is_left[new], children[node[new] + ~is_left[new] * n_nodes], moved[new], row[new])
        )
        node = children[node + is_left * n_nodes]
    pair, place, above, node, moved, row = (np.concatenate(parts) for parts in zip(*begun, strict=True))
    other, going = node.copy(), np.arange(len(node))
    own = place
    while len(inner := np.flatnonzero(trees.feature[node] >= 0)):
        going, row, own, node, moved = going[inner], row[inner], own[inner], node[inner], moved[inner]
        compared = row + feature[node]
        value = np.where(compared == own, moved, entries[compared])
        node = children[node + (value <= trees.threshold[node]) * n_nodes]
        other[going] = node
    return leaf, pair, place, above, other


def _bounds(trees: Trees) -> tuple[np.ndarray, np.ndarray]:
    """Of each node, between which values of the input that it compares its rows lie."""
    n_nodes = len(trees.feature)
    low, high = np.full((n_nodes, trees.n_inputs), -np.inf), np.full((n_nodes, trees.n_inputs), np.inf)
    nodes = trees.roots
    while len(nodes := nodes[trees.feature[nodes] >= 0]):
        left, right, compared = trees.left[nodes], trees.right[nodes], trees.feature[nodes]
        for child in (left, right):
            low[child], high[child] = low[nodes], high[nodes]
        high[left, compared] = trees.threshold[nodes]
        low[right, compared] = trees.threshold[nodes]
        nodes = np.concatenate([left, right])
    own = np.arange(n_nodes), np.maximum(trees.feature, 0)
    return low[own], high[own]


def jumps(trees: Trees, start: np.ndarray, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What the thresholds between `start` and each row add to Σ values of leaves: rows × inputs × outputs."""
    n_rows, n_inputs = x.shape
    found = np.zeros((n_rows, n_inputs, values.shape[1]))
    turn = _TIE * np.arange(n_inputs) / n_inputs
    for turns in (turn, _TIE - turn):
        row = np.repeat(np.arange(n_rows), len(trees.roots))
        root = np.tile(trees.roots, n_rows)
        time = np.full(len(row), -np.inf)
        leaf, time, column = _leaf_on_path(trees, start, x, turns, row, root, time)
        while True:
            going = np.flatnonzero(time < np.inf)
            if not len(going):
                break
            row, root, before, by = row[going], root[going], leaf[going], column[going]
            leaf, time, column = _leaf_on_path(trees, start, x, turns, row, root, time[going])
            place = row * n_inputs + by
            for output in range(values.shape[1]):
                jump = values[leaf, output] - values[before, output]
                found[:, :, output] += np.bincount(place, jump, n_rows * n_inputs).reshape(n_rows, n_inputs) / 2.0
    return found


def _leaf_on_path(
    trees: Trees,
    start: np.ndarray,
    x: np.ndarray,
    turns: np.ndarray,
    row: np.ndarray,
    node: np.ndarray,
    time: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The leaf of each row at a time on its path, when it leaves it, and through the threshold of which input."""
    feature, left, right = trees.steps
    following, by = np.full(len(row), np.inf), np.zeros(len(row), dtype=np.int64)
    for _ in range(trees.depth):
        compared, threshold = feature[node], trees.threshold[node]
        first, last = start[compared], x[row, compared]
        was_left, is_left = first <= threshold, last <= threshold
        crosses = (was_left != is_left) & (trees.feature[node] >= 0)
        way = np.where(crosses, last - first, 1.0)
        when = np.where(crosses, np.clip((threshold - first) / way, 0.0, 1.0) + turns[compared], np.inf)
        crossed = when <= time
        sooner = ~crossed & (when < following)
        following, by = np.where(sooner, when, following), np.where(sooner, compared, by)
        node = np.where(np.where(crosses & crossed, is_left, was_left), left[node], right[node])
    return node, following, by
