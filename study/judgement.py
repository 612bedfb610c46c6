"""How the paper is to be read, and how its published numbers compare with ours.

The paper leaves three things open (`Variant`). Each is decided by a rule that was fixed before the study was run, by
numbers that do not depend on the paper's unknown split, and before the errors of the other data sets are looked at:

1. The biases, by the condition numbers. Of the seven published ratios μ(H^reg)/μ(H⁺) (without Segment, where H is
   singular), the biases win that bring more ratios of mean condition numbers on the reference split into the printed
   digit; with as many, those whose ratios are nearer in the mean of |log(ours/published)|.
2. The scale of the regression targets, with those biases, by the published ratios of errors, rival over OCReP, on Delta
   Ailerons and Housing. Rivals are cross-validation, Kibria's and Hoerl and Kennard's estimates. The scale wins for
   which more published ratios lie in the central 95 % of the distribution over splits; with as many, the scale with
   the smaller mean distance from the medians, in standard deviations of that distribution.
3. Whether GCV's λ is multiplied by n, with those biases and targets, by the ratios GCV over OCReP in the same way.

Where nothing was run that could decide, the first reading stands.

Then every published number is compared with ours. A published error is the mean over fifty draws on one unknown split;
ours is a distribution over many splits (`results.Spread`). The yardstick is the percentile of the published number in
that distribution. A perfect reproduction has percentiles spread evenly over 0 to 100, and the same split moves all
numbers of a data set together; `calibrate` simulates how many numbers would then lie inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ocrep import significance
from study.protocol import BIASES, GCV_METHODS, REFERENCE_SPLIT, REGRESSION, TARGETS, TEST_SHARE, Variant
from study.published import NAMES, SIZE_CHOSEN, Cell, Rivalry, cells, rivalries, title, winner
from study.results import Results, Spread, difference, log_ratio, paired

DECIDING_SETS = ("delta_ailerons", "housing")
CENTRAL = (2.5, 97.5)  # percentiles
INSIDE = (1.0, 99.0)  # percentiles
WELCH_LEVEL = 0.01  # the paper's 99 %
PAIRED_LEVEL = 0.05
STD_FACTOR = CONDITION_FACTOR = 2.0
# Relative. Two methods that are the same model may differ by rounding, which is no difference.
ROUNDING = 1e-12
N_SIMULATED = 10_000
SEED = 0


# ------------------------------------------------------------------------------
# How the paper is to be read.


@dataclass(frozen=True, slots=True)
class Support:
    """How well one reading agrees with the published ratios."""

    reading: str
    inside: int
    total: int
    distance: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The reading chosen, and the support of each reading by question."""

    variant: Variant
    support: dict[str, tuple[Support, ...]]


def decide(results: Results) -> Decision:
    """Decide all three questions, one after the other."""
    variant = Variant()
    support = {}
    for question, readings in (("biases", BIASES), ("targets", TARGETS), ("gcv", GCV_METHODS)):
        measure = _biases_support if question == "biases" else _ratio_support
        found = tuple(measure(results, replace(variant, **{question: name}), question) for name in readings)
        support[question] = found
        if any(one.total for one in found):
            best = max(found, key=lambda one: (one.inside, -one.distance))
            variant = replace(variant, **{question: best.reading})
    return Decision(variant, support)


def condition_ratio(results: Results, variant: Variant, cell: Cell) -> pd.Series:
    """Return the ratio of mean condition numbers on each split, which is what the paper prints for one."""
    methods = cell.method.split("/")
    numbers = [results.numbers("fixed", cell.data, variant, cell.n_hidden, m, "condition") for m in methods]
    above, below = paired(*numbers)
    return above.means / below.means


def _biases_support(results: Results, variant: Variant, question: str) -> Support:
    """How many of the seven ratios μ(H^reg)/μ(H⁺) have the printed digit."""
    logs = []
    inside = 0
    for cell in cells():
        if cell.method != "ocrep/unregularized" or cell.data == "segment":
            continue
        ratio = condition_ratio(results, variant, cell).get(REFERENCE_SPLIT)
        if ratio is not None:
            logs.append(abs(math.log(ratio / cell.error)))
            inside += bool(abs(ratio - cell.error) <= cell.rounding)
    return Support(getattr(variant, question), inside, len(logs), float(np.mean(logs)) if logs else math.inf)


