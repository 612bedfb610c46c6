"""`DaskRows`: the rows of Dask collections, worked on where they are; only summaries come here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ocrep._rows.checks import check_counts, naming, warn_of_column
from ocrep._rows.dask.partitions import Partitions, described, first_rows
from ocrep._rows.memory import MemoryRows, columns_of
from ocrep._rows.rows import Part, Rows, Summary
from ocrep._rows.survey import Needs, Survey


@dataclass(frozen=True, slots=True)
class Declared:
    """What a collection says of its columns before anything is computed."""

    n_inputs: int
    columns: tuple[str, ...] | None
    dtype: np.dtype
    names: tuple[str, ...] = ()
    """What the parts of the rows are, as `PartitionRows` takes them."""
    firsts: tuple[int, ...] | None = None
    """The number of the first row of each partition, where heights are known."""


class PartitionRows(MemoryRows):
    """The rows of one partition, in the memory of its worker."""

    def __init__(self, rows: Any, number: int, declared: Declared) -> None:
        first = 0 if declared.firsts is None else declared.firsts[number]
        parts = dict(zip(declared.names, rows, strict=True))
        super().__init__(**parts, part=f"Partition {number}", number=number, first=first)
        self._declared = declared

    def check(self, needs: Needs) -> int:
        """Compare the rows with what the collection declared."""
        n_rows, declared = super().check(needs), self._declared
        if not n_rows:
            return 0
        mine = self.described()
        if (mine.n_inputs, mine.columns) != (declared.n_inputs, declared.columns):
            told = [f"{d.n_inputs} columns {list((d.columns or ())[:8])}" for d in (mine, declared)]
            raise ValueError(f"the rows have {told[0]}, but the collection declares {told[1]}.")
        if mine.dtype != declared.dtype:
            raise ValueError(f"the values are {mine.dtype}, but the collection declares {declared.dtype}: use astype.")
        return n_rows

    def described(self) -> Declared:
        """What the rows turned out to be."""
        assert self._block is not None
        return Declared(self._block.X.shape[1], self._block.columns, self._block.X.dtype)


class DaskRows(Rows):
    """Dask arrays, or dataframes and series, whose partitions belong together."""

    local = False

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> None:
        self._partitions = Partitions.of(X, y, sample_weight, groups)
        columns, dtype = described(X)
        firsts = first_rows(X)
        self.n_rows = None if firsts is None else firsts[-1]
        self._declared = Declared(columns.shape[1], columns_of(columns), dtype, self._partitions.names, firsts)
        self._target_axes, self._one_column = y.ndim, tuple(y.shape[1:]) == (1,)

    def survey(self, needs: Needs) -> Survey:
        """A pass for ranges, labels and a sample, if they are needed."""
        if needs.labels and self._one_column:
            warn_of_column()  # on a cluster, the warnings of workers do not come here
        if not (needs.range or needs.labels or needs.groups or needs.sample):
            declared, nothing = self._declared, np.empty(self._declared.n_inputs)
            shape = (1,) * (self._target_axes - 1)
            return Survey(0, 1.0, nothing, nothing, declared.dtype, target_shape=shape, columns=declared.columns)
        survey = self._run("survey", partial(_survey, needs), Survey.merge, None)
        check_counts(*((0, 0.0) if survey is None else (survey.n_rows, survey.weight_sum)))
        return survey

    @property
    def n_parts(self) -> int:
        return len(self._partitions.rows)

    def accumulate(
        self,
        step: Callable[[Part], Summary | None],
        merge: Callable[[Summary, Summary], Summary],
        *,
        n_parts: int | None = None,
    ) -> Any:
        """Every partition on the worker that holds it, then a tree of merges."""
        summary = self._run("accumulate", step, merge, n_parts)
        if summary is None and n_parts is None:
            check_counts(0, 0.0)
        return summary

    def _run(
        self, what: str, step: Callable[[Part], Any], merge: Callable[[Any, Any], Any], n_parts: int | None
    ) -> Any:
        some = self._partitions if n_parts is None else self._partitions.first(n_parts)
        return some.accumulate(what, partial(_on_partition, step, self._declared), merge)


def _on_partition(step: Callable[[Part], Any], declared: Declared, rows: Any, number: int) -> Any:
    with naming(f"Partition {number}"):
        return step(PartitionRows(rows, number, declared))


def _survey(needs: Needs, part: PartitionRows) -> Survey | None:
    return part.survey(needs) if part.check(needs) else None
