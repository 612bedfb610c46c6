"""How numbers vary over splits and draws, and what a mean over fifty draws on one more split would be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
from scipy import stats

from ocrep.study.protocol import PUBLISHED_DRAWS, REFERENCE_SPLIT
from ocrep.study.results import Place


@dataclass(frozen=True, eq=False)
class Spread:
    """Numbers of one case by split; means are exactly rounded, so the order of rows does not matter."""

    by_split: Mapping[int, tuple[float, ...]]
    positive: bool = False  # whether all numbers are errors above zero, whose noise grows with them

    @classmethod
    def of(cls, numbers: Mapping[Place, float]) -> Spread:
        """Group numbers by split."""
        grouped: dict[int, list[float]] = {}
        for (split, _), number in sorted(numbers.items()):
            if math.isfinite(number):
                grouped.setdefault(split, []).append(number)
        positive = all(number > 0.0 for values in grouped.values() for number in values)
        return cls({split: tuple(values) for split, values in grouped.items()}, positive)

    @property
    def reference(self) -> tuple[float, ...]:
        """The draws on the reference split."""
        return self.by_split.get(REFERENCE_SPLIT, ())

    @cached_property
    def means(self) -> dict[int, float]:
        """The mean of each split."""
        return {split: fmean(values) for split, values in self.by_split.items()}

    @cached_property
    def deviations(self) -> dict[int, float]:
        """The standard deviation over the draws of each split with more than one."""
        several = {split: values for split, values in self.by_split.items() if len(values) > 1}
        return {split: float(np.std(values, ddof=1)) for split, values in several.items()}

    @cached_property
    def within(self) -> float:
        """The variance between draws on one split, pooled over splits; 0 if no split has two draws."""
        freedom = sum(len(values) - 1 for values in self.by_split.values())
        squares = (d**2 * (len(self.by_split[split]) - 1) for split, d in self.deviations.items())
        return sum(squares) / freedom if freedom else 0.0

    @cached_property
    def typical_deviation(self) -> float | None:
        """The standard deviation over draws on a typical split; None if no split has two draws.

        For errors above zero it is the median over splits, each corrected for its few draws: a split with an outlier
        among the test rows has a deviation many times larger. For counts, often zero, it is pooled over splits.
        """
        if not self.deviations:
            return None
        if not self.positive:
            return math.sqrt(self.within)
        freedom = {split: len(self.by_split[split]) - 1 for split in self.deviations}
        usual = {f: math.sqrt(float(stats.chi2.median(f)) / f) for f in set(freedom.values())}
        return float(np.median([d / usual[freedom[split]] for split, d in self.deviations.items()]))

    @cached_property
    def predicted(self) -> np.ndarray:
        """The distribution of a mean over fifty draws on one more split: one value per split of ours.

        A mean over few draws varies more than one over fifty. The variance of our means less what their draws explain
        is that between splits; our means are drawn together about their centre until they vary as a mean over
        fifty draws does. Positive errors are drawn together on a log scale: on a split with an outlier among the test
        rows both the error and its noise are many times larger.
        """
        means = np.array(list(self.means.values()))
        if self.positive:
            relative = {split: tuple(np.array(values) / fmean(values)) for split, values in self.by_split.items()}
            return np.exp(_drawn_together(np.log(means), Spread(relative)))
        return _drawn_together(means, self)

    def percentile(self, published: float, rounding: float = 0.0) -> float | None:
        """Return the percentile of a published mean among what is predicted; None without two splits.

        Of the numbers that its printed digits allow, that nearest to the median counts.
        """
        return None if len(self.predicted) < 2 else percentile(published, self.predicted, rounding)

    def percentiles_of_own(self, rounding: float = 0.0) -> dict[int, float]:
        """Return the percentile of each split of ours among the others, as if the paper had used it."""
        values = self.predicted
        if len(values) < 3:
            return {}
        return {
            split: percentile(float(values[i]), np.delete(values, i), rounding) for i, split in enumerate(self.means)
        }


def _drawn_together(means: np.ndarray, draws: Spread) -> np.ndarray:
    if len(means) < 2 or not np.var(means, ddof=1) > 0.0:
        return means
    total = float(np.var(means, ddof=1))
    noise = draws.within * fmean(1.0 / len(values) for values in draws.by_split.values())
    wanted = max(total - noise, 0.0) + draws.within / PUBLISHED_DRAWS
    return means.mean() + math.sqrt(min(wanted / total, 1.0)) * (means - means.mean())


FEW = 50  # below so many splits percentiles come from Student's distribution, not from ranks


def percentile(number: float, values: np.ndarray, rounding: float = 0.0) -> float:
    """Return the percentile of a number among values, in percent, as near to 50 as its rounding allows."""
    if len(values) < FEW:
        center, scale = float(values.mean()), float(values.std(ddof=1)) * math.sqrt(1.0 + 1.0 / len(values))
        if scale <= 1e-12 * abs(center):
            return 50.0 if abs(number - center) <= rounding + 1e-9 * abs(center) else 0.0 if number < center else 100.0
        ends = ((number + d - center) / scale for d in (-rounding, rounding))
        low, high = (100.0 * float(stats.t.cdf(end, len(values) - 1)) for end in ends)
    else:
        low, high = _rank(number - rounding, values, "below"), _rank(number + rounding, values, "above")
    return min(max(50.0, low), high)


def _rank(number: float, values: np.ndarray, side: str) -> float:
    """100·(values below + ½)/(n + 1); values equal to the number count as below it or above it."""
    below = np.sum(values < number) if side == "below" else np.sum(values <= number)
    return 100.0 * (float(below) + 0.5) / (len(values) + 1.0)


def difference(a: Spread, b: Spread) -> Spread:
    """Return a − b draw by draw, on the splits where both have as many draws."""
    common = [s for s in a.by_split if len(a.by_split[s]) == len(b.by_split.get(s, ()))]
    return Spread({s: tuple(x - y for x, y in zip(a.by_split[s], b.by_split[s], strict=True)) for s in common})


def paired(a: Mapping[Place, float], b: Mapping[Place, float]) -> tuple[Spread, Spread]:
    """Return both with the places that they share."""
    common = a.keys() & b.keys()
    return Spread.of({place: a[place] for place in common}), Spread.of({place: b[place] for place in common})


def log_ratio(above: Spread, below: Spread) -> Spread:
    """Return log(above/below) of the split means, with draws that vary as the ratio of the draws does about them."""
    grouped = {}
    for split in above.by_split.keys() & below.by_split.keys():
        a, b = np.array(above.by_split[split]), np.array(below.by_split[split])
        if a.mean() > 0.0 and b.mean() > 0.0 and len(a) == len(b):
            grouped[split] = tuple(math.log(a.mean() / b.mean()) + a / a.mean() - b / b.mean())
    return Spread(dict(sorted(grouped.items())))
