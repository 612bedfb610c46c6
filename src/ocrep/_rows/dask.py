"""Rows of Dask collections, worked on where they lie; their summaries are sent and merged, in a tree.

One graph does a whole accumulation. Each partition has one node, in which its rows are made (read, computed) and
summarized, so that rows stay where they are, but for a sample and the first block; eight summaries at a time are
merged, on whichever worker has them. For that, the tasks of the collections' own graph are sorted: a task that serves
one partition alone is fused into its node (`_own_tasks`), and tasks that several partitions use stay nodes of their
own. `compute` sees one key, the root of the tree.

A partition is `MemoryRows` on its worker, so that checks, surveys and routes are the same code as for arrays. What the
collection declares of its columns and types is compared with what a partition really holds.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from graphlib import TopologicalSorter
from itertools import accumulate as running
from operator import methodcaller
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.base import compute, get_scheduler, optimize
from dask.core import flatten
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import Alias, DataNode, List, Task, TaskRef

from ocrep._rows.block import Block
from ocrep._rows.checks import (
    check_counts,
    check_lengths,
    check_numeric,
    check_shape,
    check_targets,
    naming,
    warn_of_column,
)
from ocrep._rows.memory import MemoryRows, Merged, Rows, columns_of, kind_of
from ocrep._rows.survey import Needs, Survey

# Eight results of (M + Q)² numbers at a time keep a worker's memory small and the tree flat.
ARITY = 8
# Work of at most this many bytes is sent with each partition; what is larger is sent to each worker once.
LIGHT = 100_000
# How often a cluster tries a task again when it raises; the scheduler itself handles a worker that dies.
RETRIES = 2


def _own_tasks(
    graph: dict[Any, Any], partitions: Sequence[Iterable[Any]]
) -> tuple[dict[Any, Any], tuple[tuple[Any, ...], ...]]:
    """The tasks that several partitions use, or that must stay by themselves, and the tasks of each partition alone.

    `partitions` are the keys that each partition reads. Data frames still have some tasks as tuples, which do not say
    what they need. Then all tasks are shared.
    """
    if not all(hasattr(node, "dependencies") for node in graph.values()):
        return graph, ((),) * len(partitions)
    links: dict[Any, Iterable[Any]] = {key: node.dependencies for key, node in graph.items()}
    owner: dict[Any, int | None] = {}

    def claim(key: Any, number: int | None) -> None:
        owner[key] = number if owner.setdefault(key, number) == number else None

    for number, keys in enumerate(partitions):
        for key in keys:
            claim(key, number)
    for key in reversed(list(TopologicalSorter(links).static_order())):  # the users of a task come before it
        if key not in owner or key not in graph:
            continue
        if graph[key].block_fusion:  # Dask asks for it
            owner[key] = None
        for below in links[key]:
            claim(below, owner[key])
    own: list[list[Any]] = [[] for _ in partitions]
    shared = {}
    for key, mine in owner.items():
        if key not in graph:  # persisted rows, which the scheduler knows
            continue
        if mine is None:
            shared[key] = graph[key]
        else:
            own[mine].append(graph[key])
    return shared, tuple(map(tuple, own))


# ------------------------------------------------------------------------------
# `Partitions`: the rows of Dask collections, worked on where they lie and merged in a tree; lazy maps over them.


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """Rows `[X, y, …]` in partitions, each a node of one graph that is never held here."""

    names: tuple[str, ...]
    """What the parts of the rows are: "X", "y", and "sample_weight" and "groups" if they are given."""
    shared: dict[Any, Any]
    """Tasks that make the rows of several partitions."""
    own: tuple[tuple[Any, ...], ...]
    """Tasks that make the rows of one partition alone."""
    rows: tuple[Any, ...]
    """What gives each partition's rows."""

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Partitions:
        """Bring the partitions of X, y, the weights and the groups side by side, without computing any."""
        more = {"sample_weight": sample_weight, "groups": groups}
        named = {"X": X, "y": check_targets(y), **{name: part for name, part in more.items() if part is not None}}
        kinds = {name: _kind(name, part) for name, part in named.items()}
        if len(set(kinds.values())) > 1:
            named_kinds = ", ".join(f"{name} a Dask {kind}" for name, kind in kinds.items())
            raise ValueError(
                f"Partitions are only aligned among the same kind, and here {named_kinds}: see to_dask_array()."
            )
        _check_axes(named)
        for name, part in named.items():
            _check_kept(name, part)
        return cls._of_arrays(named) if kinds["X"] == "array" else cls._of_frames(named)

    @classmethod
    def _of_frames(cls, named: dict[str, Any]) -> Partitions:
        X, *others = named.values()
        for name, part in named.items():
            if part.npartitions != X.npartitions:
                raise ValueError(
                    f"{name} has {part.npartitions} partitions and X has {X.npartitions}: take both from one Dask "
                    "dataframe, or repartition one like the other."
                )
        # One expression for all of them, so that a file is read once for X and y, and only the columns in use.
        rows = X.map_partitions(
            _together, *others, meta=X._meta, align_dataframes=False, enforce_metadata=False
        ).optimize()
        keys = [[key] for key in flatten(rows.__dask_keys__())]
        return cls(tuple(named), *_own_tasks(_naming([rows], keys), keys), tuple(TaskRef(key) for [key] in keys))

    @classmethod
    def _of_arrays(cls, named: dict[str, Any]) -> Partitions:
        X = in_row_chunks(named["X"])
        aligned = [X, *(_like(X, name, in_row_chunks(part)) for name, part in named.items() if name != "X")]
        sources = optimize(*aligned)
        keys = list(zip(*(flatten(source.__dask_keys__()) for source in sources), strict=True))
        rows = tuple(List(*map(TaskRef, row)) for row in keys)
        return cls(tuple(named), *_own_tasks(_naming(sources, keys), keys), rows)

    def first(self, n_parts: int) -> Partitions:
        """The first partitions alone."""
        return replace(self, rows=self.rows[:n_parts])

    def merged(self, what: str, work: Callable[..., Any], merge: Callable[..., Any]) -> Any:
        """merge(…) in a tree over work(rows, number) of every partition; only the result comes here.

        The tree depends on the number of partitions alone, and so does the order of rounding.
        """
        check_cluster()
        tree = self.tree(what, work, merge)
        try:
            (result,) = compute(tree, retries=RETRIES, traverse=False)
        except Exception as error:
            check_cluster(error)
            raise
        return result

    def tree(self, what: str, work: Callable[..., Any], merge: Callable[..., Any]) -> Delayed:
        """The graph of `merged`: one node per partition, a seventh of that for merging, and one for heavy work.

        A partition is made and worked on in one node. A scheduler deals such nodes out evenly if they have a name of
        their own and no inputs; nodes with a common input would all go to the worker that has it.
        """
        name = f"ocrep-{what}-{uuid4().hex}"
        layer: dict[Any, Any] = dict(self.shared)
        given: Any = work
        if not _is_light(work):  # a node and not scattered data: a cluster makes it anew when its worker dies
            layer[f"{name}-work"] = DataNode(f"{name}-work", work)
            given = TaskRef(f"{name}-work")
        nodes: list[Any] = [(f"{name}-part", number) for number in range(len(self.rows))]
        for number, (key, rows) in enumerate(zip(nodes, self.rows, strict=True)):
            layer[key] = Task.fuse(*self.own[number], Task(key, _call, given, rows, number))
        level = 0
        while level == 0 or len(nodes) > 1:
            level += 1
            below = [nodes[i : i + ARITY] for i in range(0, len(nodes), ARITY)]
            nodes = [(name, level, i) for i in range(len(below))]
            for key, parts in zip(nodes, below, strict=True):
                layer[key] = Task(key, _merge, merge, *map(TaskRef, parts))
        graph = HighLevelGraph.from_collections(name, layer)
        return Delayed(nodes[0], graph, layer=name)


