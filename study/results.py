"""The rows of a study as one table, and how their numbers vary: along γ and sizes, over draws and over splits.

A published error is the mean over fifty draws of the hidden layer on one unknown split. Ours are few draws on many
splits. `Spread` says what a mean over fifty draws on one more split would be. The variance of our split means is
that between splits plus s²/k, where s² is the variance between draws on one split and k the number of our draws.
Subtracting s²/k and adding s²/50 gives the variance of the published kind of mean; our means are drawn together about
their centre until they have it:

    predicted_i = m̄ + √(wanted/total)·(m_i − m̄),   wanted = max(total − s²·mean(1/k), 0) + s²/50.

Errors above zero are drawn together on a log scale, with s² of the draws relative to their split's mean: on a split
with an outlier among the test rows both the error and its noise are many times larger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from study.protocol import PUBLISHED_DRAWS, REFERENCE_SPLIT, REGRESSION, Variant


class Row(NamedTuple):
    """One result of an experiment; None where a number has no meaning."""

    n_hidden: int
    method: str
    targets: str
    error: float | None = None  # RMSE, or percent misclassified, on the test rows
    gamma: float | None = None
    condition: float | None = None  # μ(H^reg)
    cv_error: float | None = None

    def packed(self) -> list[Any]:
        """Return plain values, numbers with the digits of float32."""
        return [v if v is None or isinstance(v, int | str) else float(f"{v:.7g}") for v in self]


NUMBERS = ("error", "gamma", "condition", "cv_error")
NAMES_OF_CASE = ("kind", "data", "biases", "targets", "method")
COLUMNS = (*NAMES_OF_CASE, "split", "draw", "n_hidden", *NUMBERS)
SIZE_VARIES = ("path", "chosen", "literature")  # the method or the path chooses the size


@dataclass(frozen=True, eq=False)
class Results:
    """All rows of a study: one row for each number of hidden units, method, split and draw of each experiment.

    `frame` has the columns `COLUMNS`. Its rows are sorted, so the order in which jobs ended does not change a report.
    """

    frame: pd.DataFrame

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Results:
        """Bring rows with the columns `COLUMNS` into order."""
        types = dict.fromkeys(NAMES_OF_CASE, "category") | dict.fromkeys(("split", "draw", "n_hidden"), "int64")
        frame = frame[list(COLUMNS)].astype(types | dict.fromkeys(NUMBERS, "float64"))
        for name in NAMES_OF_CASE:
            frame[name] = frame[name].cat.reorder_categories(sorted(frame[name].cat.categories))
        return cls(frame.sort_values([*COLUMNS[:8], "gamma"], ignore_index=True))

    @cached_property
    def _cases(self) -> dict[tuple[Any, ...], pd.DataFrame]:
        """The rows of each case by split and draw; the size of a case is 0 where it varies."""
        size = self.frame["n_hidden"].mask(self.frame["kind"].isin(SIZE_VARIES), 0)
        rows = self.frame.assign(size=size).set_index(["split", "draw"])
        return dict(iter(rows.groupby([*NAMES_OF_CASE, "size"], observed=True)))

    @cached_property
    def _no_rows(self) -> pd.DataFrame:
        return self.frame.iloc[:0].set_index(["split", "draw"])

    def rows(self, kind: str, data: str, variant: Variant, n_hidden: int, method: str) -> pd.DataFrame:
        """Return the rows of one case, indexed by split and draw; none if it was not run."""
        scaled = kind in ("fixed", "path", "chosen") and data in REGRESSION
        targets = variant.targets if scaled else "raw"
        return self._cases.get((kind, data, variant.biases, targets, method, n_hidden), self._no_rows)

    def numbers(
        self, kind: str, data: str, variant: Variant, n_hidden: int, method: str, name: str = "error"
    ) -> pd.Series:
        """Return one number per split and draw; rows without it are left out."""
        return self.rows(kind, data, variant, n_hidden, method)[name].dropna()

    # Means over draws on the reference split.

    def along_gamma(self, data: str, variant: Variant, n_hidden: int) -> Along | None:
        """Return the test error at each γ of the paper's grid."""
        rows = self.rows("fixed", data, variant, n_hidden, "grid")
        return Along.of(rows["gamma"], rows["error"])

    def along_sizes(self, data: str, variant: Variant, method: str) -> Along | None:
        """Return the test error at each hidden size."""
        rows = self.rows("path", data, variant, 0, method)
        rows = rows[rows.index.get_level_values("split") == REFERENCE_SPLIT]
        return Along.of(rows["n_hidden"], rows["error"])

    def chosen_gamma(self, data: str, variant: Variant, n_hidden: int, method: str) -> float | None:
        """Return the geometric mean over draws of a rule's γ."""
        gammas = on_reference_split(self.numbers("fixed", data, variant, n_hidden, method, "gamma"))
        gammas = gammas[gammas > 0.0]
        return float(stats.gmean(gammas)) if len(gammas) else None

    def stability(self, data: str) -> dict[str, Along] | None:
        """Return the change of predictions without one row, and the leave-one-out error, against γ/(σ₁σ_p)."""
        rows = self.frame[(self.frame["kind"] == "stability") & (self.frame["data"] == data)]
        curves = {name: Along.of(rows["gamma"], rows[name]) for name in ("error", "cv_error")}
        return {name: curve for name, curve in curves.items() if curve is not None} or None


