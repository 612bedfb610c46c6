"""Tests whether two methods differ, given their test errors on overlapping splits.

Let d_j be the difference of two methods' test errors on split j of J. If the splits were independent, mean(d) would
have the variance var(d)/J, and mean(d)/√(var(d)/J) Student's t distribution with J − 1 degrees of freedom. But random
splits share training rows, so the d_j are correlated, with some correlation ρ. Then

    Var(mean(d)) = σ²·(1/J + (J − 1)/J·ρ)    and    E[var(d)] = σ²·(1 − ρ),

so var(d)·(1/J + ρ/(1 − ρ)) has the right expectation. No unbiased estimate of ρ from the splits exists. Nadeau and
Bengio (2003) set ρ = n_test/(n_test + n_train), the share of test rows, which makes ρ/(1 − ρ) = n_test/n_train: the
statistic is

    t = mean(d) / √((1/J + n_test/n_train)·var(d)).

More splits thus cannot make noise significant: the second term does not vanish with J.

Where all d_j are equal, var(d) is 0, which does not say that σ² is: in each of few splits, one more row may be wrong by
chance. Then t and the p-value are not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

__all__ = ["PairedComparison", "corrected_paired_t_test"]

# Relative to the largest error. Two ways to compute the same model may differ by rounding in the same direction on
# every split, which the test must not call a difference.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """The result of a paired test over splits.

    Parameters
    ----------
    difference : float
        Mean of a − b over the splits; negative if a has the smaller error.
    t : float
        The test statistic; NaN if the difference is the same on all splits, which does not show how it varies.
    p_value : float
        Two-sided, from Student's t with `n_splits` − 1 degrees of freedom; NaN where t is, so that nothing is claimed.
    n_splits : int
        Number of splits compared.

    See Also
    --------
    corrected_paired_t_test : Makes it.

    Examples
    --------
    >>> from ocrep import significance
    >>> significance.PairedComparison(difference=-0.1, t=-3.0, p_value=0.01, n_splits=10).p_value < 0.05
    True
    """

    difference: float
    t: float
    p_value: float
    n_splits: int


def corrected_paired_t_test(errors_a: ArrayLike, errors_b: ArrayLike, *, test_share: float) -> PairedComparison:
    """Compare two methods by their test errors on the same random splits of one data set.

    Parameters
    ----------
    errors_a, errors_b : array-like of shape (n_splits,)
        Test errors of the two methods, one number per split. Average over hidden layers first: several layers on one
        split do not add independent data.
    test_share : float
        Share of the rows that each split tests on, above 0 and below 1.

    Returns
    -------
    PairedComparison
        Mean difference, t, two-sided p-value and number of splits.

    See Also
    --------
    ocrep.compare_rules : Errors of many rules on one split.

    Notes
    -----
    With the J differences d, t = mean(d) / √((1/J + n_test/n_train)·var(d)). Random splits share rows, so their
    errors are correlated. The ordinary test, without n_test/n_train, then finds differences where there are none, more
    often the more splits there are.

    References
    ----------
    Nadeau, C. & Bengio, Y. (2003). Inference for the generalization error. Machine Learning 52, 239-281.

    Examples
    --------
    >>> from ocrep import significance
    >>> a, b = [0.50, 0.52, 0.49, 0.51, 0.50], [0.58, 0.57, 0.60, 0.59, 0.58]
    >>> result = significance.corrected_paired_t_test(a, b, test_share=0.3)
    >>> f"{result.difference:.2f}, p = {result.p_value:.3f}"
    '-0.08, p = 0.009'
    """
    a = np.asarray(errors_a, dtype=np.float64)
    b = np.asarray(errors_b, dtype=np.float64)
    if a.ndim != 1 or b.ndim != 1:
        shapes = f"{a.shape} and {b.shape}"
        raise ValueError(f"Errors must be one number per split, not arrays of shapes {shapes}: average layers first.")
    if len(a) != len(b):
        raise ValueError(f"Both methods need an error for every split, but there are {len(a)} and {len(b)} errors.")
    if len(a) < 2:
        raise ValueError(f"A paired test needs at least 2 splits, not {len(a)}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("Errors must be finite: drop the splits with NaN or infinity for both methods.")
    if not 0 < test_share < 1:
        raise ValueError(f"test_share={test_share!r} must be above 0 and below 1: it is the share of test rows.")
    d = a - b
    n_splits = len(d)
    difference = float(d.mean())
    negligible = ROUNDING * max(np.abs(a).max(), np.abs(b).max())
    if np.abs(d).max() <= negligible:
        return PairedComparison(difference, t=0.0, p_value=1.0, n_splits=n_splits)
    if np.ptp(d) <= negligible:
        return PairedComparison(difference, t=math.nan, p_value=math.nan, n_splits=n_splits)
    test_over_train = test_share / (1 - test_share)
    t = difference / math.sqrt((1 / n_splits + test_over_train) * d.var(ddof=1))
    p_value = float(2 * stats.t.sf(abs(t), n_splits - 1))
    return PairedComparison(difference, t=t, p_value=p_value, n_splits=n_splits)
