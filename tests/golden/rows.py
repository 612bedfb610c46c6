"""Data of the golden fits: problems from fixed seeds, and every kind of rows that `fit` reads.

Only uniform draws, sums, differences and products of single entries are used, so that the data are the same bits on
every machine: no matrix products, no sines.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

NEW_ROWS = 24
LABELS = np.array(["no", "some", "yes"])


@dataclass(frozen=True)
class Problem:
    """Rows to learn from, whole and real weights for them, and new rows to predict."""

    X: Any
    y: np.ndarray
    whole: np.ndarray
    real: np.ndarray
    new: Any


def _smooth(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four inputs of different range, a smooth function of them in [−4, 4], and noise in [−1, 1]."""
    u = 2.0 * rng.random((n_rows, 4)) - 1.0
    f = 2.0 * u[:, 0] - 1.5 * u[:, 0] * u[:, 0] * u[:, 0] + u[:, 1] * u[:, 2] + 0.5 * u[:, 3] * u[:, 3]
    return u * [1.0, 3.0, 10.0, 0.5] + [0.0, 1.0, -5.0, 2.0], f, 2.0 * rng.random(n_rows) - 1.0


def _features(rng: np.random.Generator, n_rows: int, small: float | np.ndarray = 0.05) -> np.ndarray:
    """Eight features; the last one is the first but for the part `small`, so that κ is about 3/small."""
    u = 2.0 * rng.random((n_rows, 8)) - 1.0
    u[:, 1:7] += 0.8 * u[:, :6]
    u[:, 7] = u[:, 0] + small * u[:, 7]
    return u


def _on_features(rng: np.random.Generator, X: np.ndarray, noise: float = 0.5) -> np.ndarray:
    f = 1.0 * X[:, 0] - 0.5 * X[:, 1] + 0.25 * X[:, 2] + 0.125 * X[:, 5] * X[:, 3]
    return 2.0 + f + noise * (2.0 * rng.random(len(X)) - 1.0)


