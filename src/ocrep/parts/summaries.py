"""`Part` and `Survey`: what a plan makes of some rows; they know which parts they hold, and merge."""

from __future__ import annotations

import io
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from ocrep import __version__
from ocrep._files.writing import check_names, read_arrays, replacing
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors
from ocrep._rows.survey import RowSample
from ocrep._rows.survey import Survey as Surveyed

# ------------------------------------------------------------------------------
# The bytes of a part or a survey: an uncompressed `.npz` of plain arrays, so that reading it runs no code.


FORMAT = 1
"""The layout of the bytes; those of another are refused."""
_HEAD = "ocrep "
_STATE = "state:"
_NAMES = {"head", "format", "version", "plan", "numbers", "kind"}


def pack(word: str, plan: str, numbers: frozenset[int], kind: str, arrays: dict[str, np.ndarray]) -> bytes:
    """A part or a survey (`word`) as bytes; `kind` says what the arrays are."""
    held: dict[str, Any] = {
        "head": np.array(_HEAD + word),
        "format": np.array(FORMAT),
        "version": np.array(__version__),
        "plan": np.array(plan),
        "numbers": np.array(sorted(numbers), dtype=np.int64),
        "kind": np.array(kind),
        **{_STATE + name: array for name, array in arrays.items()},
    }
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **held)
    return file.getvalue()


def unpack(data: bytes, word: str) -> tuple[str, frozenset[int], str, dict[str, np.ndarray]]:
    """Plan, numbers, kind and arrays of a part or a survey (`word`)."""
    try:
        _check_size(data)
        held = read_arrays(io.BytesIO(data))
        check_names(held, {"head", "format", "version"})
    except (ValueError, KeyError, EOFError, OSError, MemoryError, zipfile.BadZipFile) as error:
        raise damaged(word, error) from error
    head, version = str(held["head"]), str(held["version"])
    if head != _HEAD + word:
        raise ValueError(f"These are the bytes of a {head.removeprefix(_HEAD)!r}, and a {word} is needed.")
    if held["format"].shape or int(held["format"]) != FORMAT:
        raise ValueError(
            f"This {word} was written by ocrep {version} in another format, and this is ocrep {__version__}: use one "
            "version everywhere."
        )
    try:
        check_names(held, _NAMES)
        numbers = frozenset(int(number) for number in held["numbers"].tolist())
    except (ValueError, TypeError) as error:
        raise damaged(word, error) from error
    arrays = {name.removeprefix(_STATE): array for name, array in held.items() if name.startswith(_STATE)}
    return str(held["plan"]), numbers, str(held["kind"]), arrays


def damaged(word: str, error: BaseException) -> ValueError:
    """What to say of bytes that cannot be read."""
    return ValueError(f"These bytes are not a {word} of ocrep, or a damaged one ({error}): make the {word} again.")


