"""`TargetCodes`: a category as the mean of its targets, shrunk towards the mean of all rows, for columns of many texts.

The code of category c for a target is

    (S_c − W_c·μ) / (W_c + m),   S_c = Σ w·y and W_c = Σ w over the rows of c,   μ = Σ w·y / Σ w over all rows,

the deviation of its mean from that of all rows, times W_c/(W_c + m). With m = σ²/τ², the variance within categories
over that between them, it is the best linear estimate of the category's effect. Both variances are those of the
analysis of variance, with weights as numbers of rows:

    σ² = Σ w·(y − ȳ_c)² / (W − C),   τ² = (Σ W_c·(ȳ_c − μ)² / (C − 1) − σ²) / n₀,   n₀ = (W − Σ W_c²/W) / (C − 1).

Categories that tell nothing have τ² ≤ 0 and all codes 0. Labels have one target per class, which is 1 or 0.

A row that taught the codes must not be coded by them: its own target is part of its code, and 1,000 categories of pure
noise would then explain a third of the variance. `cross_fitted` gives each row the code of the other folds. It is
centred by the mean of those folds, not by that of all rows, so that it does not tell which fold a row is in.

What is stored is a hash of each text, not the text. Categories of weight below 2 have no code: cross-fitting never
shows the model one, so they are coded as unknown ones, by 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from ocrep.tables.frames import Words

_LEAST_SMOOTHING = 1.0
_GAP = "\x00gap"  # no text of a table, which Arrow would read as text and users hardly write


@dataclass(frozen=True, eq=False)
class TargetCodes:
    """The codes of the categories of one column."""

    keys: np.ndarray
    """A hash of each category, sorted."""
    codes: np.ndarray
    """The codes of each category, one column for each target, and the logarithm of its weight."""
    names: list[str]
    """What is put after the name of the column to name the outputs."""
    rare: Any = ()
    """A hash of each category of training that has no code."""

    @classmethod
    def of(
        cls, words: Words, targets: np.ndarray, weight: np.ndarray, names: list[str], least: float = 2.0
    ) -> TargetCodes:
        """Learn the codes of categories of at least such a weight."""
        codes, total = _codes(words.codes, len(words.texts) + 1, targets, weight)
        keys = hashes([*words.texts, _GAP])
        enough = total >= least - 1e-9  # sums of scaled weights are rounded
        kept = np.flatnonzero((total > 0) & enough)
        kept = kept[np.argsort(keys[kept])]
        return cls(keys[kept], codes[kept], [*names, "_frequency"], keys[(total > 0) & ~enough])

    def __call__(self, words: Words) -> np.ndarray:
        """The codes of new rows."""
        if not len(self.keys):
            return np.zeros((len(words.codes), self.codes.shape[1]))
        keys = hashes([*words.texts, _GAP])
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = self.keys[places] == keys
        return np.where(known[:, None], self.codes[places], 0.0)[words.codes]

    def unknown(self, words: Words) -> np.ndarray:
        """Which rows have a text that training did not have."""
        keys = hashes(words.texts)
        known = np.isin(keys, self.keys) | np.isin(keys, self.rare)
        return np.append(~known, False)[words.codes]


def without_each_fold(
    words: Words, targets: np.ndarray, weight: np.ndarray, fold: np.ndarray, teaches: np.ndarray, names: list[str]
) -> dict[int, TargetCodes]:
    """For each fold the codes that the rows of the others teach; `teaches` says which rows teach at all."""
    found = {}
    whole = weight[teaches].sum()
    for number in np.unique(fold).tolist():
        others = np.flatnonzero((fold != number) & teaches)
        if len(others):
            codes = TargetCodes.of(words.some(others), targets[others], weight[others], names, least=0.0)
            # Counted as if there were as many rows as all of them, for new rows are coded by all.
            codes.codes[:, -1] = np.log1p(np.expm1(codes.codes[:, -1]) * (whole / weight[others].sum()))
            found[number] = codes
    return found


def cross_fitted(words: Words, fold: np.ndarray, by_fold: dict[int, TargetCodes], n_outputs: int) -> np.ndarray:
    """For each row the codes of the other folds."""
    found = np.zeros((len(fold), n_outputs))
    for number, codes in by_fold.items():
        mine = np.flatnonzero(fold == number)
        found[mine] = codes(words.some(mine))
    return found


def hashes(texts: list[str]) -> np.ndarray:
    """A number of 64 bits for each text, the same on every machine."""
    digests = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8")


def _codes(
    category: np.ndarray, n_categories: int, targets: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The codes of each category and the logarithm of its weight; and its weight."""
    total = np.bincount(category, weight, n_categories)
    occurs = total > 0
    n_found, whole = int(occurs.sum()), float(total.sum())
    codes = np.zeros((n_categories, targets.shape[1] + 1))
    codes[:, -1] = np.log1p(total)
    spare = whole - n_found
    if n_found < 2 or spare <= 0:
        return codes, total
    n_typical = (whole - (total**2).sum() / whole) / (n_found - 1)
    for j, y in enumerate(targets.T):
        y = y - (weight @ y) / whole
        sums = np.bincount(category, weight * y, n_categories)
        means = np.divide(sums, total, out=np.zeros(n_categories), where=occurs)
        within = (weight @ (y - means[category]) ** 2) / spare
        between = ((total @ means**2) / (n_found - 1) - within) / n_typical
        if between > 0:
            codes[:, j] = sums / (total + max(_LEAST_SMOOTHING, within / between))
    return codes, total


def indicators(labels: Any, most: int) -> tuple[np.ndarray, list[str]]:
    """A column of 0 and 1 for each label but the first of two, and its name; of many, for the most frequent ones."""
    found, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most]) if len(found) > 2 else np.array([len(found) - 1])
    return (codes[:, None] == chosen).astype(np.float64), [f"_mean_{label}" for label in found[chosen]]
