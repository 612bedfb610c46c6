"""Our results compared with the published ones: every cell, every pair of methods, and how often they agree.

Records may come in any order: all lists are sorted and all means are exactly rounded, so that equal results give equal
bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeGuard

import numpy as np
from scipy import stats

from ocrep.analysis.significance import ROUNDING, corrected_paired_t_test
from ocrep.study.protocol import ELM_SIZE, REFERENCE_SPLIT, TEST_SHARE
from ocrep.study.published import SIZE_CHOSEN, Cell, Rivalry, winner

WELCH_LEVEL, PAIRED_LEVEL = 0.01, 0.05  # the first is the paper's 99 %
# The kinds of records with an error, and the second number that each of them tells.
KINDS = {"fixed": "condition", "path": "n_hidden", "literature": "n_hidden", "peak": "n_rows"}

Key = tuple[str, str, int | None, str]  # kind of result, data set, hidden size (None if the method chooses it), method
Values = dict[tuple[int, int], float]  # one number per (split, draw)


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
    by_split: dict[int, float]  # the mean of each split
    low: float  # the smallest of them
    high: float


@dataclass(frozen=True, slots=True)
class CellResult:
    """A published cell and ours; `ours` is None if it was not run, `inside` if there are fewer than 2 splits."""

    cell: Cell
    ours: Summary | None
    inside: bool | None
    n_hidden: float | None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """A published comparison and ours; verdicts and winners are "ocrep", "rival" or "tie", or None if not known."""

    rivalry: Rivalry
    run: bool  # whether there are results for both methods
    welch: str | None = None  # by Welch's t-test over draws on the reference split, at 99 %
    paired: str | None = None  # by the corrected paired test over splits, at 5 %
    winner: str | None = None  # by the mean difference over draws on the reference split
    winner_over_splits: str | None = None

    @property
    def agreement(self) -> tuple[bool | None, ...]:
        """Whether winner, winner over splits, Welch's verdict and the paired verdict are those of the paper."""
        winners = (same_winner(ours, self.rivalry) for ours in (self.winner, self.winner_over_splits))
        return *winners, *(same_verdict(ours, self.rivalry) for ours in (self.welch, self.paired))


def collect(records: Iterable[Mapping[str, Any]]) -> Results:
    """Sort flat records into cases; records without a finite error are counted, but not used."""
    values: dict[Key, Values] = {}
    without_number: set[tuple[Any, ...]] = set()
    for record in records:
        kind, n_hidden, error = record["kind"], record.get("n_hidden"), record.get("error")
        if kind not in KINDS:
            continue
        data, method, place = record["data"], record["method"], (record["split"], record["draw"])
        if not _finite(error):
            reason = record.get("reason") or "no finite error"
            without_number.add(((data, n_hidden, method, reason), kind, place))
            continue
        size = n_hidden if kind in ("fixed", "peak") else None
        for name, number in ((kind, error), (f"{kind} {KINDS[kind]}", record.get(KINDS[kind]))):
            if not _finite(number):
                continue
            known = values.setdefault((name, data, size, method), {}).setdefault(place, number)
            if known != number:
                raise ValueError(
                    f"Two results differ for {name} {data} {method} n_hidden={size}, split {place[0]}, "
                    f"draw {place[1]}: {known!r} and {number!r}. The folder mixes results of different runs: start "
                    "again in an empty one."
                )
    return Results(values, dict(Counter(case for case, *_ in without_number)))


def _finite(number: float | None) -> TypeGuard[float]:
    return number is not None and math.isfinite(number)


def summarise(values: Values) -> Summary | None:
    """Return mean and std on the reference split, and the mean of every split; None without values."""
    if not values:
        return None
    errors: dict[int, list[float]] = {}
    for split, draw in sorted(values):
        errors.setdefault(split, []).append(values[split, draw])
    by_split = {split: fmean(of_split) for split, of_split in errors.items()}
    reference = errors.get(REFERENCE_SPLIT, [])
    std = float(np.std(reference, ddof=1)) if len(reference) > 1 else math.nan
    return Summary(mean(reference), std, len(reference), by_split, min(by_split.values()), max(by_split.values()))


def mean(numbers: Iterable[float]) -> float:
    """Return the mean, exactly rounded and so independent of the order; NaN of an empty iterable."""
    listed = list(numbers)
    return fmean(listed) if listed else math.nan


def ratio_of_means(results: Results, data: str, n_hidden: int, over: str) -> float:
    """Return the ratio of mean condition numbers on the reference split, which is how the paper describes its table."""
    pairs = _conditions(results, data, n_hidden, over)
    above, below = (mean(v for (split, _), v in values.items() if split == REFERENCE_SPLIT) for values in pairs)
    return above / below


