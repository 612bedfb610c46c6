"""`scan`: name rows that need not fit into memory, without reading them; and `ScanRows`, which a fit reads.

Blocks come from a `Source` in any size, and are checked, coded and cut to the block size of the fit. Each reading of
the rows must give the same rows: files are compared by their fingerprints before and after, and all sources by the
number of rows. A survey reads as little as it can: what Parquet files state of their columns, then only targets and
groups, then whole rows. A generator can be read only once: its first block stands for all rows in the survey, and waits
until the fit reads on.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ocrep._documentation import shown_in_short
from ocrep._rows.block import Block, recut
from ocrep._rows.checks import check_columns, check_counts, checked, is_missing
from ocrep._rows.memory import Rows
from ocrep._rows.sources import ArraySource, IterableSource, Source, is_on_disk
from ocrep._rows.survey import Needs, Range, Survey

ProgressFunction = Callable[[int, "int | None"], None]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scan:
    """Rows that `fit` and `predict_blocks` read block by block; made by `ocrep.scan`."""

    source: Source
    classes: np.ndarray | None = None
    progress: ProgressFunction | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = 60.0

    __repr__ = shown_in_short


def scan(
    source: Any,
    target: Any = None,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    columns: Sequence[str] | None = None,
    classes: Iterable[Any] | None = None,
    progress: ProgressFunction | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Scan:
    """Name rows on disk or in a stream, without reading them: `model.fit(ocrep.scan("data/*.parquet", target="y"))`.

    Parameters
    ----------
    source : path, list of paths, pyarrow.dataset.Dataset, array, iterable or callable
        - Files: Parquet, CSV, Feather or Arrow; a folder or a glob stands for its files in the order of their names.
          Addresses such as `"s3://bucket/rows/*.parquet"` too, of every file system that Arrow knows.
        - An array that is read slice by slice: `numpy.memmap`, HDF5, Zarr.
        - Blocks `(X, y)`, `(X, y, sample_weight)` or `(X, y, sample_weight, groups)`, or frames of pandas, polars or
          Arrow with `target`: from a list or another iterable that starts anew each time, from a function that gives a
          fresh iterator, or from a generator, which can be read once only.
    target : str or list of str, or an array
        The column of the targets (a list: several), or for arrays the targets themselves. Not needed to predict.
    sample_weight : str, or an array
        The column of the weights, or for arrays the weights themselves.
    groups : str, or an array
        The column of the groups, or for arrays the groups themselves; for rules that divide rows by groups, such as
        `rules.KFold(split="groups")`.
    columns : list of str, default=None
        The inputs; by default all columns but targets, weights and groups. They are found by name in every file.
    classes : array-like, default=None
        All labels, for classifiers. Only rows that can be read just once need it; elsewhere it saves a reading of them.
    progress : callable, default=None
        Called as `progress(rows_done, rows_in_all or None)` after each block; each reading of the rows counts anew.
    checkpoint : path, default=None
        A file in which `fit` saves how far it has come, so that the same call made again after a crash goes on from
        there, with the same result to the last bit. It is removed when the fit is done.
    checkpoint_every : float, default=60.0
        Seconds between two saves; 0 saves after every block.

    Returns
    -------
    Scan
        What `fit` and `predict_blocks` take in the place of arrays.

    See Also
    --------
    ocrep.parts.plan : Rows on several machines.

    Examples
    --------
    >>> import ocrep
    >>> with open("rows.csv", "w") as file:
    ...     _ = file.write("x,y\\n0,1\\n1,3\\n2,5\\n")
    >>> model = ocrep.TikhonovRegressor(0.0).fit(ocrep.scan("rows.csv", target="y"))
    >>> float(model.coef_[0].round(6))
    2.0
    """
    if not (isinstance(checkpoint_every, Real) and float(checkpoint_every) >= 0.0):
        raise ValueError(f"checkpoint_every={checkpoint_every!r} must be a number of seconds ≥ 0.")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress={progress!r} must be a function of the rows done and the rows in all.")
    labels = None if classes is None else _labels(classes)
    roles = {"target": target, "sample_weight": sample_weight, "groups": groups, "columns": _names(columns)}
    return Scan(
        _source_of(source, roles, labels),
        labels,
        progress,
        None if checkpoint is None else Path(checkpoint),
        float(checkpoint_every),
    )


def _labels(classes: Any) -> np.ndarray:
    """The given classes, sorted; of one kind, so that texts and numbers are never taken for each other."""
    found = list(classes) if isinstance(classes, Iterable) else []
    if not found or any(is_missing(label) for label in found):
        raise ValueError(f"classes={classes!r} must be a list of all labels, at least one, and none of them missing.")
    if len({isinstance(label, str) for label in found}) > 1:
        raise ValueError(f"classes={classes!r} mixes texts with numbers: make them all the same, as in the rows.")
    return np.unique(np.asarray(found))


def _names(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not len(columns):
        raise ValueError(f"columns={columns!r} must be a list of names, at least one.")
    return tuple(columns)


def _check_roles(target: Any, columns: tuple[str, ...] | None, **others: Any) -> None:
    """A column has one role: a target among the inputs would be learned by heart."""
    targets = [target] if isinstance(target, str) else target
    if not (targets is None or (isinstance(targets, list | tuple) and all(isinstance(name, str) for name in targets))):
        raise TypeError(
            f"target is a {type(target).__name__}, but here it names a column of the rows, or a list of them."
        )
    for name, given in others.items():
        if not (given is None or isinstance(given, str)):
            raise TypeError(f"{name} is a {type(given).__name__}, but here it names a column of the rows.")
    named = [*(targets or ()), *(given for given in others.values() if given is not None), *(columns or ())]
    twice = next((name for name, times in Counter(named).items() if times > 1), None)
    if twice is not None:
        raise ValueError(
            f"The column {twice!r} is named twice among target, {', '.join(others)} and columns: each column has one "
            "role."
        )


def check_not_a_plan(source: Any, reader: str) -> None:
    """Raise for a plan that has no rows yet, since computing it would bring all of them into memory."""
    if hasattr(type(source), "__dask_graph__"):
        raise TypeError(f"{reader} cannot read Dask collections: give them to fit and predict themselves.")
    if type(source).__name__ == "LazyFrame":
        raise TypeError(
            f"{reader} cannot read a LazyFrame, which is a plan without rows: scan the files that it reads, write it "
            "by sink_parquet and scan that, or give frame.collect()."
        )


def _source_of(source: Any, roles: dict[str, Any], labels: np.ndarray | None) -> Source:
    check_not_a_plan(source, "ocrep.scan")
    if is_on_disk(source) or isinstance(source, np.ndarray) or sparse.issparse(source):
        if roles["columns"] is not None:
            raise ValueError("columns= names columns of files and frames, and this is an array: slice it instead.")
        return ArraySource(source, roles["target"], roles["sample_weight"], roles["groups"])
    _check_roles(**roles)
    if _names_files(source):
        try:
            from ocrep._rows.files import FileSource
        except ModuleNotFoundError:
            raise ImportError('ocrep.scan on files needs pandas and pyarrow: pip install "ocrep[files]".') from None
        return FileSource.of(source, **roles, text_labels=None if labels is None else labels.dtype.kind not in "biuf")
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return IterableSource([source], **roles)  # a frame in memory is one block
    if (callable(source) or hasattr(source, "__iter__")) and not isinstance(source, bytes | Mapping):
        return IterableSource(source, **roles)
    raise TypeError(
        f"ocrep.scan cannot read a {type(source).__name__}: give paths, a pyarrow dataset, an array, or an iterable of "
        "(X, y) blocks."
    )


def _names_files(source: Any) -> bool:
    if isinstance(source, str | os.PathLike) or type(source).__module__.startswith("pyarrow._dataset"):
        return True
    return (
        isinstance(source, list | tuple)
        and len(source) > 0
        and all(isinstance(item, str | os.PathLike) for item in source)
    )


def inputs_of(source: Any) -> Source:
    """Rows to predict on, of every kind that `predict_blocks` takes."""
    if isinstance(source, Scan):
        return source.source
    check_not_a_plan(source, "predict_blocks")
    if isinstance(source, np.ndarray) or sparse.issparse(source) or is_on_disk(source):
        return ArraySource(source)
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return IterableSource([source])
    if isinstance(source, Iterable) and not isinstance(source, str | bytes):
        return IterableSource(source)
    raise TypeError(
        f"predict_blocks cannot read a {type(source).__name__}: give ocrep.scan(…), an array, or an iterable of blocks."
    )


# ------------------------------------------------------------------------------
# `ScanRows`: the rows of a scan, surveyed, checked and cut to blocks of one size.


class ScanRows(Rows):
    """Rows as often as their source can give them."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.once = scan.source.once
        self.classes_given = scan.classes is not None
        self.checkpoint = None if scan.checkpoint is None else (scan.checkpoint, scan.checkpoint_every)
        self._n_read: int | None = None
        self._first: Block | None = None
        self._opened: Iterator[Block] | None = None
        self._range: Range | None = None
        self._fingerprints: tuple[str, ...] = ()
        self._dtype = np.dtype(np.float64)
        self._needs = Needs(labels=False, range=False)

    def check(self, needs: Needs) -> int | None:
        """Let the source check what it can without reading rows."""
        del needs
        self.scan.source.check()
        self.n_rows = self.scan.source.n_rows()
        return self.n_rows

    def survey(self, needs: Needs) -> Survey:
        """What is known of all rows: from files' statistics where they state it, else by reading the columns."""
        self.check(needs)
        self._fingerprints = self.fingerprints()
        first = self._first_block()
        self._first = None  # not kept: it may be large
        self._needs = needs
        self._n_inputs = first.X.shape[1]
        self._columns = first.columns
        first = checked(first, labels=needs.labels, groups=needs.groups)
        self._target_shape = first.y.shape[1:]
        survey = self._surveyed(first, needs)
        self._dtype = survey.dtype
        if self.once and needs.range and not survey.weight_sum > 0.0:
            raise ValueError(
                "The first block of a stream gives the inputs' range, but it has no row of positive weight: "
                "give the model input_scaling=(low, high)."
            )
        return survey

    def blocks(self, code: Callable[[Block], Block], size: int, skip: int = 0) -> Iterator[Block]:
        """Blocks behind the first `skip` rows, all of `size` rows but for the last."""
        blocks = self._read(skip=skip)
        if self._dtype == np.float64:  # some files may hold float32, and blocks of both types are joined
            blocks = (replace(block, X=block.X.astype(np.float64, copy=False)) for block in blocks)
        return recut(map(code, blocks), size)

    def fingerprints(self) -> tuple[str, ...]:
        return self.scan.source.fingerprints()

    def _read(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All blocks, checked; reports progress, and makes sure that each reading gives as many rows."""
        done = skip
        self.n_parts_read = 0
        self.scan.source.check_unchanged(self._fingerprints)
        # A stream goes on behind its first block, which the survey has looked at.
        blocks = self.scan.source.blocks(inputs=inputs, skip=skip) if self._opened is None else self._opened
        self._opened = None
        for block in blocks:
            if inputs:
                check_columns(block, self._n_inputs, self._columns, than="the first block")
                self._check_stated_range(block)
            block = checked(
                replace(block, first=done),
                labels=self._needs.labels,
                groups=self._needs.groups,
                shape=self._target_shape,
                inputs=inputs,
            )
            self.n_parts_read = block.part_number + 1
            done += block.X.shape[0]
            yield block
            # After the block was used, so that what is reported is done.
            if self.scan.progress is not None:
                self.scan.progress(done, self.n_rows)
        self.scan.source.check_unchanged(self._fingerprints)
        if self._n_read not in (None, done):
            raise ValueError(
                f"The source gave {self._n_read} rows when it was first read, and now {done}: it must give the same "
                "rows each time."
            )
        self._n_read = done

    @property
    def grouped(self) -> bool:  # type: ignore[override]
        """Whether the rows have groups."""
        stated = self.scan.source.grouped
        return self._first_block().groups is not None if stated is None else stated

    def _first_block(self) -> Block:
        """The first rows; a source that can be read only once gives them again when it is read on."""
        if self._first is None:
            self.scan.source.check()
            if self.scan.source.typical is not None:
                return self.scan.source.typical
            blocks = self.scan.source.blocks()
            self._first = next(blocks, None)
            if self._first is None:
                check_counts(0, 0.0)
                raise AssertionError
            if self.once:
                self._opened = chain([self._first], blocks)
        return self._first

    def _surveyed(self, first: Block, needs: Needs) -> Survey:
        classes = self.scan.classes
        source = self.scan.source
        counted = needs.labels and (classes is None or needs.totals)
        look = replace(needs, totals=counted)
        # The first block gives types and shapes, and stands for all rows where they can be read only once.
        survey = Survey.of(first, replace(needs, totals=False, groups=False))
        if source.typical is not None:
            survey = self._survey_of_typical(source.typical, look)
        elif not self.once and (needs.range or counted or needs.groups or needs.sample):
            # Rows of a class of weight 0 have no part in the range, but files state the range of all rows.
            ask = needs.range and needs.weigh is None and not needs.sample
            stated = source.stated_range() if ask else None
            if needs.sample or (needs.range and stated is None):
                survey = self._survey_of_all(look)
            else:
                self._range = stated
                low, high = stated or survey.range
                known = survey
                # Targets and groups are read without the inputs, which are most of a file.
                if counted or needs.groups:
                    known = self._survey_of_all(replace(look, range=False), inputs=False)
                survey = replace(known, low=low, high=high, dtype=survey.dtype, columns=survey.columns)
        return survey if not needs.labels or classes is None else _with_classes(survey, classes)

    def _survey_of_typical(self, typical: Block, needs: Needs) -> Survey:
        """What some rows say of all of them."""
        survey = Survey.of(checked(typical, labels=needs.labels, groups=needs.groups), needs)
        if survey.sample is None:
            return survey
        # A sample that is not full would be taken for all rows.
        full = min(survey.sample.size, len(survey.sample.hashes))
        return replace(survey, sample=replace(survey.sample, size=full))

    def _survey_of_all(self, needs: Needs, *, inputs: bool = True) -> Survey:
        classes = None if self.scan.classes is None else self.scan.classes.tolist()

        def survey_of(block: Block) -> Survey:
            survey = Survey.of(block, needs)
            if survey.labels is not None and classes is not None:
                unknown = [label for label in survey.labels.tolist() if label not in classes]
                if unknown:
                    raise ValueError(
                        f"{block.place}the label {unknown[0]!r} is not among the classes {classes}: name all "
                        "labels as classes=[…]."
                    )
            return survey

        survey = reduce(Survey.merge, map(survey_of, self._read(inputs=inputs)))
        check_counts(survey.n_rows, survey.weight_sum)
        return survey

    def _check_stated_range(self, block: Block) -> None:
        """The range was taken from files' statistics: values outside show that these are wrong."""
        if self._range is None:
            return
        low, high = self._range
        outside = (block.X.min(axis=0) < low) | (block.X.max(axis=0) > high)
        if outside.any():
            raise ValueError(
                f"{block.part}: column {block.column(int(np.flatnonzero(outside)[0]))} holds values outside the range "
                "that the files' statistics state: write the files anew, or give the model input_scaling=(low, high)."
            )


def _with_classes(survey: Survey, classes: np.ndarray) -> Survey:
    """The given classes instead of those found, with their weights."""
    if survey.labels is None or survey.totals is None:
        return replace(survey, labels=classes, totals=None)
    totals = np.zeros(len(classes))
    totals[np.searchsorted(classes, survey.labels)] = survey.totals
    return replace(survey, labels=classes, totals=totals)
