"""Which fold a row belongs to, as fitted models tell it. No other test knows how the package divides rows."""

import numpy as np

from ocrep import TikhonovRegressor, rules


def fold_numbers(X, n_folds=3, seed=0):
    """The fold of each row of X, as `rules.KFold(n_folds=n_folds, seed=seed)` divides rows by what they hold."""
    return rules.KFold(n_folds=n_folds, seed=seed).folds.of(X)


def weight_by_fold(rule, weight, groups=None, *, calls=1):
    """The sum of the weights of each fold; rows come in so many calls of `partial_fit`, or all at once."""
    X = np.random.default_rng(0).standard_normal((len(weight), 2))
    model = TikhonovRegressor(rule)
    if calls == 1:
        return np.array(model.fit(X, X[:, 0] + X[:, 1] ** 2, weight, groups).folds_.weight_sums)
    for rows in np.array_split(np.arange(len(X)), calls):
        some = None if groups is None else groups[rows]
        model.partial_fit(X[rows], X[rows, 0] + X[rows, 1] ** 2, weight[rows], some)
    return np.array(model.folds_.weight_sums)


def folds_of_groups(rule, names):
    """The fold of each of at most 50 groups: the row of each weighs a power of two, and the sums say which met."""
    sums = weight_by_fold(rule, 2.0 ** np.arange(len(names)), np.asarray(names))
    found = [[v for v, total in enumerate(sums) if int(total) >> i & 1] for i in range(len(names))]
    assert all(len(folds) == 1 for folds in found)
    return np.array([folds[0] for folds in found])
