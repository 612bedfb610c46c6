"""The rows on which candidates are compared: all of them in memory if they are few, else a sample in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocrep._rows.memory import MemoryRows
from ocrep._rows.rows import Rows
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
    stand_for: np.ndarray | None = None
    """How many rows each row of a sample stands for: more for those of common labels, since of rare ones a few are
    always there."""


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
    sampled = replace(needs, sample=max(needs.sample, size), totals=needs.labels, every_label=needs.labels)
    survey = rows.survey(sampled)
    last = _all(rows, survey, needs) if whole else _sampled(survey, size, needs)
    if last.n_rows <= _FEWER * first_round:
        return (last,)
    return _sampled(survey, first_round, needs), last


def _all(rows: Rows, survey: Survey, needs: Needs) -> Compared:
    sample = survey.sample.first(needs.sample) if survey.sample is not None and needs.sample else None
    return Compared(rows, replace(survey, sample=sample), survey.n_rows, True)


def _sampled(survey: Survey, size: int, needs: Needs) -> Compared:
    """A sample of the rows that were surveyed, with all their labels."""
    assert survey.sample is not None
    sample = survey.sample.first(size, every_label=needs.labels)
    weight = None if bool((sample.weight == 1.0).all()) else sample.weight
    rows = MemoryRows(sample.X.astype(survey.dtype), sample.y, weight)
    own = rows.survey(replace(needs, totals=needs.labels))
    if own.labels is not None and own.totals is not None:
        assert survey.labels is not None  # a class of no weight has no row in the sample, but is a class
        totals = np.zeros(len(survey.labels))
        totals[np.searchsorted(survey.labels, own.labels)] = own.totals
        own = replace(own, labels=survey.labels, totals=totals)
    return Compared(rows, own, len(sample.hashes), False, sample.stand_for() if needs.labels else None)
