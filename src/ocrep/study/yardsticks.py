"""Published numbers against ours: percentiles, ratios to OCReP, winners, and what a perfect reproduction would score.

A published error is the mean over fifty draws on one unknown split. Ours is a distribution over many splits. The
yardstick is the percentile of the published number in that distribution; a perfect reproduction has percentiles spread
evenly over 0 to 100, and the same split moves all numbers of a data set together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

from ocrep.analysis.significance import ROUNDING, corrected_paired_t_test
from ocrep.study.decision import Decision, condition_ratio, decide, published_log_ratio
from ocrep.study.protocol import REFERENCE_SPLIT, REGRESSION, TEST_SHARE, Variant
from ocrep.study.published import SIZE_CHOSEN, Cell, Rivalry, cells, rivalries, winner
from ocrep.study.results import Results
from ocrep.study.spread import Spread, difference, log_ratio, paired

INSIDE = (1.0, 99.0)  # percentiles
WELCH_LEVEL, PAIRED_LEVEL = 0.01, 0.05  # the first is the paper's 99 %
STD_FACTOR = CONDITION_FACTOR = 2.0
N_SIMULATED, SEED = 10_000, 0


@dataclass(frozen=True, eq=False)
class Study:
    """Results, the reading of the paper that they support, and what is known about their run."""

    results: Results
    about: Mapping[str, Any]

    @cached_property
    def decision(self) -> Decision:
        """Which reading of the paper is the reproduction."""
        return decide(self.results)

    @property
    def variant(self) -> Variant:
        """The reproduction."""
        return self.decision.variant

    @property
    def elm_size(self) -> int:
        """The hidden size of the comparison with ELM."""
        return int(self.about["protocol"]["elm_size"])

    def numbers(self, cell: Cell, variant: Variant | None = None, name: str = "error") -> Mapping[Any, float]:
        """Return our numbers that belong to a published cell, by split and draw."""
        variant = variant or self.variant
        kind, n_hidden, method = self._case(cell, variant)
        if kind not in ("fixed", "chosen"):
            variant = Variant()
        return self.results.numbers(kind, cell.data, variant, n_hidden, method, name)

    def spread(self, cell: Cell, variant: Variant | None = None, name: str = "error") -> Spread:
        """Return the same grouped by split."""
        return Spread.of(self.numbers(cell, variant, name))

    def _case(self, cell: Cell, variant: Variant) -> tuple[str, int, str]:
        if cell.quoted:
            return "literature", 0, cell.method
        if cell.experiment in SIZE_CHOSEN:
            return "chosen", 0, cell.method
        n_hidden = self.elm_size if cell.experiment == "elm" else cell.n_hidden
        return "fixed", n_hidden, variant.gcv if cell.method == "gcv" else cell.method

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """All published errors, judged."""
        return tuple(Judged.of(self, cell) for cell in cells() if cell.experiment != "condition_ratio")

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All published comparisons, judged."""
        return tuple(Pair.of(self, rivalry) for rivalry in rivalries())

    @cached_property
    def conditions(self) -> tuple[ConditionRatio, ...]:
        """All published ratios of condition numbers, judged."""
        published = [cell for cell in cells() if cell.experiment == "condition_ratio"]
        return tuple(ConditionRatio(c, condition_ratio(self.results, self.variant, c)) for c in published)