def _is_light(work: Callable[..., Any]) -> bool:
    try:
        return len(pickle.dumps(work)) <= LIGHT
    except Exception:  # a lambda, which only Dask can send, or what only threads can use
        return False


def _call(work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


def _merge(merge: Callable[[Any, Any], Any], *parts: Any) -> Any:
    filled = [part for part in parts if part is not None]
    return reduce(merge, filled) if filled else None


def lazily(function: Callable[..., Any], model: Any, X: Any, like: np.ndarray) -> Any:
    """A Dask array of function(block, model, like) over the partitions of X, in the shape and type of `like`."""
    model = delayed(model, traverse=False)  # one node of the graph, whatever the number of partitions
    if _kind("X", X) == "dataframe":
        return X.map_partitions(function, model, like, meta=like, align_dataframes=False, enforce_metadata=False)
    X = in_row_chunks(X)
    shape: dict[str, Any] = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], (like.shape[1],))}
    return X.map_blocks(function, model=model, like=like, meta=like, dtype=like.dtype, **shape)


def partition(collection: Any, number: int) -> Any:
    """The rows of one partition of a frame or series, computed."""
    return compute(collection.partitions[number])[0]


def described(X: Any) -> tuple[Any, np.dtype]:
    """What is known of X without computing it: something with its columns and no rows, and its type as a float."""
    kind = _kind("X", X)
    _check_axes({"X": X})
    if kind == "array":
        return np.empty((0, X.shape[1])), _as_float(X.dtype)
    _check_numeric(X.dtypes)
    try:
        return X._meta, _as_float(np.result_type(*X.dtypes))
    except TypeError:  # types of pandas' own
        return X._meta, np.dtype(np.float64)


