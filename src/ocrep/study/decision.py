"""Which reading of the paper is the reproduction: decided by rules that were fixed before the study was run.

The paper leaves three things open (`Variant`). Each is decided by numbers that do not depend on its unknown split, and
before the errors of the other data sets are looked at:

1. The biases, by the condition numbers. Of the seven published ratios μ(H^reg)/μ(H⁺) (without Segment, where H is
   singular), the biases win that bring more ratios of mean condition numbers on the reference split into the printed
   digit; with as many, those whose ratios are nearer in the mean of |log(ours/published)|.
2. The scale of the regression targets, with those biases, by the published ratios of errors, rival over OCReP, on Delta
   Ailerons and Housing. Rivals are cross-validation, Kibria's and Hoerl and Kennard's estimates. The scale wins for
   which more published ratios lie in the central 95 % of the distribution over splits; with as many, the scale with
   the smaller mean distance from the medians, in standard deviations of that distribution.
3. Whether GCV's λ is multiplied by n, with those biases and targets, by the ratios GCV over OCReP in the same way.

Where nothing was run that could decide, the first reading stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ocrep.study.protocol import BIASES, GCV_METHODS, REFERENCE_SPLIT, TARGETS, Variant
from ocrep.study.published import Cell, Rivalry, cells, rivalries
from ocrep.study.results import Results
from ocrep.study.spread import Spread, log_ratio, paired

DECIDING_SETS = ("delta_ailerons", "housing")
CENTRAL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Support:
    """How well one reading agrees with the published ratios."""

    reading: str
    inside: int
    total: int
    distance: float

    @property
    def order(self) -> tuple[float, float]:
        """Larger is better."""
        return (self.inside, -self.distance)


@dataclass(frozen=True, slots=True)
class Decision:
    """The reading chosen, and the support of each reading by question."""

    variant: Variant
    support: dict[str, tuple[Support, ...]]


def decide(results: Results) -> Decision:
    """Decide all three questions, one after the other."""
    variant, support = Variant(), {}
    for question, readings in (("biases", BIASES), ("targets", TARGETS), ("gcv", GCV_METHODS)):
        measure = biases_support if question == "biases" else ratio_support
        found = tuple(measure(results, replace(variant, **{question: name}), question) for name in readings)
        support[question] = found
        if any(one.total for one in found):
            variant = replace(variant, **{question: max(found, key=lambda one: one.order).reading})
    return Decision(variant, support)


def condition_ratio(results: Results, variant: Variant, cell: Cell) -> dict[int, float]:
    """Return the ratio of mean condition numbers on each split, which is what the paper prints for one."""
    methods = cell.method.split("/")
    numbers = [results.numbers("fixed", cell.data, variant, cell.n_hidden, m, "condition") for m in methods]
    above, below = (spread.means for spread in paired(*numbers))
    return {split: above[split] / below[split] for split in above}


def biases_support(results: Results, variant: Variant, question: str = "biases") -> Support:
    """Return how many of the seven ratios μ(H^reg)/μ(H⁺) have the printed digit."""
    logs, inside = [], 0
    for cell in cells():
        if cell.method != "ocrep/unregularized" or cell.data == "segment":
            continue
        ratio = condition_ratio(results, variant, cell).get(REFERENCE_SPLIT)
        if ratio is not None:
            logs.append(abs(math.log(ratio / cell.error)))
            inside += abs(ratio - cell.error) <= cell.rounding
    return Support(variant.biases, inside, len(logs), float(np.mean(logs)) if logs else math.inf)


def ratio_support(results: Results, variant: Variant, question: str) -> Support:
    """Return how many published ratios of the deciding data sets lie in the central 95 % of ours."""
    rivals = ("gcv",) if question == "gcv" else ("cv", "kibria", "hoerl_kennard")
    distances, inside = [], 0
    for rivalry in _deciding(rivals):
        values = ratios(results, variant, rivalry).predicted
        if len(values) < 2:
            continue
        low, high = published_log_ratio(rivalry)
        ends = np.percentile(values, CENTRAL)
        inside += bool(low <= ends[1] and ends[0] <= high)
        middle = float(np.median(values))
        gap = max(low - middle, middle - high, 0.0)
        distances.append(gap / max(float(np.std(values, ddof=1)), 1e-12))
    return Support(
        getattr(variant, question), inside, len(distances), float(np.mean(distances)) if distances else math.inf
    )


def _deciding(rivals: Iterable[str]) -> list[Rivalry]:
    tables = ("ocrep_vs_cv", "gcv", "kibria", "hoerl_kennard")
    return [
        pair
        for pair in rivalries()
        if pair.rival.data in DECIDING_SETS and pair.rival.experiment in tables and pair.rival.method in rivals
    ]


def ratios(results: Results, variant: Variant, rivalry: Rivalry) -> Spread:
    """Return log(rival/OCReP) at a fixed size, by split."""
    cell = rivalry.rival
    methods = (variant.gcv if cell.method == "gcv" else cell.method), "ocrep"
    return log_ratio(*paired(*(results.numbers("fixed", cell.data, variant, cell.n_hidden, m) for m in methods)))


def published_log_ratio(rivalry: Rivalry) -> tuple[float, float]:
    """Return the ends of log(rival/OCReP) that the printed digits allow."""
    a, b = rivalry.rival, rivalry.ocrep
    ends = ((a.error - a.rounding) / (b.error + b.rounding), (a.error + a.rounding) / (b.error - b.rounding))
    low, high = (math.log(end) for end in ends)
    return low, high