@dataclass(frozen=True, eq=False)
class Judged:
    """A published error with its standard deviation and size, and ours."""

    cell: Cell
    spread: Spread
    percentile: float | None  # None if fewer than two splits were run
    sizes: Mapping[int, float]  # our M̄ by split, where a path or the method chooses it

    @classmethod
    def of(cls, study: Study, cell: Cell) -> Judged:
        """Judge a cell."""
        spread, sizes = study.spread(cell), {}
        if cell.experiment in SIZE_CHOSEN:
            by_split = study.spread(cell, name="n_hidden").by_split
            sizes = {split: float(np.median(values)) for split, values in by_split.items()}
        return cls(cell, spread, spread.percentile(cell.error, cell.rounding), sizes)

    @property
    def run(self) -> bool:
        """Whether there is anything to compare with."""
        return bool(self.spread.by_split)

    @property
    def inside(self) -> bool | None:
        """Whether the published error lies between the 1st and the 99th percentile."""
        return None if self.percentile is None else INSIDE[0] <= self.percentile <= INSIDE[1]

    @property
    def std(self) -> float | None:
        """Our standard deviation over draws on a typical split."""
        return self.spread.typical_deviation

    @property
    def std_agrees(self) -> bool | None:
        """Whether the published standard deviation is within a factor of two of ours."""
        return None if self.std is None or self.cell.std is None else close(self.cell.std, self.std)

    @property
    def own_std_agrees(self) -> bool | None:
        """The same for our own reference split, as if the paper had used it: a std over so many draws is noisy too."""
        own = self.spread.deviations.get(REFERENCE_SPLIT)
        others = {split: values for split, values in self.spread.by_split.items() if split != REFERENCE_SPLIT}
        rest = Spread(others, self.spread.positive).typical_deviation
        return None if own is None or rest is None else close(own, rest)

    @property
    def size_inside(self) -> bool | None:
        """Whether the published M̄ lies between the smallest and the largest of ours."""
        if len(self.sizes) < 2:
            return None
        return min(self.sizes.values()) <= self.cell.n_hidden <= max(self.sizes.values())


def close(a: float, b: float, factor: float = STD_FACTOR) -> bool:
    """Whether two numbers ≥ 0 are within a factor of each other; two zeros are."""
    return a <= factor * b and b <= factor * a


@dataclass(frozen=True, slots=True, eq=False)
class ConditionRatio:
    """A published ratio of mean condition numbers, and ours by split."""

    cell: Cell
    by_split: Mapping[int, float]

    @property
    def ours(self) -> float | None:
        """The ratio on the reference split."""
        return self.by_split.get(REFERENCE_SPLIT)

    @property
    def digit(self) -> bool | None:
        """Whether ours rounds to the printed digit."""
        return None if self.ours is None else abs(self.ours - self.cell.error) <= self.cell.rounding

    @property
    def within(self) -> bool | None:
        """Whether ours is within a factor of two of the printed number."""
        return None if self.ours is None else close(self.ours, self.cell.error, CONDITION_FACTOR)


@dataclass(frozen=True, eq=False)
class Pair:
    """A published comparison of OCReP with a rival, and ours on the splits and draws that both have.

    `ratio` is log(rival/OCReP) for regression and the difference in percentage points for classification: a hard split
    is hard for both, so it depends on the split much less than the errors do.
    """

    rivalry: Rivalry
    ocrep: Spread
    rival: Spread
    ratio: Spread
    percentile: float | None

    @classmethod
    def of(cls, study: Study, rivalry: Rivalry) -> Pair:
        """Judge a comparison."""
        cell = rivalry.rival
        a, b = paired(study.numbers(rivalry.ocrep), study.numbers(cell))
        if cell.data in REGRESSION:
            ratio, (low, high) = log_ratio(b, a), published_log_ratio(rivalry)
        else:
            ratio, gap = difference(b, a), cell.error - rivalry.ocrep.error
            rounding = cell.rounding + rivalry.ocrep.rounding
            low, high = gap - rounding, gap + rounding
        return cls(rivalry, a, b, ratio, ratio.percentile((low + high) / 2, (high - low) / 2))

    @property
    def run(self) -> bool:
        """Whether both methods have results."""
        return bool(self.ratio.by_split)

    @property
    def inside(self) -> bool | None:
        """Whether the published ratio lies between the 1st and the 99th percentile."""
        return None if self.percentile is None else INSIDE[0] <= self.percentile <= INSIDE[1]

    @cached_property
    def winner(self) -> str | None:
        """The method with the smaller error in the mean over splits, "tie" if they are equal up to rounding."""
        if not self.run:
            return None
        return _better(*(fmean(spread.means.values()) for spread in (self.ocrep, self.rival)))

    @property
    def same_winner(self) -> bool | None:
        """Whether the winner is the paper's; None if either has a tie."""
        if self.winner in (None, "tie") or self.rivalry.winner == "tie":
            return None
        return self.winner == self.rivalry.winner

    @cached_property
    def share(self) -> float | None:
        """On which share of our splits the paper's winner wins; ties count half."""
        if not self.run or self.rivalry.winner == "tie":
            return None
        a, b = self.ocrep.means, self.rival.means
        on_split = [_better(a[split], b[split]) for split in a]
        return float(np.mean([0.5 if w == "tie" else float(w == self.rivalry.winner) for w in on_split]))

    @cached_property
    def welch(self) -> str | None:
        """The verdict of the paper's own test on our reference split: Welch's t-test over draws, at 99 %."""
        a, b = self.ocrep.reference, self.rival.reference
        if min(len(a), len(b)) < 2:
            return None
        means, deviations = (fmean(a), fmean(b)), (float(np.std(a, ddof=1)), float(np.std(b, ddof=1)))
        better = _better(*means)
        if max(deviations) <= ROUNDING * max(means):  # without noise every difference is significant
            return better
        (m_a, m_b), (s_a, s_b) = means, deviations
        found = stats.ttest_ind_from_stats(m_a, s_a, len(a), m_b, s_b, len(b), equal_var=False)
        return better if found.pvalue < WELCH_LEVEL else "tie"

    @cached_property
    def paired_test(self) -> tuple[str, float] | None:
        """The verdict of the corrected paired test over splits at 5 %, and its p-value."""
        splits = sorted(self.ocrep.means.keys() & self.rival.means.keys())
        if len(splits) < 2:
            return None
        found = corrected_paired_t_test(
            [self.ocrep.means[s] for s in splits], [self.rival.means[s] for s in splits], test_share=TEST_SHARE
        )
        return (winner(found.difference) if found.p_value < PAIRED_LEVEL else "tie"), found.p_value

    def as_paper(self, ours: str | None) -> bool | None:
        """Whether a verdict of ours agrees with the paper's; with "not rival" both "tie" and "ocrep" agree."""
        if ours is None:
            return None
        return ours != "rival" if self.rivalry.verdict == "not rival" else ours == self.rivalry.verdict