def _ratio_support(results: Results, variant: Variant, question: str) -> Support:
    """How many published ratios of the deciding data sets lie in the central 95 % of ours."""
    tables = ("gcv",) if question == "gcv" else ("ocrep_vs_cv", "kibria", "hoerl_kennard")
    distances = []
    inside = 0
    for rivalry in rivalries():
        cell = rivalry.rival
        if cell.data not in DECIDING_SETS or cell.experiment not in tables:
            continue
        methods = (variant.gcv if cell.method == "gcv" else cell.method), "ocrep"
        numbers = [results.numbers("fixed", cell.data, variant, cell.n_hidden, method) for method in methods]
        values = log_ratio(*paired(*numbers)).predicted
        if len(values) < 2:
            continue
        low, high = rivalry.ends
        ends = np.percentile(values, CENTRAL)
        inside += bool(low <= ends[1] and ends[0] <= high)
        middle = float(np.median(values))
        gap = max(low - middle, middle - high, 0.0)
        distances.append(gap / max(float(np.std(values, ddof=1)), 1e-12))
    mean = float(np.mean(distances)) if distances else math.inf
    return Support(getattr(variant, question), inside, len(distances), mean)


# ------------------------------------------------------------------------------
# Published numbers beside ours.


@dataclass(frozen=True, eq=False)
class Study:
    """Results, what is known about their run, and the reading of the paper that they support.

    A `reading` that is given takes the place of the one that the results support.
    """

    results: Results
    about: Mapping[str, Any]
    reading: Variant | None = None

    @cached_property
    def decision(self) -> Decision:
        """Which reading of the paper the results support."""
        return decide(self.results)

    @property
    def variant(self) -> Variant:
        """The reproduction."""
        return self.reading or self.decision.variant

    @property
    def data_sets(self) -> list[str]:
        """The data sets of the protocol."""
        return [str(name) for name in self.about["protocol"]["data_sets"]]

    def sizes_of(self, data: str) -> list[int]:
        """Return the fixed hidden sizes of a data set in the protocol."""
        return [int(size) for size in dict(self.about["protocol"]["fixed_sizes"]).get(data, ())]

    def numbers(self, cell: Cell, variant: Variant | None = None, name: str = "error") -> pd.Series:
        """Return our numbers that belong to a published cell, by split and draw."""
        variant = variant or self.variant
        if cell.quoted:
            return self.results.numbers("literature", cell.data, Variant(), 0, cell.method, name)
        if cell.experiment in SIZE_CHOSEN:
            return self.results.numbers("chosen", cell.data, variant, 0, cell.method, name)
        n_hidden = int(self.about["protocol"]["elm_size"]) if cell.experiment == "elm" else cell.n_hidden
        method = variant.gcv if cell.method == "gcv" else cell.method
        return self.results.numbers("fixed", cell.data, variant, n_hidden, method, name)

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


def is_inside(percentile: float | None) -> bool | None:
    """Whether a percentile lies between the 1st and the 99th."""
    return None if percentile is None else INSIDE[0] <= percentile <= INSIDE[1]


def close(a: float, b: float, factor: float = STD_FACTOR) -> bool:
    """Whether two numbers ≥ 0 are within a factor of each other; two zeros are."""
    return bool(a <= factor * b and b <= factor * a)


