"""What is special about Segment with 1500 units: nearly as many units as distinct training rows."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from ocrep._linalg.triangle import rank_tolerance
from ocrep.datasets import load
from ocrep.study.networks import split_of
from ocrep.study.protocol import REFERENCE_SPLIT
from ocrep.study.wording import number
from ocrep.study.yardsticks import Study


def distinct_rows(split: int) -> tuple[int, int]:
    """Return how many training rows of a split of Segment there are, and how many of them differ."""
    X = split_of(load("segment"), split)[0]
    return len(X), len(np.unique(X, axis=0))


def segment_told(study: Study) -> list[str]:
    """Return a paragraph on the largest size of Segment; nothing if it was not run."""
    n_hidden = int(dict(study.about["protocol"]["fixed_sizes"]).get("segment", (0,))[-1])
    conditions = study.results.numbers("fixed", "segment", study.variant, n_hidden, "unregularized", "condition")
    if not conditions:
        return []
    told = [f"**Segment with {n_hidden} units.**"]
    reference = [mu for (split, _), mu in conditions.items() if split == REFERENCE_SPLIT]
    if reference:
        n_rows, n_distinct = distinct_rows(REFERENCE_SPLIT)
        ratio = float(np.median([1.0 / mu for mu in reference]))
        told.append(
            f"Of the {n_rows} training rows of the reference split {n_distinct} differ from each other. In the median "
            f"over draws σ_p/σ₁ is {number(ratio, 2)} there, {ratio / rank_tolerance(n_hidden, 1.0):,.0f} times the "
            "rank tolerance."
        )
    told.append(_singular(study, n_hidden, {split for split, _ in conditions}))
    return [" ".join(told)]


def _singular(study: Study, n_hidden: int, splits: set[int]) -> str:
    """On which splits H is numerically singular, and what p costs there."""
    own, full = (study.results.numbers("fixed", "segment", study.variant, n_hidden, m) for m in ("ocrep", "ocrep_full"))
    singular = {split for split, _ in full}
    if not singular:
        return f"H is not numerically singular on any of the {len(splits)} splits that were run."
    counts, rest = (sorted(distinct_rows(split)[1] for split in some) for some in (singular, splits - singular))
    others = f", on the other splits {rest[0]} to {rest[-1]}" if rest else ""
    errors = [number(fmean(method[place] for place in full), 3) for method in (own, full)]
    return (
        f"H is numerically singular on {len(singular)} of {len(splits)} splits: there {counts[0]} to {counts[-1]} "
        f"training rows differ{others}. On these splits OCReP misclassifies {errors[0]} % with p the numerical rank "
        f"and {errors[1]} % with p = min(N, M)."
    )