def on_reference_split(numbers: pd.Series) -> pd.Series:
    """Return those of some numbers that belong to the reference split."""
    return numbers[numbers.index.get_level_values("split") == REFERENCE_SPLIT]


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """A number along γ or along hidden sizes: mean and standard deviation over draws at each place."""

    at: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    n_draws: int

    @classmethod
    def of(cls, places: pd.Series, numbers: pd.Series) -> Along | None:
        """Group numbers by place; places where a draw has no finite number are left out."""
        finite = numbers.where(np.isfinite(numbers)).groupby(places.to_numpy()).agg(["mean", "std", "count", "size"])
        kept = finite[finite["count"] == finite["size"]]
        if kept.empty:
            return None
        at = kept.index.to_numpy(dtype=float)
        return cls(at, kept["mean"].to_numpy(), kept["std"].fillna(0.0).to_numpy(), int(kept["size"].max()))

    @property
    def best(self) -> int:
        """Index of the least mean."""
        return int(np.argmin(self.mean))


# ------------------------------------------------------------------------------
# Over splits.


@dataclass(frozen=True, eq=False)
class Spread:
    """Finite numbers of one case by split and draw."""

    numbers: pd.Series
    positive: bool = False  # whether all numbers are errors above zero, whose noise grows with them

    @classmethod
    def of(cls, numbers: pd.Series) -> Spread:
        """Leave out what is not finite, and look whether all is above zero."""
        numbers = numbers[np.isfinite(numbers)]
        return cls(numbers, bool((numbers > 0.0).all()))

    @property
    def reference(self) -> pd.Series:
        """The draws on the reference split."""
        return on_reference_split(self.numbers)

    @cached_property
    def means(self) -> pd.Series:
        """The mean of each split."""
        return self.numbers.groupby(level="split").mean()

    @cached_property
    def deviations(self) -> pd.Series:
        """The standard deviation over the draws of each split with more than one."""
        return self.numbers.groupby(level="split").std().dropna()

    @cached_property
    def n_draws(self) -> pd.Series:
        """The number of draws of each split."""
        return self.numbers.groupby(level="split").size()

    @cached_property
    def within(self) -> float:
        """The variance between draws on one split, pooled over splits; 0 if no split has two draws."""
        freedom = self.n_draws.loc[self.deviations.index] - 1
        return float((self.deviations**2 * freedom).sum() / freedom.sum()) if len(freedom) else 0.0

    @cached_property
    def typical_deviation(self) -> float | None:
        """The standard deviation over draws on a typical split; None if no split has two draws.

        For errors above zero it is the median over splits, each corrected for its few draws: a split with an outlier
        among the test rows has a deviation many times larger. For counts, often zero, it is pooled over splits.
        """
        if not len(self.deviations):
            return None
        if not self.positive:
            return math.sqrt(self.within)
        freedom = self.n_draws.loc[self.deviations.index] - 1
        usual = np.sqrt(stats.chi2.median(freedom) / freedom)
        return float((self.deviations / usual).median())

    @cached_property
    def predicted(self) -> np.ndarray:
        """The distribution of a mean over fifty draws on one more split: one value per split of ours."""
        means = self.means.to_numpy()
        if len(means) < 2:
            return means
        if not self.positive:
            return self._drawn_together(means, self.within)
        relative = Spread(self.numbers / self.numbers.groupby(level="split").transform("mean"))
        return np.exp(self._drawn_together(np.log(means), relative.within))

    def _drawn_together(self, means: np.ndarray, within: float) -> np.ndarray:
        total = float(np.var(means, ddof=1))
        if not total > 0.0:
            return means
        noise = within * float((1.0 / self.n_draws).mean())
        wanted = max(total - noise, 0.0) + within / PUBLISHED_DRAWS
        return means.mean() + math.sqrt(min(wanted / total, 1.0)) * (means - means.mean())

    def percentile(self, published: float, rounding: float = 0.0) -> float | None:
        """Return the percentile of a published mean among what is predicted; None without two splits.

        Of the numbers that its printed digits allow, that nearest to the median counts.
        """
        return None if len(self.predicted) < 2 else percentile(published, self.predicted, rounding)

    def percentiles_of_own(self, rounding: float = 0.0) -> pd.Series:
        """Return the percentile of each split of ours among the others, as if the paper had used it."""
        values = self.predicted
        if len(values) < 3:
            return pd.Series(dtype=float)
        own = [percentile(float(value), np.delete(values, i), rounding) for i, value in enumerate(values)]
        return pd.Series(own, index=self.means.index)


