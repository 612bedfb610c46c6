"""`Split`: which rows are held out, found again each time a file is read, without storing a row.

Row k of a stratum is held out if π(k) < n_test, where π is a pseudo-random permutation of the numbers of its rows that
the seed chooses: so exactly n_test rows are held out, and only counts are kept from block to block. π is a Feistel
network over the next even number of bits; a number that lands beyond the size is permuted again until it is within
(cycle walking), which is again a permutation. It takes at most four tries on average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ocrep._files.formats import DataError
from ocrep._linalg.folds import mixed

_ROUNDS = 6  # four make a Feistel network a good permutation; two more for the shortest halves


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Exactly `n_test` rows of each stratum, chosen by a pseudo-random permutation of the numbers of its rows."""

    strata: np.ndarray
    """The stratum of each class; a regression has one class."""
    n_rows: np.ndarray
    """Rows in each stratum."""
    n_test: np.ndarray
    """How many of them are held out."""
    seed: int

    @classmethod
    def of(cls, counts: np.ndarray, test: float, seed: int) -> Split:
        """A split of classes with these numbers of rows; a regression is a single class.

        It is stratified if each class has enough rows for both parts; the only row of a class is trained on.
        """
        n = int(counts.sum())
        single = counts == 1
        n_test = int(np.ceil(test * n))
        n_free = n - int(single.sum())
        if n_test < 1 or n_free - n_test < 1 or n - n_test < 2:
            raise DataError(f"A test part of {test:g} leaves too few of {n} rows: use another share, or more rows.")
        if min(n_test, n_free - n_test) >= (~single).sum():
            strata = np.arange(len(counts))
            n_rows = counts
        else:
            strata = single.astype(np.intp)
            n_rows = np.array([n_free, n - n_free])
        return cls(strata, n_rows, _shared_out(n_test, np.where(n_rows > 1, n_rows, 0)), seed)

    def begin(self) -> Callable[[np.ndarray], np.ndarray]:
        """A function from the classes of a block's rows to who is held out; it takes the blocks in the file's order."""
        seen = np.zeros(len(self.n_rows), dtype=np.int64)

        def held_out(classes: np.ndarray) -> np.ndarray:
            strata = self.strata[classes]
            order = np.argsort(strata, kind="stable")
            counts = np.bincount(strata, minlength=len(seen))
            within = np.empty(len(strata), dtype=np.int64)
            within[order] = np.arange(len(strata)) - np.repeat(np.cumsum(counts) - counts, counts)
            within += seen[strata]
            seen[:] += counts
            return permuted(within, self.n_rows[strata], self.seed + 2**32 * strata) < self.n_test[strata]

        return held_out


def permuted(numbers: np.ndarray, sizes: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The places of numbers below `sizes` under a permutation of all such numbers, which the key chooses."""
    bits = (np.ceil(np.log2(np.maximum(sizes, 4))) / 2).astype(np.int64)
    half = np.where(2.0 ** (2 * bits) < sizes, bits + 1, bits).astype(np.uint64)
    places = numbers.astype(np.uint64)
    sizes = sizes.astype(np.uint64)
    keys = mixed(keys.astype(np.uint64))
    left = np.arange(len(places))
    while len(left):
        places[left] = _feistel(places[left], half[left], keys[left])
        left = left[places[left] >= sizes[left]]
    return places.astype(np.int64)


def _feistel(x: np.ndarray, half: np.ndarray, keys: np.ndarray) -> np.ndarray:
    mask = (np.uint64(1) << half) - np.uint64(1)
    high = x >> half
    low = x & mask
    for number in range(_ROUNDS):
        with np.errstate(over="ignore"):
            high, low = low, high ^ (mixed(low + keys * np.uint64(2 * number + 1)) & mask)
    return high << half | low


def _shared_out(total: int, among: np.ndarray) -> np.ndarray:
    """Whole numbers that add up to a total, in proportion to others: rounded down, the largest remainders up."""
    exact = total * among / max(1, among.sum())
    shares = np.floor(exact).astype(np.int64)
    largest = np.argsort(shares - exact, kind="stable")
    shares[largest[: total - shares.sum()]] += 1
    return shares
