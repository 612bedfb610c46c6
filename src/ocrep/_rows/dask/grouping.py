"""Which tasks of a graph serve one partition alone: they run as one, so that nothing but summaries is sent about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """The tasks of a graph that some partitions need."""

    shared: dict[Any, Any]
    """Those that several partitions use, or that must stay by themselves."""
    own: tuple[tuple[Any, ...], ...]
    """Those that each partition has for itself."""


def grouped(graph: dict[Any, Any], partitions: Sequence[Iterable[Any]]) -> Grouped:
    """Group the tasks of a graph by the only partition that they serve; `partitions` are the keys that each reads.

    Data frames still have some tasks as tuples, which do not say what they need. Then nothing is grouped.
    """
    if not all(hasattr(node, "dependencies") for node in graph.values()):
        return Grouped(graph, ((),) * len(partitions))
    links: dict[Any, Iterable[Any]] = {key: node.dependencies for key, node in graph.items()}
    owner: dict[Any, int | None] = {}

    def claim(key: Any, number: int | None) -> None:
        owner[key] = number if owner.setdefault(key, number) == number else None

    for number, keys in enumerate(partitions):
        for key in keys:
            claim(key, number)
    for key in reversed(list(TopologicalSorter(links).static_order())):  # those that use a task come before it
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
    return Grouped(shared, tuple(map(tuple, own)))
