"""`Block`: some rows in memory, with their place, so that an error can say which file and which row.

The same type serves rows as they were read, checked rows, and coded rows (labels as class numbers, folds known): each
step replaces some of the fields. Blocks are cut and joined without looking at what they hold. The rest of this file are
the small questions that every kind of rows is asked: whether it lies on a device, of which type its numbers are, and
which group each row belongs to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from numbers import Real
from typing import Any, cast

import numpy as np
from array_api_compat import is_array_api_obj, is_jax_array, is_numpy_array
from scipy import sparse

from ocrep._linalg.arrays import Array, array_namespace, device_of, take_rows, to_device_of, to_host


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows in memory: as they were read, then checked, then coded (labels as class numbers, folds known)."""

    X: Any
    """An array of float32 or float64 in memory or on a device, or a sparse matrix."""
    y: Any
    weight: Any
    part: str = ""
    """The file, block or partition that the rows come from; empty for arrays in memory."""
    part_number: int = 0
    start: int = 0
    """The number of the first row within its part."""
    columns: tuple[str, ...] | None = None
    groups: Any = None
    """The group of each row; once it is checked, as a key of 64 bits."""
    first: int = 0
    """The number of the first row among all rows."""
    fold: Any = None
    """The fold of each row in cross-validation, once the rows are coded; None where the inputs decide it."""

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, rows: slice) -> Block:
        return replace(
            self,
            X=self.X[rows, ...],
            y=None if self.y is None else self.y[rows, ...],
            weight=None if self.weight is None else self.weight[rows],
            start=self.start + (rows.start or 0),
            groups=None if self.groups is None else self.groups[rows],
            first=self.first + (rows.start or 0),
            fold=None if self.fold is None else self.fold[rows],
        )

    @property
    def counts(self) -> bool:
        """Whether a row has a positive weight."""
        if self.weight is None:
            return len(self) > 0
        return bool(array_namespace(self.weight).any(self.weight > 0.0))

    def take(self, rows: Array) -> Block:
        """Some of the rows, by their numbers in this block; where they came from is no longer known."""
        values = (self.X, self.y, self.weight, self.fold)
        X, y, weight, fold = (None if value is None else take_rows(value, rows) for value in values)
        return Block(X, y, weight, fold=fold)

    def copy(self) -> Block:
        """The rows in memory of their own; where they came from is no longer known."""
        values = (self.X, self.y, self.weight, self.fold)
        X, y, weight, fold = (None if value is None else value.copy() for value in values)
        return Block(X, y, weight, fold=fold)

    def joined(self, *others: Block) -> Block:
        """These rows and the rows of other coded blocks, all on the host."""
        if not others:
            return self
        blocks = [self, *others]
        inputs = [block.X for block in blocks]
        X = sparse.vstack(inputs, format="csr") if sparse.issparse(self.X) else np.concatenate(inputs)
        weight = None
        if any(block.weight is not None for block in blocks):
            weight = np.concatenate([np.ones(len(b)) if b.weight is None else b.weight for b in blocks])
        fold = None if self.fold is None else np.concatenate([block.fold for block in blocks])
        return Block(X, np.concatenate([block.y for block in blocks]), weight, fold=fold)

    @property
    def place(self) -> str:
        """The beginning of a sentence about the block."""
        return f"{self.part}: " if self.part else ""

    def row(self, index: int) -> str:
        """The beginning of a sentence about one row."""
        number = self.start + index + 1
        return f"{self.part}, row {number}: " if self.part else f"Row {number}: "

    def column(self, index: int) -> str:
        """A column's name, or its number."""
        return repr(self.columns[index]) if self.columns else str(index)


def listed(columns: tuple[str, ...] | None) -> str:
    """Names of columns in a sentence, but not hundreds of them."""
    if columns is None:
        return "without names"
    return ", ".join(map(repr, columns[:8])) + (" and more" if len(columns) > 8 else "")


def skip_rows(blocks: Iterator[Block], skip: int) -> Iterator[Block]:
    """Leave out the first `skip` rows, where there is no cheaper way than to read them."""
    for block in blocks:
        n = len(block)
        if skip >= n:
            skip -= n
            continue
        yield block if not skip else block[slice(skip, n)]
        skip = 0


def recut(blocks: Iterator[Block], rows: int) -> Iterator[Block]:
    """Cut and join coded blocks to `rows` rows each; the last may be shorter.

    So neither the cost nor the rounding of a fit depends on the blocks in which the rows came.
    """
    waiting: list[Block] = []
    have = 0
    for block in blocks:
        start = 0
        n = len(block)
        while have + n - start >= rows:
            end = start + rows - have
            waiting.append(block if start == 0 and end == n else block[start:end])
            yield waiting[0].joined(*waiting[1:])
            waiting = []
            have = 0
            start = end
        if start < n:
            # A copy, so that the few rows that wait do not keep the large block that they came from.
            waiting.append(block[start:].copy() if start else block)
            have += n - start
    if waiting:
        yield waiting[0].joined(*waiting[1:])


# ------------------------------------------------------------------------------
# Arrays of another library than NumPy: recognised, and checked without copying them to the host.