def _check_numeric(dtypes: Any) -> None:
    """Name a column of texts, dates or categories before anything is computed; objects may yet be numbers."""
    for name, dtype in dtypes.items():
        if str(dtype) != "object" and not getattr(dtype, "_is_numeric", getattr(dtype, "kind", "O") in "biuf"):
            check_numeric(name, kind_of(dtype))


def check_cluster(cause: Exception | None = None) -> None:
    """Raise if the scheduler in use belongs to a client whose cluster is gone; waiting for it would never end."""
    client = getattr(get_scheduler(), "__self__", None)
    if client is not None and getattr(client, "status", "running") != "running":
        raise RuntimeError(
            f"The Dask cluster is closed (its client is {client.status!r}): start one and make a new Client, or use "
            "dask.config.set(scheduler='threads')."
        ) from cause


def first_rows(X: Any) -> tuple[int, ...] | None:
    """The number of the first row of each partition, and of all rows last; None where their sizes are unknown."""
    sizes = X.chunks[0] if isinstance(X, da.Array) else (math.nan,)
    return None if _unknown(sizes) else (0, *running(map(int, sizes)))


def in_row_chunks(array: Any) -> Any:
    """The array with all columns of a row in one chunk."""
    return array.rechunk({1: -1}) if array.ndim == 2 and array.numblocks[1] > 1 else array


def _like(X: Any, name: str, part: Any) -> Any:
    """`part` in the row chunks of X."""
    sizes = part.chunks[0]
    wanted = X.chunks[0]
    if not _unknown(sizes) and not _unknown(wanted):
        check_lengths(sum(wanted), **{name: part})
        return part.rechunk({0: wanted})
    if len(sizes) != len(wanted):
        raise ValueError(
            f"{name} has {len(sizes)} chunks of rows and X has {len(wanted)}, some of unknown size, so that they "
            "cannot be aligned: call compute_chunk_sizes() on both, or make them from the same partitions."
        )
    return part


def _kind(name: str, part: Any) -> str:
    """The kind of a collection; series count as dataframes."""
    if isinstance(part, da.Array):
        return "array"
    # A Delayed object claims to have every attribute.
    if not isinstance(part, Delayed) and hasattr(part, "map_partitions") and hasattr(part, "divisions"):
        return "dataframe"
    raise TypeError(
        f"{name} is a {type(part).__name__}, and with Dask X, y, sample_weight and groups must be Dask arrays, or Dask "
        "dataframes and series: convert it, for instance by dask.array.from_array."
    )


def _check_axes(named: dict[str, Any]) -> None:
    X = named["X"]
    check_shape(X.shape if isinstance(X, da.Array) else ("…", *X.shape[1:]))  # a dataframe does not know its rows
    for name, part in named.items():
        if not part.ndim:
            raise ValueError(f"{name} is one number, but each row of X needs its own.")
    if isinstance(named["X"], da.Array) and math.isnan(named["X"].shape[1]):
        raise ValueError("The number of columns of X is unknown: call compute_chunk_sizes() first.")


def _check_kept(name: str, part: Any) -> None:
    """Raise if rows were persisted on a cluster that no longer has them."""
    futures = (node for node in dict(part.__dask_graph__()).values() if hasattr(node, "cancelled"))
    if any(future.status in ("cancelled", "lost") for future in futures):
        raise RuntimeError(
            f"Partitions of {name} were persisted on a Dask cluster that is closed or has lost them: make the "
            "collection anew."
        )


def _unknown(sizes: tuple[float, ...]) -> bool:
    """Whether a size is NaN, Dask's way to say that it is not known."""
    return math.isnan(sum(sizes))


def _as_float(dtype: Any) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _naming(sources: Iterable[Any], partitions: Iterable[Iterable[Any]]) -> dict[Any, Any]:
    """The graph of the sources, in which an error that is raised while rows are made names their partition."""
    graph: dict[Any, Any] = {}
    for source in sources:
        graph.update(source.__dask_graph__())
    for number, keys in enumerate(partitions):
        for key in keys:
            # Persisted rows are not in the graph: the scheduler knows their keys.
            while isinstance(node := graph.get(key), Alias) and node.target != key:
                key = node.target
            if type(node) is Task and node.func is not _made:
                graph[key] = Task(key, _made, number, node.func, *node.args, **node.kwargs)
    return graph


