"""How numbers vary over splits and draws, and what a mean over fifty draws on one more split would be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ocrep.study.protocol import PUBLISHED_DRAWS, REFERENCE_SPLIT
from ocrep.study.results import Place


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Numbers of one case by split; means are exactly rounded, so the order of rows does not matter."""

    by_split: Mapping[int, tuple[float, ...]]

    @classmethod
    def of(cls, numbers: Mapping[Place, float]) -> Spread:
        """Group numbers by split."""
        grouped: dict[int, list[float]] = {}
        for (split, _), number in sorted(numbers.items()):
            if math.isfinite(number):
                grouped.setdefault(split, []).append(number)
        return cls({split: tuple(values) for split, values in grouped.items()})

    @property
    def reference(self) -> tuple[float, ...]:
        """The draws on the reference split."""
        return self.by_split.get(REFERENCE_SPLIT, ())

    @property
    def means(self) -> dict[int, float]:
        """The mean of each split."""
        return {split: fmean(values) for split, values in self.by_split.items()}

    @property
    def deviations(self) -> dict[int, float]:
        """The standard deviation over the draws of each split with more than one."""
        several = {split: values for split, values in self.by_split.items() if len(values) > 1}
        return {split: float(np.std(values, ddof=1)) for split, values in several.items()}

    @property
    def within(self) -> float:
        """The variance between draws on one split, pooled over splits; 0 if no split has two draws."""
        several = [values for values in self.by_split.values() if len(values) > 1]
        freedom = sum(len(values) - 1 for values in several)
        return sum(float(np.var(values)) * len(values) for values in several) / freedom if freedom else 0.0

    def predicted(self, n_draws: int = PUBLISHED_DRAWS) -> np.ndarray:
        """Return the distribution of a mean over `n_draws` draws on one more split: one value per split of ours.

        A mean over few draws varies more than one over fifty. The variance of our means less what their draws explain
        is that between splits; our means are drawn together about their centre until they vary as a mean over
        `n_draws` draws does.
        """
        means = np.array(list(self.means.values()))
        if len(means) < 2 or not np.var(means, ddof=1) > 0.0:
            return means
        total = float(np.var(means, ddof=1))
        noise = self.within * fmean(1.0 / len(values) for values in self.by_split.values())
        wanted = max(total - noise, 0.0) + self.within / n_draws
        return means.mean() + math.sqrt(min(wanted / total, 1.0)) * (means - means.mean())


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


def percentile(published: float, values: np.ndarray, rounding: float = 0.0) -> float:
    """Return the percentile of a published number among values, the middle of what its rounding allows.

    With n values the lowest percentile is 50/(n + 1): nothing is known beyond the smallest value.
    """

    def rank(number: float) -> float:
        below, equal = np.sum(values < number), np.sum(values == number)
        return 100.0 * (below + 0.5 * equal + 0.5) / (len(values) + 1.0)

    lowest, highest = rank(published - rounding), rank(published + rounding)
    return min(max(50.0, lowest), highest)
