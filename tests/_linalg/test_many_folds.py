"""Cross-validation with many folds costs time in proportion to them."""

import numpy as np
import pytest

from ocrep._linalg.gram import FoldGrams, GramSums


def grams(n_folds, intercept, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((6, 3)), rng.standard_normal((6, 2)), None
    start = GramSums.of(first, intercept=intercept)  # all folds are about its shift
    parts = [(rng.standard_normal((4, 3)), rng.standard_normal((4, 2)), None) for _ in range(n_folds - 1)]
    return FoldGrams((start, *(GramSums(None, start.counts.without_rows()).add(part) for part in parts)))


@pytest.mark.parametrize("n_folds", [2, 3, 4, 7])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_complement_is_the_sum_of_the_others(n_folds, intercept):
    folds = grams(n_folds, intercept)
    for v, complement in enumerate(folds.complements()):
        others = [sums for k, sums in enumerate(folds.sums) if k != v]
        assert complement.counts.n_rows == sum(sums.counts.n_rows for sums in others)
        for ours, *each in zip(complement.sums, *(sums.sums for sums in others), strict=True):
            np.testing.assert_allclose(ours, np.sum(each, axis=0), rtol=1e-13, atol=1e-13)


def test_merges_are_in_proportion_to_folds(monkeypatch):
    folds, merges, merge = grams(200, True), [], GramSums.merge

    def counted(self, other):
        merges.append(1)
        return merge(self, other)

    monkeypatch.setattr(GramSums, "merge", counted)
    assert len(folds.complements()) == 200
    assert len(merges) <= 3 * 200