def _better(ocrep: float, rival: float) -> str:
    return "tie" if abs(ocrep - rival) <= ROUNDING * max(abs(ocrep), abs(rival)) else winner(ocrep - rival)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How many published numbers lie inside, and how many would if the paper had used one of our splits."""

    inside: int
    total: int
    expected: float
    low: float  # the 5th and the 95th percentile of the expected number
    high: float


def calibrate(judged: Iterable[Judged | Pair]) -> Calibration:
    """Count those inside, and simulate papers: each data set gets one of our own splits, judged by the others.

    All numbers of a data set share the split, so the count varies much more than by chance of single cells.
    """
    known = [one for one in judged if one.inside is not None]
    by_data: dict[str, dict[int, list[bool]]] = {}
    for one in known:
        spread, rounding, data = _simulated(one)
        splits = by_data.setdefault(data, {})
        for split, place in spread.percentiles_of_own(rounding).items():
            splits.setdefault(split, []).append(INSIDE[0] <= place <= INSIDE[1])
    rng = np.random.default_rng(SEED)
    totals = np.zeros(N_SIMULATED)
    for splits in by_data.values():
        n_cells = max(map(len, splits.values()), default=0)
        # Cells without results on a split are taken to be inside as often as the others there.
        counts = [n_cells * float(np.mean(inside)) for inside in splits.values()]
        totals += rng.choice(counts, N_SIMULATED) if counts else 0.0
    low, high = (float(end) for end in np.percentile(totals, (5.0, 95.0)))
    return Calibration(sum(bool(one.inside) for one in known), len(known), float(totals.mean()), low, high)


def _simulated(one: Judged | Pair) -> tuple[Spread, float, str]:
    if isinstance(one, Judged):
        return one.spread, one.cell.rounding, one.cell.data
    low, high = published_log_ratio(one.rivalry)
    regression = one.rivalry.rival.data in REGRESSION
    rounding = (high - low) / 2 if regression else one.rivalry.rival.rounding + one.rivalry.ocrep.rounding
    return one.ratio, rounding, one.rivalry.rival.data


def share(answers: Iterable[bool | None]) -> str:
    """Return how many of the answers that are not None are true, as "3 of 5"."""
    known = [answer for answer in answers if answer is not None]
    return f"{sum(known)} of {len(known)}"


def of_methods(judged: Sequence[Judged], *methods: str) -> list[Judged]:
    """Return the cells of some methods at fixed sizes."""
    return [one for one in judged if one.cell.method in methods and one.cell.experiment not in SIZE_CHOSEN]