def _tall(small: float = 0.3, noise: float = 0.5, early: float | None = None) -> Callable[..., tuple]:
    """More rows than one block of 2²¹ numbers holds; `early` is `small` in the first 4/5 of them."""

    def made(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        part = small if early is None else np.where(np.arange(n_rows) < n_rows * 4 // 5, early, small)
        X = _features(rng, n_rows, part)
        y = _on_features(rng, X, noise)
        return X, y - 2.0 - 0.125 * X[:, 5] * X[:, 3] if noise < 1e-3 else y

    return made


def _labelled(n_classes: int) -> Callable[..., tuple]:
    def made(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        X, f, noise = _smooth(rng, n_rows)
        f = f + 0.4 * noise
        return X, (f > 0.1).astype(int) if n_classes == 2 else LABELS[(f > -0.2).astype(int) + (f > 0.9)]

    return made


def _numbers(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, f, noise = _smooth(rng, n_rows)
    return X, 1.0 + f + 0.2 * noise


def _outputs(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, f, noise = _smooth(rng, n_rows)
    return X, np.stack([f + 0.2 * noise, 3.0 * X[:, 0] * X[:, 1] + noise, 100.0 + f * f + 0.5 * noise], axis=1)


def _own(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = _features(rng, n_rows)
    return X, _on_features(rng, X)


def _own_labels(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = _features(rng, n_rows)
    y = _on_features(rng, X)
    return X, LABELS[(y > 1.6).astype(int) + (y > 2.7)]


def _degenerate(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A feature twice, and a feature that is constant."""
    X, y = _own(rng, n_rows)
    X[:, 4], X[:, 6] = X[:, 1], 3.0
    return X, y


def _sparse(rng: np.random.Generator, n_rows: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Four thousand inputs, five of them not zero in each row: three blocks from few numbers."""
    columns = rng.integers(0, 4000, (n_rows, 5))
    values = rng.random((n_rows, 5)) + 0.5
    place = (np.repeat(np.arange(n_rows), 5), columns.ravel())
    X = sparse.csr_array((values.ravel(), place), shape=(n_rows, 4000))
    return X, values[:, 0] * (columns[:, 0] % 7 - 3.0) + values[:, 1] + 0.1 * rng.random(n_rows)


TALL = 160_000
# How each problem is made, and of how many rows.
_MADE: dict[str, tuple[Callable[..., tuple], int]] = {
    "numbers": (_numbers, 300),
    "few rows": (_numbers, 20),
    "many rows": (_numbers, 100_000),
    "outputs": (_outputs, 300),
    "two classes": (_labelled(2), 300),
    "three classes": (_labelled(3), 300),
    "own": (_own, 200),
    "own labels": (_own_labels, 200),
    "degenerate": (_degenerate, 200),
    "sparse": (_sparse, 1200),
    "tall": (_tall(), TALL),
    "tall, proved at its edge": (_tall(1e-4), TALL),
    "tall, not proved at its edge": (_tall(4e-5), TALL),
    "tall, close fit": (_tall(noise=1e-4), TALL),
    "tall, first block leads": (_tall(1e-7), TALL),
    "tall, first block unlike": (_tall(1e-2, early=1e-8), TALL),
    "tall, beyond refinement": (_tall(1e-12), TALL),
}
PROBLEMS = tuple(_MADE)


@lru_cache(maxsize=2)
def problem(name: str) -> Problem:
    """Make a problem; the seed is its place in the table."""
    make, n_rows = _MADE[name]
    rng = np.random.default_rng(PROBLEMS.index(name))
    X, y = make(rng, n_rows + NEW_ROWS)
    whole = rng.integers(0, 4, n_rows).astype(np.float64)
    real = 0.5 + 1.5 * rng.random(n_rows)
    return Problem(X[:n_rows], y[:n_rows], whole, real, X[n_rows:])


@dataclass(frozen=True)
class Rows:
    """Rows for one fit: weights or None, the labels of a classifier or None, and a folder for files."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    classes: list[Any] | None
    folder: Path

    def frame(self) -> Any:
        """All in one frame: inputs a, b, …, targets y (or y0, y1, …), weights w."""
        import pandas as pd

        frame = named(self.X)
        targets = pd.DataFrame(self.y, columns=self.targets) if self.y.ndim == 2 else {"y": self.y}
        frame = frame.assign(**{name: targets[name] for name in self.targets})
        return frame if self.weight is None else frame.assign(w=self.weight)

    @property
    def targets(self) -> list[str]:
        """The names of the target columns."""
        return ["y"] if self.y.ndim == 1 else [f"y{i}" for i in range(self.y.shape[1])]

    @property
    def roles(self) -> dict[str, Any]:
        """What `scan` calls these columns."""
        target = "y" if self.y.ndim == 1 else self.targets
        return {"target": target, "sample_weight": None if self.weight is None else "w"}

    def blocks(self) -> Iterator[tuple[Any, ...]]:
        """Blocks `(X, y)` or `(X, y, weight)`."""
        height = max(97, self.X.shape[0] // 20)
        for a in range(0, self.X.shape[0], height):
            part = slice(a, a + height)
            yield (self.X[part], self.y[part], *(() if self.weight is None else (self.weight[part],)))


def named(X: np.ndarray) -> Any:
    """An array as a frame with columns a, b, …."""
    import pandas as pd

    return pd.DataFrame(X, columns=list("abcdefgh")[: X.shape[1]])


def elsewhere(array: np.ndarray | None) -> Any:
    """The array in strict array API, on a device from which NumPy cannot read."""
    import array_api_strict as xp

    if array is None:
        return None
    dtype = xp.float64 if array.dtype.kind == "f" else xp.int64
    return xp.asarray(array.tolist(), dtype=dtype, device=xp.Device("device1"))


def on_host(values: Any) -> np.ndarray:
    """Any answer as a NumPy array: computed if it is lazy, fetched if it lies elsewhere."""
    values = values.compute() if hasattr(values, "compute") else values
    if type(values).__module__.startswith("array_api_strict"):
        import array_api_strict as xp

        values = xp.asarray(values, device=xp.Device("CPU_DEVICE"))._array
    return np.asarray(values)


def fingerprint(name: str) -> str:
    """A hash of all numbers and labels of a problem, of those of a sparse matrix too."""
    hashed = hashlib.blake2b(digest_size=16)
    for values in vars(problem(name)).values():
        parts = (values.data, values.indices, values.indptr) if sparse.issparse(values) else (values,)
        for array in parts:
            hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()
