"""`Trees`: the leaves of shallow trees as units, 1 where a row ends and 0 elsewhere.

An extremely randomized tree (Geurts, Ernst, Wehenkel, 2006) divides rows by thresholds drawn at random, one for each
input that is tried, and takes the input whose division explains the targets best. Every second tree takes the best of
all thresholds instead, among half of the inputs. Leaves are what smooth units are not: they choose inputs, and they
jump.

Each tree explains what those before it left: with r = t at first, the next targets are r ← r − 0.15·(the tree's mean of
r in the row's leaf), as in gradient boosting. The output weights of the leaves are fitted together afterwards, by ridge
regression, so the means are kept no longer than the trees grow. Trees that all explain the targets themselves resemble
each other: with as many leaves, a ridge on them had 1.14 times the error (geometric mean over 7 problems of 1,400 to
20,000 rows). Labels are explained as columns of zeros and ones, one for each label.

Of more than 2,500 rows with one target, the trees are those of scikit-learn's histogram gradient boosting, with the
same rate: each takes the best of 255 thresholds of every input. They take a tenth of the time, and with as many rows
the best division of each is not chance: on 13,000 rows of three tables, a ridge on as many leaves had 0.98 times the
error. Fewer rows gain from random thresholds as much.

The leaves of one tree add up to one, as the intercept does, so the last leaf of each tree is no unit. scikit-
learn grows the trees, on inputs with deviation 1, because it compares in float32: a column like 10⁴ ± 1 would lose its
digits. We keep feature, threshold and children of all nodes as arrays of our own, since a file must be checked before
its indices are followed: scikit-learn does not check those of its trees.

All rows go down all trees together, level by level: node ← left or right child of node, a leaf staying where it is. A
child has a larger number than its parent, so no path can turn back, and the depth bounds the number of levels. That
costs n·trees·depth steps, beside the n·M comparisons that make the units. Inputs are compared in float64, whatever the
precision of the map, so that a row has the same leaves everywhere.

Each tree has a seed of its own, or needs none, so the first m units of a layer of M are the layer of m.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj, is_numpy_array
from threadpoolctl import ThreadpoolController

from ocrep._documentation import shown_in_short
from ocrep._layers.columns import standardized
from ocrep._linalg.arrays import EPS, Array, array_namespace, device_of, take_columns, to_device_of, to_host

LEAVES = 24
"""The most leaves of a tree."""
# A tree of best thresholds sorts its rows at each division, so it looks at no more of them.
_ROWS_FOR_BEST = 10_000
LEAST_ROWS = 3
"""The least rows of a leaf, where there are twice as many."""
_DEPTH = 12
# A file may hold deeper trees, but not so deep that the walk through them would take minutes.
_DEEPEST = 64
_LEAF = -1
_GRID = 2.0**20
_SMALL = 2.0**-10
# How often a tree that found no division is grown again before leaves of one row are allowed.
_ATTEMPTS = 10
# The share of what a tree explains that the next one does not see.
_RATE = 0.15
# Of more rows, boosting grows the trees of one target, with at least so many rows in each leaf.
_MANY_ROWS = 2_500
_LEAST_OF_MANY = 10
# Targets of which no more is left are explained.
_EXPLAINED = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Trees:
    """X ↦ the units of its rows' leaves. Nodes of all trees are numbered through, children after their parents."""

    n_inputs: int
    feature: Array
    """The input that a node compares; −1 for a leaf."""
    threshold: Array
    """A row goes to the left if its input is at most this."""
    left: Array
    """The child on the left; −1 for a leaf."""
    right: Array
    roots: Array
    """The first node of each tree."""
    unit_tree: Array
    """The tree of each unit."""
    unit_node: Array
    """The leaf of each unit."""

    __repr__ = shown_in_short

    def __post_init__(self) -> None:
        on_a_device = is_array_api_obj(self.feature) and not is_numpy_array(self.feature)
        if not on_a_device:  # trees on a device come from trees on the host
            _check(self)

    @property
    def n_units(self) -> int:
        """The leaves that are units."""
        return self.unit_node.shape[0]

    def __call__(self, X: Array) -> Array:
        """For each row and unit, whether the row ends in the unit's leaf; X is in float64."""
        return take_columns(self.leaves(X), self.unit_tree) == self.unit_node

    def leaves(self, X: Array) -> Array:
        """For each row and tree, the number of the leaf."""
        if X.shape[1] != self.n_inputs:
            raise ValueError(f"These trees divide rows of {self.n_inputs} inputs, and X has {X.shape[1]}.")
        xp = array_namespace(X)
        n_rows = X.shape[0]
        n_trees = self.roots.shape[0]
        feature, left, right = self.steps
        entries = xp.reshape(X, (-1,))
        numbers = xp.arange(n_rows * n_trees, dtype=xp.int64, device=device_of(X))
        row_start = numbers // max(1, n_trees) * self.n_inputs
        node = xp.take(self.roots, numbers % max(1, n_trees))
        for _ in range(self.depth):
            values = xp.take(entries, row_start + xp.take(feature, node))
            goes_left = values <= xp.take(self.threshold, node)
            node = xp.where(goes_left, xp.take(left, node), xp.take(right, node))
        return xp.reshape(node, (n_rows, n_trees))

    @cached_property
    def steps(self) -> tuple[Array, Array, Array]:
        """Feature and children of each node; those of a leaf are 0 and the leaf itself, so that rows stay in it."""
        xp = array_namespace(self.feature)
        itself = xp.arange(self.feature.shape[0], dtype=xp.int64, device=device_of(self.feature))
        leaf = self.feature == _LEAF
        return (
            xp.where(leaf, xp.zeros_like(self.feature), self.feature),
            xp.where(leaf, itself, self.left),
            xp.where(leaf, itself, self.right),
        )

    @cached_property
    def depth(self) -> int:
        """Levels below the roots."""
        feature, left, right = (to_host(array) for array in (self.feature, self.left, self.right))
        nodes = np.unique(to_host(self.roots))
        for depth in range(_DEEPEST + 1):
            nodes = nodes[feature[nodes] != _LEAF]
            if not len(nodes):
                return depth
            nodes = np.unique(np.concatenate([left[nodes], right[nodes]]))
        raise ValueError(f"the trees of its hidden layer have more than {_DEEPEST} levels.")

    def take(self, units: Any) -> Trees:
        """The trees of some units only."""
        kept, unit_tree = np.unique(to_host(take_columns(self.unit_tree, units)), return_inverse=True)
        return replace(
            self,
            roots=take_columns(self.roots, kept),
            unit_tree=to_device_of(self.roots, unit_tree.astype(np.int64)),
            unit_node=take_columns(self.unit_node, units),
        )

    def to_device_of(self, X: Any) -> Trees:
        """The same trees in the library and on the device of X."""
        return replace(self, **{name: to_device_of(X, array) for name, array in self.arrays().items()})

    def to_host(self) -> Trees:
        """The same trees in arrays of NumPy."""
        moved: Any = {name: to_host(array) for name, array in self.arrays().items()}
        return replace(self, **moved)

    def arrays(self) -> dict[str, Array]:
        """The arrays by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "n_inputs"}

    # By position, as skops keeps an object that takes its state itself: so a file is checked when it is read.
    def __getstate__(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]

    def __setstate__(self, state: list[Any]) -> None:
        self.__dict__.update(zip((field.name for field in fields(self)), state, strict=True))
        self.__post_init__()


def _check(trees: Trees) -> None:
    """Raise if following the indices could leave the arrays, or never end."""
    if not isinstance(trees.n_inputs, int) or trees.n_inputs < 1:
        raise ValueError("the trees of its hidden layer have no inputs.")
    for name, array in trees.arrays().items():
        kind = np.float64 if name == "threshold" else np.int64
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != kind:
            raise ValueError(f"{name} of the trees of its hidden layer is not a list of numbers.")
    n_nodes = len(trees.feature)
    same = all(len(array) == n_nodes for array in (trees.threshold, trees.left, trees.right))
    if not same or len(trees.unit_tree) != len(trees.unit_node):
        raise ValueError("the trees of its hidden layer have arrays of different lengths.")
    inner = np.flatnonzero(trees.feature != _LEAF)
    _check_range("an input", trees.feature[inner], 0, trees.n_inputs)
    _check_range("a root", trees.roots, 0, n_nodes)
    _check_range("a leaf", trees.unit_node, 0, n_nodes)
    _check_range("a tree", trees.unit_tree, 0, len(trees.roots))
    for child in (trees.left[inner], trees.right[inner]):
        # A child comes after its parent: so every walk ends.
        _check_range("a child", child, inner + 1, n_nodes)
    if np.isnan(trees.threshold).any():
        raise ValueError("a threshold in the trees of its hidden layer is NaN.")
    _ = trees.depth  # raises if they are too deep


def _check_range(what: str, numbers: np.ndarray, low: Any, high: int) -> None:
    if np.any((numbers < low) | (numbers >= high)):
        raise ValueError(f"{what} in the trees of its hidden layer has a number that is out of range.")


# ------------------------------------------------------------------------------
# How trees are grown.


def grown(X: np.ndarray, y: np.ndarray | None, weight: np.ndarray, *, labels: bool, n_units: int, seed: int) -> Trees:
    """As many trees as are needed for `n_units` units, from rows that differ; the last tree's units are cut.

    Several targets are explained together, each with deviation 1. Without targets, or if they are all equal, the trees
    divide at random.
    """
    U, inverse_std = standardized(X, weight, EPS)
    mean = weight / weight.sum() @ X
    targets = _targets(y, weight, labels=labels)
    weight = _without_unit(weight)
    found: list[_Tree] | None = None
    if targets is not None and targets.shape[1] == 1 and len(U) > _MANY_ROWS:
        found = _boosted(U, targets[:, 0] / _SMALL, weight, n_units)
    if found is None:
        found = _one_by_one(np.ascontiguousarray(U, dtype=np.float32), targets, weight, n_units, seed)
    nodes: dict[str, list[np.ndarray]] = {name: [] for name in ("feature", "threshold", "left", "right")}
    unit_tree: list[np.ndarray] = []
    unit_node: list[np.ndarray] = []
    roots: list[int] = []
    n_nodes = 0
    for tree in found:
        leaf = tree.left == _LEAF
        compared = np.where(leaf, 0, tree.feature)
        inverse = np.where(leaf, 1.0, inverse_std[compared])
        nodes["feature"].append(np.where(leaf, _LEAF, tree.feature))
        # From inputs with mean 0 and deviation 1 back to X.
        nodes["threshold"].append(np.where(leaf, 0.0, tree.threshold / inverse + mean[compared]))
        nodes["left"].append(np.where(leaf, _LEAF, tree.left + n_nodes))
        nodes["right"].append(np.where(leaf, _LEAF, tree.right + n_nodes))
        leaves = np.flatnonzero(leaf)[:-1]  # with the last they add up to one
        unit_tree.append(np.full(len(leaves), len(roots)))
        unit_node.append(leaves + n_nodes)
        roots.append(n_nodes)
        n_nodes += len(leaf)
    return Trees(
        n_inputs=X.shape[1],
        feature=np.concatenate(nodes["feature"]).astype(np.int64),
        threshold=np.concatenate(nodes["threshold"]),
        left=np.concatenate(nodes["left"]).astype(np.int64),
        right=np.concatenate(nodes["right"]).astype(np.int64),
        roots=np.array(roots, dtype=np.int64),
        unit_tree=np.concatenate(unit_tree)[:n_units].astype(np.int64),
        unit_node=np.concatenate(unit_node)[:n_units].astype(np.int64),
    )


class _Tree(NamedTuple):
    """One tree on inputs with mean 0 and deviation 1: for each node its input, threshold and children, −1 in a leaf."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @property
    def n_units(self) -> int:
        """The leaves but one."""
        return int(np.count_nonzero(self.left == _LEAF)) - 1