def _made(number: int, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return function(*args, **options)
    except Exception as error:
        error.add_note(f"This was raised while the rows of partition {number} were made.")
        raise


def _together(*rows: Any) -> tuple[Any, ...]:
    return rows


# ------------------------------------------------------------------------------
# `DaskRows`: the rows of Dask collections, worked on where they are.


@dataclass(frozen=True, slots=True)
class Declared:
    """What a collection says of its columns before anything is computed."""

    n_inputs: int
    columns: tuple[str, ...] | None
    dtype: np.dtype
    names: tuple[str, ...] = ()
    """What the arrays of a partition are: X, y, sample_weight, groups."""
    firsts: tuple[int, ...] | None = None
    """The number of the first row of each partition, where these are known."""


class DaskRows(Rows):
    """Dask arrays, or dataframes and series, whose partitions belong together."""

    local = False

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> None:
        self._partitions = Partitions.of(X, y, sample_weight, groups)
        columns, dtype = described(X)
        firsts = first_rows(X)
        self.n_rows = None if firsts is None else firsts[-1]
        self.n_parts = len(self._partitions.rows)
        self._declared = Declared(columns.shape[1], columns_of(columns), dtype, self._partitions.names, firsts)
        self.grouped = groups is not None
        self._target_axes = y.ndim
        self._one_column = tuple(y.shape[1:]) == (1,)
        self._needs = Needs(labels=False, range=False)

    def check(self, needs: Needs) -> int | None:
        """Keep what the partitions are to be checked for, each where it lies."""
        self._needs = needs
        return self.n_rows

    def survey(self, needs: Needs) -> Survey:
        """Look at all partitions for ranges, labels and a sample, if they are needed."""
        self.check(needs)
        if needs.labels and self._one_column:
            warn_of_column()  # on a cluster, the warnings of workers do not come here
        if not (needs.range or needs.labels or needs.groups or needs.sample):
            declared = self._declared
            nothing = np.empty(declared.n_inputs)
            shape = (1,) * (self._target_axes - 1)
            return Survey(0, 1.0, nothing, nothing, declared.dtype, target_shape=shape, columns=declared.columns)
        survey = self._run("survey", methodcaller("survey", needs), Survey.merge, None)
        check_counts(*((0, 0.0) if survey is None else (survey.n_rows, survey.weight_sum)))
        return survey

    def blocks(self, code: Callable[[Block], Block], size: int, skip: int = 0) -> Iterator[Block]:
        raise TypeError("The rows of Dask collections stay with the workers that hold them.")

    def accumulate(
        self,
        step: Callable[[Rows], Merged | None],
        merge: Callable[[Merged, Merged], Merged],
        *,
        n_parts: int | None = None,
    ) -> Any:
        """step(partition) on the worker that holds it, then a tree of merges; a partition may have no rows."""
        summary = self._run("accumulate", step, merge, n_parts)
        if summary is None and n_parts is None:
            check_counts(0, 0.0)
        return summary

    def _run(
        self, what: str, step: Callable[[Rows], Any], merge: Callable[[Any, Any], Any], n_parts: int | None
    ) -> Any:
        some = self._partitions if n_parts is None else self._partitions.first(n_parts)
        return some.merged(what, partial(_on_partition, step, self._declared, self._needs), merge)


def _on_partition(step: Callable[[Rows], Any], declared: Declared, needs: Needs, arrays: Any, number: int) -> Any:
    """step(rows) of one partition, in the memory of its worker; None if it has no rows."""
    first = 0 if declared.firsts is None else declared.firsts[number]
    given = dict(zip(declared.names, arrays, strict=True))
    with naming(f"Partition {number}"):
        rows = MemoryRows(**given, part=f"Partition {number}", number=number, first=first)
        if rows.check(needs) == 0:
            return None
        X, columns = rows.inputs()
        if (X.shape[1], columns) != (declared.n_inputs, declared.columns):
            found = f"{X.shape[1]} columns {list((columns or ())[:8])}"
            wanted = f"{declared.n_inputs} columns {list((declared.columns or ())[:8])}"
            raise ValueError(f"the rows have {found}, but the collection declares {wanted}.")
        if X.dtype != declared.dtype:
            raise ValueError(f"the values are {X.dtype}, but the collection declares {declared.dtype}: use astype.")
        return step(rows)