@dataclass(frozen=True, eq=False)
class Judged:
    """A published error with its standard deviation and size, and ours."""

    cell: Cell
    spread: Spread
    sizes: pd.Series  # our M̄ by split, where a path or the method chooses it; else empty

    @classmethod
    def of(cls, study: Study, cell: Cell, variant: Variant | None = None) -> Judged:
        """Judge a cell, by the reproduction or by another reading."""
        sizes = pd.Series(dtype=float)
        if cell.experiment in SIZE_CHOSEN:
            sizes = study.numbers(cell, variant, "n_hidden").groupby(level="split").median()
        return cls(cell, Spread.of(study.numbers(cell, variant)), sizes)

    @property
    def run(self) -> bool:
        """Whether there is anything to compare with."""
        return bool(len(self.spread.numbers))

    @cached_property
    def percentile(self) -> float | None:
        """The percentile of the published error among ours; None if fewer than two splits were run."""
        return self.spread.percentile(self.cell.error, self.cell.rounding)

    @property
    def inside(self) -> bool | None:
        """Whether the published error lies between the 1st and the 99th percentile."""
        return is_inside(self.percentile)

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
        """The same for our own reference split, as if the paper had used it: a std over few draws is noisy too."""
        numbers = self.spread.numbers
        own = self.spread.deviations.get(REFERENCE_SPLIT)
        others = numbers[numbers.index.get_level_values("split") != REFERENCE_SPLIT]
        rest = Spread(others, self.spread.positive).typical_deviation
        return None if own is None or rest is None else close(own, rest)

    @property
    def size_inside(self) -> bool | None:
        """Whether the published M̄ lies between the smallest and the largest of ours."""
        if len(self.sizes) < 2:
            return None
        return bool(self.sizes.min() <= self.cell.n_hidden <= self.sizes.max())


@dataclass(frozen=True, slots=True, eq=False)
class ConditionRatio:
    """A published ratio of mean condition numbers, and ours by split."""

    cell: Cell
    by_split: pd.Series

    @property
    def ours(self) -> float | None:
        """The ratio on the reference split."""
        return self.by_split.get(REFERENCE_SPLIT)

    @property
    def digit(self) -> bool | None:
        """Whether ours rounds to the printed digit."""
        return None if self.ours is None else bool(abs(self.ours - self.cell.error) <= self.cell.rounding)

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

    @classmethod
    def of(cls, study: Study, rivalry: Rivalry) -> Pair:
        """Judge a comparison."""
        a, b = paired(study.numbers(rivalry.ocrep), study.numbers(rivalry.rival))
        ratio = log_ratio(b, a) if rivalry.rival.data in REGRESSION else difference(b, a)
        return cls(rivalry, a, b, ratio)

    @property
    def run(self) -> bool:
        """Whether both methods have results."""
        return bool(len(self.ratio.numbers))

    @cached_property
    def percentile(self) -> float | None:
        """The percentile of the published ratio among ours; None if fewer than two splits were run."""
        low, high = self.rivalry.ends
        return self.ratio.percentile((low + high) / 2, (high - low) / 2)

    @property
    def inside(self) -> bool | None:
        """Whether the published ratio lies between the 1st and the 99th percentile."""
        return is_inside(self.percentile)

    @cached_property
    def winner(self) -> str | None:
        """The method with the smaller error in the mean over splits, "tie" if they are equal up to rounding."""
        return _better(self.ocrep.means.mean(), self.rival.means.mean()) if self.run else None

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
        on_split = [_better(a, b) for a, b in zip(self.ocrep.means, self.rival.means, strict=True)]
        return float(np.mean([0.5 if w == "tie" else float(w == self.rivalry.winner) for w in on_split]))

    @cached_property
    def welch(self) -> str | None:
        """The verdict of the paper's own test on our reference split: Welch's t-test over draws, at 99 %."""
        a = self.ocrep.reference
        b = self.rival.reference
        if min(len(a), len(b)) < 2:
            return None
        better = _better(a.mean(), b.mean())
        if max(a.std(), b.std()) <= ROUNDING * max(a.mean(), b.mean()):  # without noise every difference is significant
            return better
        found = stats.ttest_ind_from_stats(a.mean(), a.std(), len(a), b.mean(), b.std(), len(b), equal_var=False)
        return better if found.pvalue < WELCH_LEVEL else "tie"

    @cached_property
    def paired_test(self) -> tuple[str, float] | None:
        """The verdict of the corrected paired test over splits at 5 %, and its p-value."""
        if len(self.ocrep.means) < 2:
            return None
        found = significance.corrected_paired_t_test(self.ocrep.means, self.rival.means, test_share=TEST_SHARE)
        return (winner(found.difference) if found.p_value < PAIRED_LEVEL else "tie"), found.p_value

    def as_paper(self, ours: str | None) -> bool | None:
        """Whether a verdict of ours agrees with the paper's; with "not rival" both "tie" and "ocrep" agree."""
        if ours is None:
            return None
        return ours != "rival" if self.rivalry.verdict == "not rival" else ours == self.rivalry.verdict