FEW = 50  # with fewer splits percentiles come from Student's distribution, not from ranks


def percentile(number: float, values: np.ndarray, rounding: float = 0.0) -> float:
    """Return the percentile of a number among values, in percent, as near to 50 as its rounding allows."""
    if len(values) < FEW:
        center = float(values.mean())
        scale = float(values.std(ddof=1)) * math.sqrt(1.0 + 1.0 / len(values))
        if scale <= 1e-12 * abs(center):
            return 50.0 if abs(number - center) <= rounding + 1e-9 * abs(center) else 0.0 if number < center else 100.0
        ends = ((number + d - center) / scale for d in (-rounding, rounding))
        low, high = (100.0 * float(stats.t.cdf(end, len(values) - 1)) for end in ends)
    else:
        # 100·(values below + ½)/(n + 1); values equal to an end count for the side of the median.
        low = 100.0 * (float(np.sum(values < number - rounding)) + 0.5) / (len(values) + 1.0)
        high = 100.0 * (float(np.sum(values <= number + rounding)) + 0.5) / (len(values) + 1.0)
    return min(max(50.0, low), high)


def paired(a: pd.Series, b: pd.Series) -> tuple[Spread, Spread]:
    """Return both with the splits and draws on which both have a finite number."""
    a, b = a[np.isfinite(a)].align(b[np.isfinite(b)], join="inner")
    return Spread.of(a), Spread.of(b)


def log_ratio(above: Spread, below: Spread) -> Spread:
    """Return log(above/below) of the split means, with draws that vary as the ratio of the draws does about them.

    Both have the same splits and draws; splits where a mean is not above zero are left out.
    """
    mean_above, mean_below = (one.numbers.groupby(level="split").transform("mean") for one in (above, below))
    kept = (mean_above > 0.0) & (mean_below > 0.0)
    a = above.numbers[kept] / mean_above[kept]
    b = below.numbers[kept] / mean_below[kept]
    return Spread(np.log(mean_above[kept] / mean_below[kept]) + a - b)


def difference(a: Spread, b: Spread) -> Spread:
    """Return a − b draw by draw; both have the same splits and draws."""
    return Spread(a.numbers - b.numbers)


def frame_of(records: Iterable[tuple[str, str, str, int, int, Row]]) -> pd.DataFrame:
    """Return a table of (kind, data, biases, split, draw, row) with the columns `COLUMNS`."""
    names = ["kind", "data", "biases", "split", "draw", *Row._fields]
    return pd.DataFrame([(*where, *row) for *where, row in records], columns=names)