def _one_by_one(
    rows: np.ndarray, targets: np.ndarray | None, weight: np.ndarray, n_units: int, seed: int
) -> list[_Tree]:
    """Trees of random and of best thresholds by turns, each on what those before it left of the targets."""
    found: list[_Tree] = []
    n_found = 0
    left = targets
    while n_found < n_units:
        tree = _grown_tree(rows, left, weight, seed=seed, number=len(found))
        if targets is not None and left is not None:
            left = _on_grid(left - _RATE * tree.value[tree.apply(rows), :, 0])
            if np.abs(left).max() <= _EXPLAINED * np.abs(targets).max():  # nothing is left: begin anew
                left = targets
        found.append(_Tree(tree.feature, tree.threshold, tree.children_left, tree.children_right))
        n_found += found[-1].n_units
    return found


def _boosted(rows: np.ndarray, target: np.ndarray, weight: np.ndarray, n_units: int) -> list[_Tree] | None:
    """The trees of gradient boosting; None if they find too few divisions for so many units.

    On one thread, since several candidates are fitted at a time, and sums do not depend on the machine then.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    weights = None if np.all(weight == weight[0]) else weight / weight.mean()
    n_trees = math.ceil(n_units / (LEAVES - 1))
    for _ in range(2):
        model = HistGradientBoostingRegressor(
            max_iter=n_trees,
            learning_rate=_RATE,
            max_leaf_nodes=LEAVES,
            max_depth=_DEPTH,
            min_samples_leaf=_LEAST_OF_MANY,
            early_stopping=False,
            random_state=0,
        )
        with ThreadpoolController().limit(limits=1, user_api="openmp"):
            model.fit(rows, target, sample_weight=weights)
        found = list(_trees_of(model))
        n_found = sum(tree.n_units for tree in found)
        if n_found >= n_units:
            return found
        if n_found == 0:
            return None
        n_trees = math.ceil(1.2 * n_trees * n_units / n_found)  # many have fewer leaves: once more, with more trees
    return None


def _trees_of(boosting: Any) -> Iterator[_Tree]:
    """The trees that divide, of a fitted model of scikit-learn, whose nodes have no public name."""
    for (predictor,) in boosting._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        if len(nodes) > 1:
            left, right = (np.where(leaf, _LEAF, nodes[side].astype(np.int64)) for side in ("left", "right"))
            yield _Tree(nodes["feature_idx"].astype(np.int64), nodes["num_threshold"].astype(np.float64), left, right)


# Trees that say which inputs matter: how many, their leaves, and the most rows and entries that they look at.
_TREES_ASKED = 20
_LEAVES_ASKED = 64
_ROWS_ASKED = 5_000
_ENTRIES_ASKED = 1_000_000


def importance_of_inputs(X: np.ndarray, y: np.ndarray | None, weight: np.ndarray, *, labels: bool) -> np.ndarray | None:
    """How much of the targets' variance the divisions of extremely randomized trees by each input explain, as a share.

    A first look at many inputs: trees find those that matter one by one, where a random layer drowns them among the
    others. None if there is nothing to explain.
    """
    from sklearn.tree import ExtraTreeRegressor

    targets = _targets(y, weight, labels=labels)
    if targets is None:
        return None
    some = slice(max(500, min(_ROWS_ASKED, _ENTRIES_ASKED // max(1, X.shape[1]))))
    rows, _ = standardized(X[some], weight[some], EPS)
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    targets, weight = targets[some], _without_unit(weight[some])
    rng = np.random.RandomState(0)
    by_tree = []
    # scikit-learn's forest of these trees takes twice as long, for its copies and checks of each.
    for _ in range(_TREES_ASKED):
        model = ExtraTreeRegressor(
            max_leaf_nodes=_LEAVES_ASKED,
            min_samples_leaf=LEAST_ROWS,
            max_features=1.0,
            random_state=rng.randint(np.iinfo(np.int32).max),
        )
        tree = model.fit(rows, targets, sample_weight=weight, check_input=False).tree_
        if tree.node_count > 1:
            # Where a division explains nothing, rounding may leave less than nothing.
            by_tree.append(np.maximum(tree.compute_feature_importances(), 0.0))
    shares = np.mean(by_tree, axis=0) if by_tree else np.zeros(1)
    total = np.sum(shares)
    return shares / total if np.isfinite(total) and total > 0.0 else None


def _targets(y: np.ndarray | None, weight: np.ndarray, *, labels: bool) -> np.ndarray | None:
    """Targets with deviation 1, or for labels whether a row has each of them; None if they are all equal."""
    if y is None:
        return None
    if labels:
        found, codes = np.unique(y, return_inverse=True)
        if len(found) < 2:
            return None
        T = (codes[:, None] == np.arange(1 if len(found) == 2 else len(found))).astype(np.float64)
        return _on_grid((T - weight @ T / weight.sum()) * _SMALL)
    T = y.reshape(len(y), -1).astype(np.float64)
    T = T / np.maximum(np.abs(T).max(axis=0), np.finfo(np.float64).tiny)  # so that no square overflows
    T, inverse_std = standardized(T, weight, EPS)
    if not inverse_std.any():
        return None
    return _on_grid(T[:, inverse_std > 0.0] * _SMALL)


def _on_grid(T: np.ndarray) -> np.ndarray:
    """Targets on a grid, so that sums are exact: where two divisions are equally good, rounding must not decide.

    And so small that the variance of equal targets, which is rounding, is below the 2·10⁻¹⁶ from which scikit-learn
    divides on.
    """
    return np.round(T / _SMALL * _GRID) / _GRID * _SMALL


def _without_unit(weight: np.ndarray) -> np.ndarray:
    """Weights times a power of two, which rounds nothing: scikit-learn finds no division with weights of 1e-200."""
    return np.ldexp(weight, 1 - np.frexp(weight.max())[1])


def _grown_tree(rows: np.ndarray, targets: np.ndarray | None, weight: np.ndarray, *, seed: int, number: int) -> Any:
    """scikit-learn's tree of this number, with at least two leaves.

    Every second tree takes the best of all thresholds, among half of the inputs and of a few thousand rows: random ones
    come near a jump of the target only slowly.
    """
    from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

    rng = np.random.default_rng([seed, number])
    # As in scikit-learn's forests; one random input where there is nothing to explain, as in RandomTreesEmbedding.
    max_features: Any = 1.0 if targets is not None else 1
    y = rng.random(len(rows)) if targets is None else targets
    kind: Any = ExtraTreeRegressor
    if targets is not None and number % 2 == 1:
        kind, max_features = DecisionTreeRegressor, 0.5
        if len(rows) > _ROWS_FOR_BEST:
            some = rng.choice(len(rows), _ROWS_FOR_BEST, replace=False)
            rows, y, weight = rows[some], y[some], weight[some]
    # A threshold that leaves too few rows on one side is not drawn again in the same tree; at last one row is enough.
    for least in [max(1, min(LEAST_ROWS, len(rows) // 2))] * _ATTEMPTS + [1]:
        model = kind(
            max_leaf_nodes=LEAVES,
            max_depth=_DEPTH,
            min_samples_leaf=least,
            max_features=max_features,
            random_state=int(rng.integers(2**31 - 1)),
        )
        tree = model.fit(rows, y, sample_weight=weight, check_input=False).tree_
        if tree.node_count > 1:
            return tree
    raise ValueError(
        "weight_init='trees' divides training rows by their inputs, but scikit-learn finds no division of these: give "
        "rows that differ more, or use weight_init='uniform'."
    )