def _conditions(results: Results, data: str, n_hidden: int, over: str) -> tuple[Values, Values]:
    """The condition numbers under OCReP and under another method, on the draws that have both."""
    above, below = (results.of("fixed condition", data, n_hidden, method) for method in ("ocrep", over))
    common = sorted(above.keys() & below.keys())
    return {place: above[place] for place in common}, {place: below[place] for place in common}


def case_of(cell: Cell) -> Key:
    """Return the case of ours that corresponds to a published cell."""
    if cell.experiment in ("relm", "trop_elm", "elm") and cell.method != "ocrep":
        return "literature", cell.data, None, cell.method
    if cell.experiment in SIZE_CHOSEN:
        return "path", cell.data, None, cell.method
    return "fixed", cell.data, ELM_SIZE if cell.experiment == "elm" else cell.n_hidden, cell.method


def compare_cell(cell: Cell, results: Results) -> CellResult:
    """Compare a published cell with ours."""
    kind, *_ = case = case_of(cell)
    values = results.of(*case)
    if cell.experiment == "condition_ratio":
        above, below = _conditions(results, cell.data, cell.n_hidden, cell.method.removeprefix("ocrep/"))
        values = {place: above[place] / below[place] for place in above}
    ours, inside = summarise(values), None
    if ours is not None and len(ours.by_split) > 1:
        # One row in 45 is 2.2222 %, printed as 2.22: digits that the paper did not print are not a disagreement.
        inside = ours.low - cell.rounding <= cell.error <= ours.high + cell.rounding
    size = typical_size(results, kind, cell.data, cell.method) if cell.experiment in SIZE_CHOSEN else None
    return CellResult(cell, ours, inside, size)


def typical_size(results: Results, kind: str, data: str, method: str) -> float | None:
    """Return the median of the hidden sizes chosen on the reference split."""
    sizes = results.of(f"{kind} n_hidden", data, None, method)
    chosen = [size for (split, _), size in sizes.items() if split == REFERENCE_SPLIT]
    return float(np.median(chosen)) if chosen else None


def compare_pair(rivalry: Rivalry, results: Results) -> ComparisonResult:
    """Compare OCReP with a rival, as the paper did."""
    a, b = (summarise(results.of(*case_of(cell))) for cell in (rivalry.ocrep, rivalry.rival))
    if a is None or b is None:
        return ComparisonResult(rivalry, run=False)
    splits = sorted(a.by_split.keys() & b.by_split.keys())
    over_splits = [[summary.by_split[split] for split in splits] for summary in (a, b)]
    winners = [
        None if math.isnan(difference) else winner(difference)
        for difference in (a.mean - b.mean, mean(x - y for x, y in zip(*over_splits, strict=True)))
    ]
    return ComparisonResult(rivalry, True, welch_verdict(a, b), _paired_verdict(*over_splits), *winners)


def welch_verdict(a: Summary, b: Summary) -> str | None:
    """Return the verdict of the paper's test: Welch's t-test over draws, at 99 %."""
    if min(a.n_draws, b.n_draws) < 2:
        return None
    negligible = ROUNDING * max(abs(a.mean), abs(b.mean))
    if max(a.std, b.std) <= negligible:
        # If the draws do not differ, there is no noise: any difference beyond rounding is significant.
        significant = abs(a.mean - b.mean) > negligible
    else:
        found = stats.ttest_ind_from_stats(a.mean, a.std, a.n_draws, b.mean, b.std, b.n_draws, equal_var=False)
        significant = bool(found.pvalue < WELCH_LEVEL)
    return winner(a.mean - b.mean) if significant else "tie"


def _paired_verdict(a: list[float], b: list[float]) -> str | None:
    if len(a) < 2:
        return None
    found = corrected_paired_t_test(a, b, test_share=TEST_SHARE)
    return winner(found.difference) if found.p_value < PAIRED_LEVEL else "tie"


def share(answers: Iterable[bool | None]) -> str:
    """Return how many of the answers that are not None are true, as "3 of 5"."""
    known = [answer for answer in answers if answer is not None]
    return f"{sum(known)} of {len(known)}"


def same_winner(ours: str | None, rivalry: Rivalry) -> bool | None:
    """Whether the same method has the smaller mean error; None if the paper prints equal numbers or nothing ran."""
    return None if ours is None or rivalry.winner == "tie" else ours == rivalry.winner


def same_verdict(ours: str | None, rivalry: Rivalry) -> bool | None:
    """Whether a verdict of ours agrees with the paper's; with "not rival" both "tie" and "ocrep" agree."""
    if ours is None:
        return None
    return ours != "rival" if rivalry.verdict == "not rival" else ours == rivalry.verdict
