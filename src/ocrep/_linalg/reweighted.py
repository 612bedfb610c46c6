"""Summaries of the same rows with all weights multiplied by a number, as if the rows had come with those weights."""

from __future__ import annotations

from dataclasses import replace

from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors


def reweighted(factor: Factor, by: float) -> Factor:
    """√by·R, or the rows themselves with √by·√w; weights that were frequencies no longer are."""
    root, rows = by**0.5, factor.rows
    return Factor(
        None if factor.triangular is None else factor.triangular.scaled(root),
        replace(factor.counts, weight_sum=by * factor.counts.weight_sum, whole_weights=False),
        None if rows is None else replace(rows, root_weight=root * rows.root_weight),
    )


def reweighted_folds(folds: FoldFactors, by: float) -> FoldFactors:
    """The same for each fold."""
    return replace(folds, factors=tuple(factor and reweighted(factor, by) for factor in folds.factors))
