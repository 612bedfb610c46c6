"""`ScanRows`: the rows of a scan, surveyed, checked and cut to blocks of one height."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import chain

import numpy as np

from ocrep._rows.block import Block, Triple, recut
from ocrep._rows.checks import check_columns, check_counts, checked, place_of
from ocrep._rows.rows import LocalRows
from ocrep._rows.scan.scan import Scan
from ocrep._rows.survey import Needs, Range, Survey


class ScanRows(LocalRows):
    """Rows as often as their source can give them."""

    def __init__(self, scan: Scan) -> None:
        self.scan, self.once, self.classes_given = scan, scan.source.once, scan.classes is not None
        self.checkpoint = None if scan.checkpoint is None else (scan.checkpoint, scan.checkpoint_every)
        self._n_read: int | None = None
        self._opened: Iterator[Block] | None = None
        self._range: Range | None = None
        self._fingerprints: tuple[str, ...] = ()
        self._dtype = np.dtype(np.float64)

    def check(self, needs: Needs) -> int | None:
        """Let the source check what it can without reading rows."""
        del needs
        self.scan.source.check()
        self.n_rows = self.scan.source.n_rows()
        return self.n_rows

    def survey(self, needs: Needs) -> Survey:
        """What is known of all rows: from files' statistics where they state it, else by a pass over the columns."""
        self.check(needs)
        self._fingerprints = self.fingerprints()
        first = self._first_block()
        self._labels, self._grouped = needs.labels, needs.groups
        self._n_inputs, self._columns = first.X.shape[1], first.columns
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

    def triples(self, code: Callable[[Block], Triple], height: int, skip: int = 0) -> Iterator[Triple]:
        """Blocks behind the first `skip` rows, all of `height` rows but for the last."""
        return recut((code(self._as_declared(block)) for block in self._read(skip=skip)), height)

    def fingerprints(self) -> tuple[str, ...]:
        return self.scan.source.fingerprints()

    def _as_declared(self, block: Block) -> Block:
        return replace(block, X=block.X.astype(self._dtype, copy=False)) if self._dtype == np.float64 else block

    def _read(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All blocks with their inputs checked; reports progress, and makes sure that each pass has as many rows."""
        done, self.n_parts_read = skip, 0
        self.scan.source.check_unchanged(self._fingerprints)
        opened, self._opened = self._opened, None
        for block in self.scan.source.blocks(inputs=inputs, skip=skip) if opened is None else opened:
            if inputs:
                check_columns(block, self._n_inputs, self._columns, than="the first block")
                self._check_stated_range(block)
            block = checked(
                replace(block, first=done),
                labels=self._labels,
                groups=self._grouped,
                shape=self._target_shape,
                inputs=inputs,
            )
            self.n_parts_read = block.part_number + 1
            done += block.X.shape[0]
            yield block
            if self.scan.progress is not None:
                self.scan.progress(done, self.n_rows)
        self.scan.source.check_unchanged(self._fingerprints)
        if self._n_read not in (None, done):
            raise ValueError(
                f"The source gave {self._n_read} rows when it was first read, and now {done}: it must give the same "
                "rows each time."
            )
        self._n_read = done

    def _first_block(self) -> Block:
        """The first rows; those of a source that is read once are kept for its only pass."""
        blocks = self.scan.source.blocks()
        first = next(blocks, None)
        if first is None:
            check_counts(0, 0.0)
            raise AssertionError
        if self.once:
            self._opened = chain([first], blocks)
        return first

    def _surveyed(self, first: Block, needs: Needs) -> Survey:
        classes, source = self.scan.classes, self.scan.source
        counted = needs.labels and (classes is None or needs.totals)
        look = replace(needs, totals=counted)
        survey = Survey.of(first, replace(needs, totals=False, groups=False))
        if not self.once and (needs.range or counted or needs.groups or needs.sample):
            # Rows of a class that counts nothing have no part in the range, but files state that of all rows.
            ask = needs.range and needs.weigh is None and not needs.sample
            stated = source.stated_range() if ask else None
            if needs.sample or (needs.range and stated is None):
                survey = self._survey_of_all(look)
            else:
                self._range = None if source.range_is_observed else stated
                low, high = stated or survey.range
                known = survey
                if counted or needs.groups:
                    known = self._survey_of_all(replace(look, range=False), inputs=False)
                survey = replace(known, low=low, high=high, dtype=survey.dtype, columns=survey.columns)
        return survey if not needs.labels or classes is None else _with_classes(survey, classes)

    def _survey_of_all(self, needs: Needs, *, inputs: bool = True) -> Survey:
        survey = reduce(Survey.merge, (self._survey_of(block, needs) for block in self._read(inputs=inputs)))
        check_counts(survey.n_rows, survey.weight_sum)
        return survey

    def _survey_of(self, block: Block, needs: Needs) -> Survey:
        survey = Survey.of(block, needs)
        classes = self.scan.classes
        if survey.labels is not None and classes is not None:
            unknown = [label for label in survey.labels.tolist() if label not in classes.tolist()]
            if unknown:
                raise ValueError(
                    f"{place_of(block)}the label {unknown[0]!r} is not among the classes {classes.tolist()}: "
                    "name all labels as classes=[…]."
                )
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