def _check_size(data: bytes) -> None:
    """Raise for compressed files: ours are not, and few bytes must not fill the memory."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
            raise ValueError("it is compressed")


# ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Numbered(ABC):
    """A summary of the rows of some parts, which have numbers so that none counts twice."""

    plan: str
    """The fingerprint of the plan."""
    numbers: frozenset[int]
    summary: Any
    """None if the parts have no rows."""

    def merge(self, other: Self) -> Self:
        """Join with the summary of other parts, exactly: in any order, and in any grouping.

        Parameters
        ----------
        other : same type
            The summary of other parts of the same plan.

        Returns
        -------
        same type
            The summary of all rows of both; neither of them changes.
        """
        self.check_plan(other, self.plan)
        twice = self.numbers & other.numbers
        if twice:
            raise ValueError(f"{told(twice)} in both: each part counts once, so merge only one of its {self._word()}s.")
        mine, theirs = self.summary, other.summary
        both = mine.merge(theirs) if mine is not None and theirs is not None else mine or theirs
        return type(self)(self.plan, self.numbers | other.numbers, both)

    def to_bytes(self) -> bytes:
        """Give all that is needed to merge elsewhere.

        Returns
        -------
        bytes
            An `.npz` file of plain arrays.
        """
        kind = "" if self.summary is None else type(self.summary).__name__
        arrays = {} if self.summary is None else self._arrays()
        return pack(self._word(), self.plan, self.numbers, kind, arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` gave; no code is run.

        Parameters
        ----------
        data : bytes
            The bytes; others are refused.

        Returns
        -------
        same type
            As it was.
        """
        plan, numbers, kind, arrays = unpack(data, cls._word())
        try:
            return cls(plan, numbers, cls._summary(kind, arrays) if kind else None)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise damaged(cls._word(), error) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_bytes` to a file, which is complete or absent, whenever the process is killed.

        Parameters
        ----------
        path : path
            The file; an existing one is replaced.
        """
        with replacing(path) as part:
            part.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote; no code is run.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        same type
            As it was.
        """
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def check_plan(cls, given: Any, plan: str) -> None:
        """Raise unless what was given is of this type and of the plan."""
        if not isinstance(given, cls):
            raise TypeError(f"A {type(given).__name__} was given, and a {cls.__name__} of ocrep.parts is needed.")
        if given.plan != plan:
            raise ValueError(
                f"This {cls._word()} is of another plan (other parameters, columns, classes, ranges or hidden layer): "
                "send one plan to all who make parts."
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(numbers={sorted(self.numbers)})"

    @classmethod
    def _word(cls) -> str:
        return cls.__name__.lower()

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]: ...

    @classmethod
    @abstractmethod
    def _summary(cls, kind: str, arrays: dict[str, np.ndarray]) -> Any: ...


class Part(Numbered):
    """All that training needs to know of the rows of one part, or of several that were merged; made by `Plan.of`.

    It holds triangular factors of [1 | H | T], one or one per fold, and counts: about M² numbers, however many rows.

    Parameters
    ----------
    plan : str
        The fingerprint of the plan.
    numbers : frozenset of int
        The numbers of the parts.
    summary : Factor or FoldFactors or None
        The factor of the rows, or one per fold; None if the parts have no rows.

    See Also
    --------
    Plan : Makes parts, and a model of them.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, parts
    >>> plan = parts.plan(TikhonovRegressor(0.0), n_features=1)
    >>> first = plan.of([[0.0], [1.0]], [1.0, 3.0], part_number=0)
    >>> second = plan.of([[2.0]], [5.0], part_number=1)
    >>> first.merge(second)
    Part(numbers=[0, 1])
    >>> parts.Part.from_bytes(first.to_bytes())
    Part(numbers=[0])
    >>> first.save("part-0.npz")
    >>> parts.Part.load("part-0.npz")
    Part(numbers=[0])
    """

    summary: Factor | FoldFactors | None

    def _arrays(self) -> dict[str, np.ndarray]:
        assert self.summary is not None
        return self.summary.to_arrays()

    @classmethod
    def _summary(cls, kind: str, arrays: dict[str, np.ndarray]) -> Factor | FoldFactors:
        kinds: dict[str, type[Factor] | type[FoldFactors]] = {"Factor": Factor, "FoldFactors": FoldFactors}
        found = kinds[kind].from_arrays(arrays)
        for factor in found.factors if isinstance(found, FoldFactors) else (found,):
            if factor is not None:
                _check_shapes(factor)
        return found


class Survey(Numbered):
    """Ranges, labels and what else must be known of all rows before the first is mapped; made by `Plan.survey`.

    Parameters
    ----------
    plan : str
        The fingerprint of the plan.
    numbers : frozenset of int
        The numbers of the parts.
    summary : object or None
        What was found; None if the parts have no rows.

    See Also
    --------
    Plan : Makes surveys, and is completed by them.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor, parts
    >>> plan = parts.plan(TikhonovRegressor(0.0), n_features=1)
    >>> first = plan.survey([[0.0], [1.0]], [1.0, 3.0], part_number=0)
    >>> second = plan.survey([[2.0]], [5.0], part_number=1)
    >>> first.merge(second)
    Survey(numbers=[0, 1])
    >>> parts.Survey.from_bytes(first.to_bytes())
    Survey(numbers=[0])
    >>> first.save("part-0.npz")
    >>> parts.Survey.load("part-0.npz")
    Survey(numbers=[0])
    """

    summary: Surveyed | None

    def _arrays(self) -> dict[str, np.ndarray]:
        assert self.summary is not None
        return _survey_to_arrays(self.summary)

    @classmethod
    def _summary(cls, kind: str, arrays: dict[str, np.ndarray]) -> Surveyed:
        del kind
        return _survey_from_arrays(arrays)


def _check_shapes(factor: Factor) -> None:
    """Raise unless the arrays of a factor fit together and are finite."""
    triangle, counts = factor.triangle, factor.counts
    n, width, n_targets = len(triangle.R), int(counts.intercept) + counts.n_features, counts.n_targets
    parts = {"R": (n, width), "QtT": (n, n_targets), "left": (n_targets,)}
    for name, shape in parts.items():
        array = getattr(triangle, name)
        if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"{name} is not an array of {shape} finite numbers")


def told(numbers: frozenset[int] | set[int]) -> str:
    """Numbers of parts as the beginning of a sentence, but not hundreds of them."""
    first = [str(number) for number in sorted(numbers)[:8]]
    if len(numbers) == 1:
        return f"Part {first[0]} is"
    if len(numbers) > 8:
        return f"Parts {', '.join(first)} and {len(numbers) - 8} more are"
    return f"Parts {', '.join(first[:-1])} and {first[-1]} are"


# ------------------------------------------------------------------------------
# Surveys as arrays of plain types, for files that are read without running code, and back.


Arrays = Mapping[str, np.ndarray]
_OBJECT = ".object"


def _survey_to_arrays(survey: Surveyed) -> dict[str, np.ndarray]:
    """A survey of rows on the host."""
    held: dict[str, Any] = {
        "n_rows": survey.n_rows,
        "weight_sum": survey.weight_sum,
        "low": survey.low,
        "high": survey.high,
        "dtype": survey.dtype.name,
        "target_shape": np.array(survey.target_shape, dtype=np.int64),
    }
    optional = {"totals": survey.totals, "groups": survey.groups}
    held.update({name: values for name, values in optional.items() if values is not None})
    held.update(_plain("labels", survey.labels))
    held.update(_plain("columns", None if survey.columns is None else np.array(survey.columns)))
    if survey.sample is not None:
        held.update({f"sample.{name}": values for name, values in _sample_to_arrays(survey.sample).items()})
    return {name: np.asarray(values) for name, values in held.items()}


def _survey_from_arrays(arrays: Arrays) -> Surveyed:
    """The survey that `_survey_to_arrays` wrote."""
    columns = arrays.get("columns")
    sample = {name.removeprefix("sample."): array for name, array in arrays.items() if name.startswith("sample.")}
    return Surveyed(
        n_rows=int(arrays["n_rows"]),
        weight_sum=float(arrays["weight_sum"]),
        low=arrays["low"],
        high=arrays["high"],
        dtype=np.dtype(np.float32 if str(arrays["dtype"]) == "float32" else np.float64),
        labels=_restored("labels", arrays),
        totals=arrays.get("totals"),
        groups=arrays.get("groups"),
        target_shape=tuple(arrays["target_shape"].tolist()),
        columns=None if columns is None else tuple(columns.tolist()),
        sample=_sample_from_arrays(sample) if sample else None,
    )


def _sample_to_arrays(sample: RowSample) -> dict[str, Any]:
    held = {"size": sample.size, "hashes": sample.hashes, "weight": sample.weight, "labels": sample.labels}
    held.update(_plain("y", sample.y))
    if sample.groups is not None:
        held["groups"] = sample.groups
    if not sparse.issparse(sample.X):
        return {**held, "X": sample.X}
    X = sparse.csr_array(sample.X)
    return {**held, "X.data": X.data, "X.indices": X.indices, "X.indptr": X.indptr, "X.shape": np.array(X.shape)}


def _sample_from_arrays(arrays: Arrays) -> RowSample:
    X: Any = arrays.get("X")
    if X is None:
        parts = arrays["X.data"], arrays["X.indices"], arrays["X.indptr"]
        X = sparse.csr_matrix(parts, shape=tuple(arrays["X.shape"].tolist()))
    y = _restored("y", arrays)
    size = int(arrays["size"])
    labels = bool(arrays["labels"])
    return RowSample(size, arrays["hashes"], X, y, arrays["weight"], labels, groups=arrays.get("groups"))


def _plain(name: str, values: np.ndarray | None) -> dict[str, np.ndarray]:
    """Texts of objects as texts; what is neither text nor number raises."""
    if values is None:
        return {}
    if values.dtype.kind != "O":
        return {name: values}
    plain = np.array(values.tolist())
    if plain.dtype.kind not in "biufU" or plain.tolist() != values.tolist():
        raise ValueError(f"{name} such as {values[0]!r} cannot be written: use texts or whole numbers.")
    return {name + _OBJECT: plain}


def _restored(name: str, arrays: Arrays) -> np.ndarray | None:
    objects = arrays.get(name + _OBJECT)
    return arrays.get(name) if objects is None else objects.astype(object)
