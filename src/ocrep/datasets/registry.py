"""The data sets of registry.toml: names, sizes, origins, citations and licences."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ocrep._errors import pick


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One data set: its size, origin, citation and licence, and whether the package contains it.

    Parameters
    ----------
    name : str
        What `load` takes.
    task : {"regression", "classification"}
        What is predicted.
    n_rows, n_features : int
        The size of the table.
    n_classes : int or None
        The number of classes; None for regression.
    origin, citation, licence : str
        Where the data come from, how to cite them, and what may be done with them.
    bundled : bool
        Whether the package contains the data.
    notes : str
        What else to know.

    See Also
    --------
    load : The data themselves.

    Examples
    --------
    >>> from ocrep.datasets import info
    >>> print(info()[0].describe().splitlines()[0])
    abalone: regression, 4177 rows, 8 inputs
    """

    name: str
    task: Literal["regression", "classification"]
    n_rows: int
    n_features: int
    n_classes: int | None = None
    origin: str = field(repr=False)
    citation: str = field(repr=False)
    licence: str
    bundled: bool = True
    notes: str = field(default="", repr=False)

    def describe(self) -> str:
        """Return the record as a short text, which `load` returns as `DESCR`.

        Returns
        -------
        str
            Size, origin, citation, licence and notes, one on each line.
        """
        classes = f", {self.n_classes} classes" if self.n_classes else ""
        lines = [
            f"{self.name}: {self.task}, {self.n_rows} rows, {self.n_features} inputs{classes}",
            f"Origin: {self.origin}",
            f"Citation: {self.citation}",
            f"Licence: {self.licence}",
        ]
        if self.notes:
            lines += [f"Notes: {self.notes}"]
        return "\n".join(lines)


class DataSets(tuple[DataSet, ...]):
    """A tuple of records that prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        line = "{:<15} {:<14} {:>5} {:>6} {:>7}  {:<7}  {}".format
        rows = [line("name", "task", "rows", "inputs", "classes", "bundled", "licence")]
        for s in self:
            bundled = "yes" if s.bundled else "no"
            rows += [line(s.name, s.task, s.n_rows, s.n_features, s.n_classes or "", bundled, s.licence)]
        return "\n".join(rows)


_RECORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
REGISTRY = DataSets(DataSet(**record) for record in _RECORDS["data_set"])
PENGUINS = DataSet(**_RECORDS["table"][0])


def names() -> list[str]:
    """Return the names of the data sets that `load` accepts.

    Returns
    -------
    list of str
        The names.

    See Also
    --------
    info : Sizes, tasks and licences too.

    Examples
    --------
    >>> from ocrep import datasets
    >>> datasets.names()[:3]
    ['abalone', 'machine_cpu', 'delta_ailerons']
    """
    return [record.name for record in REGISTRY]


def info() -> DataSets:
    """Return the records of all data sets, which print as a table.

    Returns
    -------
    tuple of DataSet
        One record for each data set.

    See Also
    --------
    load : The data themselves.

    Examples
    --------
    >>> from ocrep import datasets
    >>> [data_set.name for data_set in datasets.info() if data_set.task == "classification"]
    ['iris', 'diabetes', 'wine', 'segment']
    """
    return REGISTRY


def find(name: str) -> DataSet:
    """Return the record of a data set; raise a ValueError that lists the names if there is none of that name."""
    return pick("data set", name, {record.name: record for record in REGISTRY})