def on_device(X: Any) -> bool:
    """Whether X is an array of another library than NumPy, which scikit-learn's own checks would copy to the host."""
    if is_array_api_obj(X):
        if is_numpy_array(X):
            return False
        _check_double_precision(X)
        return hasattr(array_namespace(X), "float64")
    if hasattr(X, "__cuda_array_interface__"):
        raise TypeError(
            f"X is on a GPU as a {type(X).__name__}, which is not an array of torch or CuPy: install torch and give "
            "torch.as_tensor(X), or copy X to the host as a NumPy array."
        )
    return False


def _check_double_precision(X: Array) -> None:
    """Raise for arrays whose library, or device, turns float64 into float32 or refuses it."""
    if is_jax_array(X) and np.dtype(array_namespace(X).result_type(float)) != np.float64:
        raise TypeError(
            "X is a JAX array, and JAX computes in single precision unless it is configured otherwise: call "
            'jax.config.update("jax_enable_x64", True) before the first array is made.'
        )
    if str(device_of(X)).startswith("mps"):
        raise TypeError("X is on Apple's MPS, which has no float64, and γ needs it: give X.cpu(), or a NumPy array.")


def as_real(values: Array, name: str) -> Array:
    """Whole numbers as float64; float16, whose eleven bits no answer here could honour, and complex are refused."""
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, ("bool", "integral")):
        return xp.astype(values, xp.float64)
    if values.dtype not in (xp.float32, xp.float64):
        raise ValueError(f"{name} has dtype {values.dtype}: convert it to float32 or float64.")
    return values


def on_device_of(X: Array, name: str, values: Any) -> Array:
    """Targets or weights in the library and on the device of X, from wherever they are, as in scikit-learn."""
    if is_array_api_obj(values) and not is_numpy_array(values):
        return values if _place_of(values) == _place_of(X) else to_device_of(X, to_host(values))
    array = np.asarray(values)
    if array.dtype.kind not in "biu" and array.dtype != np.float32:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"X is on {device_of(X)}, and {name} holds texts or objects, which cannot follow it: encode {name} as "
                "numbers first."
            ) from None
    return to_device_of(X, array)


def check_place(call: str, trained: Array, X: Any) -> None:
    """Raise unless X is of the library and on the device of what was trained; `call` says what X was given to."""
    given = _place_of(X) if on_device(X) else None
    wanted = None if isinstance(trained, np.ndarray) else _place_of(trained)
    if given != wanted:
        raise ValueError(
            f"X of {call} must use the same namespace and device as in training, which was on {_in_words(wanted)}, but "
            f"X is on {_in_words(given)}: move it there."
        )


def _place_of(values: Array) -> tuple[Any, Any]:
    return array_namespace(values), device_of(values)


def _in_words(place: tuple[Any, Any] | None) -> str:
    return "the host with NumPy" if place is None else f"{place[1]} with {place[0].__name__}"


def host_array(values: Any) -> Any:
    """Arrays of other libraries as NumPy's, all else as it is."""
    return to_host(values) if is_array_api_obj(values) and not is_numpy_array(values) else values


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; nobody holds one before Dask is imported, so this never imports it."""
    base = sys.modules.get("dask.base")
    return base is not None and bool(base.is_dask_collection(X))


# ------------------------------------------------------------------------------
# Groups of rows as keys of 64 bits: equal groups have equal keys, in every block, file and type of array.


_SIGN = np.uint64(1 << 63)
# Smaller whole numbers are float64 exactly.
_EXACT = 2.0**53
# A survey keeps at most this many distinct groups, and one more to show that there are more.
MOST_GROUPS = 1024


def keys_of(groups: np.ndarray) -> np.ndarray:
    """Numbers by their value as float64, in their order; texts, and all other objects, by a hash.

    The bits of positive numbers are in the order of the numbers once the sign bit is set, and the bits of
    negative numbers once all are flipped.
    """
    if groups.dtype.kind in "mM":
        groups = groups.astype("datetime64[ns]" if groups.dtype.kind == "M" else "timedelta64[ns]").astype(np.int64)
    if groups.dtype.kind in "biuf":
        numbers = groups.astype(np.float64) + 0.0  # −0 + 0 = 0
        bits = numbers.view(np.uint64)
        keys = np.where(bits & _SIGN, ~bits, bits | _SIGN)
        # Large whole numbers, such as identifiers of 64 bits, would fall together as float64.
        large = np.abs(numbers) >= _EXACT
        if large.any():
            keys[large] = [_key(value) for value in groups[large].tolist()]
        return keys
    values = groups.tolist()
    # Groups are few, and a hash takes longer than a look-up.
    known = {value: _key(value) for value in set(values)}
    return np.array([known[value] for value in values], dtype=np.uint64)


def _key(value: Any) -> np.uint64:
    if isinstance(value, Real) and abs(cast(float, value)) < _EXACT:
        return keys_of(np.array([float(value)]))[0]
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # so that it has the key of the same whole number
    text = value if isinstance(value, bytes) else str(value).encode()
    return np.uint64(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))


def smallest_keys(keys: np.ndarray) -> np.ndarray:
    """The smallest distinct keys, sorted: of the keys of several parts together, the same as of the whole."""
    return np.unique(keys)[: MOST_GROUPS + 1]
