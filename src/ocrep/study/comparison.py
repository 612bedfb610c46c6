"""Our results compared with the published ones: every cell, every pair of methods, and how often they agree.

Records may come in any order: all lists are sorted and all means are exactly rounded, so that equal results give equal
bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ocrep.analysis.significance import ROUNDING, corrected_paired_t_test
from ocrep.study.protocol import ELM_SIZE, REFERENCE_SPLIT, TEST_SHARE
from ocrep.study.published import SIZE_CHOSEN, Cell, Rivalry, misprint, winner

WELCH_LEVEL = 0.01  # the paper's 99 %
PAIRED_LEVEL = 0.05

Key = tuple[str, str, int | None, str]
"""Kind of result, data set, hidden size (None if it is chosen by the method), method."""
Values = dict[tuple[int, int], float]
"""One number per (split, draw)."""


@dataclass(frozen=True, slots=True)
class Results:
    """Numbers by case; `skipped` counts the records without a number by (data, size, method, reason)."""

    values: dict[Key, Values]
    skipped: dict[tuple[str, int | None, str, str], int]

    def of(self, kind: str, data: str, n_hidden: int | None, method: str) -> Values:
        """Return the numbers of one case; an empty dict if it was not run."""
        return self.values.get((kind, data, n_hidden, method), {})


@dataclass(frozen=True, slots=True)
class Summary:
    """One case: mean and std over the draws on the reference split (NaN if there are too few), range over splits."""

    mean: float
    std: float
    n_draws: int
    by_split: dict[int, float]
    """The mean of each split."""

    @property
    def low(self) -> float:
        """The smallest mean of a split."""
        return min(self.by_split.values())

    @property
    def high(self) -> float:
        """The largest mean of a split."""
        return max(self.by_split.values())


@dataclass(frozen=True, slots=True)
class CellResult:
    """A published cell and ours; `ours` is None if it was not run, `inside` if there are fewer than 2 splits."""

    cell: Cell
    ours: Summary | None
    inside: bool | None
    n_hidden: float | None
    note: str


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """A published comparison and ours; verdicts and winners are "ocrep", "rival" or "tie", or None if not known."""

    rivalry: Rivalry
    run: bool
    """Whether there are results for both methods."""
    flagged: bool
    """Whether one of the two published values is a suspected misprint."""
    welch: str | None = None
    """By Welch's t-test over draws on the reference split, at 99 %."""
    paired: str | None = None
    """By the corrected paired test over splits, at 5 %."""
    winner: str | None = None
    """By the mean difference over draws on the reference split."""
    winner_over_splits: str | None = None

    @property
    def agreement(self) -> tuple[bool | None, ...]:
        """Whether winner, winner over splits, Welch's verdict and the paired verdict are those of the paper."""
        winners = same_winner(self), same_winner(self, over_splits=True)
        return *winners, *(same_verdict(verdict, self.rivalry) for verdict in (self.welch, self.paired))


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of a total."""

    hits: int
    total: int

    def __str__(self) -> str:
        return f"{self.hits} of {self.total}"


def collect(records: Iterable[Mapping[str, Any]]) -> Results:
    """Sort flat records into cases; records without a finite error are counted, but not used."""
    values: dict[Key, Values] = {}
    without_number: set[tuple[Any, ...]] = set()
    for record in records:
        kind, n_hidden, error = record["kind"], record.get("n_hidden"), record.get("error")
        if kind not in ("fixed", "path", "literature", "peak"):
            continue
        if not _finite(error):
            reason = record.get("reason") or "no finite error"
            case = (record["data"], n_hidden, record["method"], reason)
            without_number.add((case, kind, record["split"], record["draw"]))
            continue
        if kind in ("fixed", "peak"):
            _put(values, kind, record, n_hidden, error)
        else:
            _put(values, kind, record, None, error)
            _put(values, f"{kind} size", record, None, n_hidden)
        if kind == "peak":
            _put(values, "peak rows", record, n_hidden, record["n_rows"])
        if kind == "fixed":
            _put(values, "condition", record, n_hidden, record.get("condition"))
    return Results(values, dict(Counter(case for case, *_ in without_number)))


def _finite(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def _put(values: dict[Key, Values], kind: str, record: Mapping[str, Any], n_hidden: Any, number: Any) -> None:
    if not _finite(number):
        return
    case = values.setdefault((kind, record["data"], n_hidden, record["method"]), {})
    place = (record["split"], record["draw"])
    if case.setdefault(place, number) != number:
        raise ValueError(
            f"Two results differ for {kind} {record['data']} {record['method']} n_hidden={n_hidden}, split {place[0]}, "
            f"draw {place[1]}: {case[place]!r} and {number!r}. The folder mixes results of different runs: start "
            "again in an empty one."
        )


def summarise(values: Values) -> Summary | None:
    """Return mean and std on the reference split, and the mean of every split; None without values."""
    if not values:
        return None
    by_split: dict[int, list[float]] = {}
    for split, draw in sorted(values):
        by_split.setdefault(split, []).append(values[split, draw])
    reference = by_split.get(REFERENCE_SPLIT, [])
    return Summary(
        mean=mean(reference),
        std=float(np.std(reference, ddof=1)) if len(reference) > 1 else math.nan,
        n_draws=len(reference),
        by_split={split: mean(errors) for split, errors in by_split.items()},
    )


def mean(numbers: Iterable[float]) -> float:
    """Return the mean, exactly rounded and so independent of the order; NaN of an empty iterable."""
    listed = list(numbers)
    return math.fsum(listed) / len(listed) if listed else math.nan


def ratios(results: Results, data: str, n_hidden: int, over: str) -> Values:
    """Return the condition number under OCReP over that under another method, draw by draw."""
    above, below = (results.of("condition", data, n_hidden, method) for method in ("ocrep", over))
    return {place: above[place] / below[place] for place in sorted(above.keys() & below.keys())}


def ratio_of_means(results: Results, data: str, n_hidden: int, over: str) -> float:
    """Return the ratio of mean condition numbers on the reference split, which is how the paper describes its table."""
    places = [place for place in ratios(results, data, n_hidden, over) if place[0] == REFERENCE_SPLIT]
    above, below = (results.of("condition", data, n_hidden, method) for method in ("ocrep", over))
    return mean(above[place] for place in places) / mean(below[place] for place in places) if places else math.nan


def case_of(cell: Cell) -> Key:
    """Return the case of ours that corresponds to a published cell."""
    if cell.experiment in ("relm", "trop_elm", "elm") and cell.method != "ocrep":
        return "literature", cell.data, None, cell.method
    if cell.experiment in SIZE_CHOSEN:
        return "path", cell.data, None, cell.method
    return "fixed", cell.data, ELM_SIZE if cell.experiment == "elm" else cell.n_hidden, cell.method


def compare_cell(cell: Cell, results: Results) -> CellResult:
    """Compare a published cell with ours."""
    size = None
    if cell.experiment == "condition_ratio":
        ours = summarise(ratios(results, cell.data, cell.n_hidden, cell.method.removeprefix("ocrep/")))
    else:
        case = case_of(cell)
        ours = summarise(results.of(*case))
        if ours is not None and cell.experiment in SIZE_CHOSEN:
            size = typical_size(results, case[0], cell.data, cell.method)
    inside = None
    if ours is not None and len(ours.by_split) > 1:
        # One row in 45 is 2.2222 %, printed as 2.22: digits that the paper did not print are not a disagreement.
        inside = ours.low - cell.rounding <= cell.error <= ours.high + cell.rounding
    return CellResult(cell, ours, inside, size, misprint(cell))


def typical_size(results: Results, kind: str, data: str, method: str) -> float | None:
    """Return the median of the hidden sizes chosen on the reference split."""
    sizes = results.of(f"{kind} size", data, None, method)
    chosen = [size for (split, _), size in sorted(sizes.items()) if split == REFERENCE_SPLIT]
    return float(np.median(chosen)) if chosen else None


def compare_pair(rivalry: Rivalry, results: Results) -> ComparisonResult:
    """Compare OCReP with a rival, as the paper did."""
    flagged = bool(misprint(rivalry.ocrep) or misprint(rivalry.rival))
    a, b = (summarise(results.of(*case_of(cell))) for cell in (rivalry.ocrep, rivalry.rival))
    if a is None or b is None:
        return ComparisonResult(rivalry, run=False, flagged=flagged)
    splits = sorted(a.by_split.keys() & b.by_split.keys())
    difference = mean(a.by_split[split] - b.by_split[split] for split in splits)
    return ComparisonResult(
        rivalry,
        run=True,
        flagged=flagged,
        welch=welch_verdict(a, b),
        paired=_paired_verdict([a.by_split[split] for split in splits], [b.by_split[split] for split in splits]),
        winner=None if math.isnan(a.mean - b.mean) else winner(a.mean - b.mean),
        winner_over_splits=None if math.isnan(difference) else winner(difference),
    )


def welch_verdict(a: Summary, b: Summary) -> str | None:
    """Return the verdict of the paper's test: Welch's t-test over draws, at 99 %."""
    if min(a.n_draws, b.n_draws) < 2:
        return None
    if max(a.std, b.std) <= ROUNDING * max(abs(a.mean), abs(b.mean)):
        # If the draws do not differ, there is no noise: any difference beyond rounding is significant.
        significant = abs(a.mean - b.mean) > ROUNDING * max(abs(a.mean), abs(b.mean))
    else:
        found = stats.ttest_ind_from_stats(a.mean, a.std, a.n_draws, b.mean, b.std, b.n_draws, equal_var=False)
        significant = bool(found.pvalue < WELCH_LEVEL)
    return winner(a.mean - b.mean) if significant else "tie"


def _paired_verdict(a: list[float], b: list[float]) -> str | None:
    if len(a) < 2:
        return None
    found = corrected_paired_t_test(a, b, test_share=TEST_SHARE)
    return winner(found.difference) if found.p_value < PAIRED_LEVEL else "tie"


def share(answers: Iterable[bool | None]) -> Share:
    """Count the true ones among the answers that are not None."""
    known = [answer for answer in answers if answer is not None]
    return Share(sum(known), len(known))


def same_winner(found: ComparisonResult, *, over_splits: bool = False) -> bool | None:
    """Whether the same method has the smaller mean error; None if the paper prints equal numbers or nothing ran."""
    ours = found.winner_over_splits if over_splits else found.winner
    return None if ours is None or found.rivalry.winner == "tie" else ours == found.rivalry.winner


def same_verdict(verdict: str | None, rivalry: Rivalry) -> bool | None:
    """Whether a verdict of ours agrees with the paper's; with "not rival" both "tie" and "ocrep" agree."""
    if verdict is None:
        return None
    return verdict != "rival" if rivalry.verdict == "not rival" else verdict == rivalry.verdict