def _better(ocrep: float, rival: float) -> str:
    return "tie" if abs(ocrep - rival) <= ROUNDING * max(abs(ocrep), abs(rival)) else winner(ocrep - rival)


# ------------------------------------------------------------------------------
# How many agree, how many of a perfect reproduction would, and why the others do not.


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
    by_data: dict[str, list[pd.Series]] = {}
    for one in known:
        if isinstance(one, Judged):
            own = one.spread.percentiles_of_own(one.cell.rounding)
            data = one.cell.data
        else:
            low, high = one.rivalry.ends
            own = one.ratio.percentiles_of_own((high - low) / 2)
            data = one.rivalry.rival.data
        by_data.setdefault(data, []).append(own.between(*INSIDE))
    rng = np.random.default_rng(SEED)
    totals = np.zeros(N_SIMULATED)
    for places in by_data.values():
        of_split = pd.concat(places).groupby(level=0, sort=False).agg(["mean", "size"])
        if len(of_split):
            # Cells without results on a split are taken to be inside as often as the others there.
            totals += rng.choice(of_split["size"].max() * of_split["mean"], N_SIMULATED)
    low, high = (float(end) for end in np.percentile(totals, (5.0, 95.0)))
    return Calibration(sum(bool(one.inside) for one in known), len(known), float(totals.mean()), low, high)


def share(answers: Iterable[bool | None]) -> str:
    """Return how many of the answers that are not None are true, as "3 of 5"."""
    known = [answer for answer in answers if answer is not None]
    return f"{sum(known)} of {len(known)}"


def of_methods(judged: Sequence[Judged], *methods: str) -> list[Judged]:
    """Return the cells of some methods at fixed sizes."""
    return [one for one in judged if one.cell.method in methods and one.cell.experiment not in SIZE_CHOSEN]


MISPRINT = "a suspected misprint"
SPLIT = "the paper's split"
UNEXPLAINED = "unexplained"


def outside(study: Study) -> dict[str, list[Cell]]:
    """Return all published errors outside the 1st to 99th percentile of ours by the reason, in the paper's order.

    The reason is the split if the published ratio to OCReP (of OCReP: of cross-validation to it) lies inside ours: then
    rule and rival agree with the paper as they should, and only the rows tested on are harder or easier.
    """
    inside = {pair.rivalry.rival: pair.inside for pair in study.pairs}
    rival_of = {pair.rivalry.ocrep: pair.rivalry.rival for pair in study.pairs if pair.rivalry.rival.method == "cv"}
    found: dict[str, list[Cell]] = {SPLIT: [], MISPRINT: [], UNEXPLAINED: []}
    for one in study.judged:
        if one.inside is False and not one.cell.quoted and not one.cell.repeated:
            partner = rival_of.get(one.cell, one.cell)
            reason = MISPRINT if one.cell.misprint else SPLIT if inside.get(partner) else UNEXPLAINED
            found[reason].append(one.cell)
    return {reason: some for reason, some in found.items() if some}


def name_of(cell: Cell) -> str:
    """Return a cell in words."""
    return f"{NAMES[cell.method]} on {title(cell.data)} M={cell.n_hidden} (table {cell.table})"


def percentiles_by_data(study: Study) -> dict[str, list[float]]:
    """Return the percentiles of the errors of OCReP and cross-validation by data set, suspected misprints left out."""
    found: dict[str, list[float]] = {}
    for data in study.data_sets:
        own = [one for one in study.judged if (one.cell.data, one.cell.experiment) == (data, "ocrep_vs_cv")]
        places = [one.percentile for one in own if one.percentile is not None and not one.cell.misprint]
        if places:
            found[data] = places
    return found
