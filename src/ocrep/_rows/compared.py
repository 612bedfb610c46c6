"""The rows on which candidates are compared: all of them in memory if they are few, else a sample in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocrep._rows.memory import MemoryRows
from ocrep._rows.rows import Rows
from ocrep._rows.sample import RowSample
from ocrep._rows.survey import Needs, Survey

# A first round is worth its time if the second has so many times as many rows.
_FEWER = 4


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Rows for one round of comparisons."""

    rows: Rows
    survey: Survey
    n_rows: int
    whole: bool
    """Whether these are all rows that there are."""


def rows_to_compare(
    rows: Rows, needs: Needs, most_rows: int, first_round: int, *, by_content: bool
) -> tuple[Compared, ...]:
    """The rows of the only round, or of two: the first has fewer.

    Samples are drawn by what rows hold, so folds must be too (`by_content`); else all rows are compared.
    """
    in_memory = isinstance(rows, MemoryRows)
    n_rows = rows.check(needs) if isinstance(rows, MemoryRows) else most_rows + 1
    if not by_content or (in_memory and n_rows <= min(most_rows, _FEWER * first_round)):
        return (_all(rows, rows.survey(needs), needs),)
    whole = in_memory and n_rows <= most_rows
    size = first_round if whole else most_rows
    survey = rows.survey(replace(needs, sample=max(needs.sample, size)))
    sample = survey.sample
    assert sample is not None
    if needs.labels and len(np.unique(_labels(sample.first(first_round)))) < 2:  # a class so rare that no sample has it
        return (_all(rows, survey, needs),)
    last = _all(rows, survey, needs) if whole else _sampled(sample.first(size), needs, survey)
    if last.n_rows <= _FEWER * first_round:
        return (last,)
    return _sampled(sample.first(first_round), needs, survey), last


def _all(rows: Rows, survey: Survey, needs: Needs) -> Compared:
    sample = survey.sample.first(needs.sample) if survey.sample is not None and needs.sample else None
    return Compared(rows, replace(survey, sample=sample), survey.n_rows, True)


def _sampled(sample: RowSample, needs: Needs, survey: Survey) -> Compared:
    weight = None if bool((sample.weight == 1.0).all()) else sample.weight
    rows = MemoryRows(sample.X.astype(survey.dtype), sample.y, weight)
    return Compared(rows, rows.survey(needs), len(sample.hashes), False)


def _labels(sample: RowSample) -> np.ndarray:
    assert sample.y is not None
    return sample.y
