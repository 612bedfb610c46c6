"""Checkpoints: a pass over rows that is saved now and then, and continued bit for bit after a crash."""

from __future__ import annotations

import hashlib
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import numpy as np
from scipy import sparse

from ocrep._files.writing import check_names, read_arrays, replacing, unfinished
from ocrep._linalg.rows import ChunkEncoder
from ocrep._linalg.solve import ByFold, Route
from ocrep._rows.block import Block
from ocrep._rows.memory import Rows
from ocrep._training.targets import Labels

if TYPE_CHECKING:
    from ocrep._training.recipe import Learned, Recipe

# ------------------------------------------------------------------------------
# Fingerprints: hashes of all that decides a summary of rows, but for the rows.


def fit_fingerprint(recipe: Recipe, learned: Learned) -> str:
    """What decides a factor: hidden layer, coding of targets, solver, folds."""
    hashed = hashlib.blake2b(digest_size=32)
    decisive: list[Any] = [recipe.estimator, bool(recipe.intercept), recipe.solver, recipe.folds]
    decisive += [learned.columns, learned.n_inputs, learned.n_outputs, learned.targets.fingerprint()]
    if learned.layer is not None:
        layer = learned.one_layer
        activation = layer.activation if isinstance(layer.activation, str) else _name_of(layer.activation)
        decisive += [activation, bool(layer.direct_link)]
        for array in layer.map_.arrays():
            hashed.update(np.ascontiguousarray(array).data)
    if learned.division is not None:
        decisive.append(learned.division.n_rows)
        if learned.division.known is not None:
            hashed.update(learned.division.known.data)
    hashed.update(repr(decisive).encode())
    return hashed.hexdigest()


def survey_fingerprint(recipe: Recipe) -> str:
    """What decides a survey: all that must be known of the rows first."""
    needs = recipe.needs
    decisive: list[Any] = [needs.labels, needs.range, needs.totals, needs.groups, needs.sample]
    if isinstance(recipe.targets, Labels):
        decisive += [recipe.targets.fingerprint(), recipe.targets.class_weight]
    return hashlib.blake2b(repr(decisive).encode(), digest_size=32).hexdigest()


def _name_of(function: Any) -> str:
    """A function's name; its code cannot be compared."""
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", type(function).__name__))


# ------------------------------------------------------------------------------

_FORMAT = "ocrep checkpoint 3"
_STATE = "state:"
_NAMES = {"fit", "stage", "n_rows", "digest", "fingerprints"}


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """A pass over the rows, part of the way."""

    stage: str
    """The route (`_linalg/solve.py`) whose summaries `arrays` holds."""
    n_rows: int
    """Rows that are in `arrays`, counted from the beginning."""
    digest: str
    """A hash of those rows."""
    fingerprints: tuple[str, ...]
    """The files that the pass has begun, with sizes and times; empty for rows that do not come from files."""
    arrays: dict[str, np.ndarray]


class FileCheckpoint:
    """Accumulates the rows of a scan, and saves now and then in a file how far it has come."""

    def __init__(self, path: Path, every: float, fit: str, rows: Rows, read: Callable[[int], Iterator[Block]]) -> None:
        self._path = path
        self._every = every
        self._fit = fit
        """What is fitted."""
        self._rows = rows
        self._read = read
        self._fingerprints = rows.fingerprints()
        self._saved = _load(path, fit)
        self._saved_at = monotonic()
        self._digest = ""
        self._n_rows = 0

    @classmethod
    def of(cls, recipe: Recipe, learned: Learned, rows: Rows) -> FileCheckpoint:
        """The checkpoint that the rows ask for."""
        assert rows.checkpoint is not None
        encoder = learned.encoder
        fit = fit_fingerprint(recipe, learned)
        return cls(*rows.checkpoint, fit, rows, lambda skip: rows.blocks(encoder.code, encoder.block_size, skip))

    @property
    def stage(self) -> str | None:
        """The route that was being accumulated when the fit was interrupted; None in a new fit."""
        return None if self._saved is None else self._saved.stage

    def run(self, start: ByFold, chunks: ChunkEncoder) -> ByFold:
        """Accumulate all rows one block after the other, from where the fit was interrupted."""
        saved = self._saved
        summary = start
        self._n_rows = 0
        self._digest = ""
        if saved is not None and saved.stage == start.route:
            self._n_rows = saved.n_rows
            summary = start.with_arrays(saved.arrays)
        blocks = self._after(self._n_rows)
        while True:
            try:
                block = next(blocks, None)
            except BaseException:
                # The rows read so far are complete; only a file or block after them is not.
                self.save(summary)
                raise
            if block is None:
                break
            summary = summary.add(block, chunks)
            self._n_rows += len(block)
            if monotonic() - self._saved_at >= self._every:
                self.save(summary)
        if not self._n_rows:
            raise ValueError("There are no rows to learn from.")
        return summary

    def save(self, summary: ByFold) -> None:
        """Write the file anew, with the summary of the rows so far; an interrupted write leaves the old one.

        A disk that is full must not cost the work, so that is a warning.
        """
        if not self._n_rows:
            return
        begun = self._fingerprints[: self._rows.n_parts_read]
        held = {
            "format": np.array(_FORMAT),
            "fit": np.array(self._fit),
            "stage": np.array(summary.route),
            "n_rows": np.array(self._n_rows),
            "digest": np.array(self._digest),
            "fingerprints": np.array(begun, dtype=np.str_),
            **{_STATE + name: array for name, array in summary.to_arrays().items()},
        }
        try:
            with replacing(self._path) as part, part.open("wb") as file:
                np.savez(file, allow_pickle=False, **held)
        except OSError as error:
            warnings.warn(
                f"The checkpoint {self._path} could not be written ({error.strerror}): the fit goes on, and an "
                "earlier checkpoint stays as it was.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._saved_at = monotonic()  # after a write that failed, too, the next one waits as long

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def _after(self, n_rows: int) -> Iterator[Block]:
        """Rows behind the first `n_rows`; those are skipped where files are as they were, else read and compared."""
        saved = self._saved
        known = self._fingerprints
        if n_rows and saved is not None and known and saved.fingerprints == known[: len(saved.fingerprints)]:
            self._digest = saved.digest
            for block in self._read(n_rows):
                yield self._hashed(block)
            return
        read = 0
        for block in self._read(0):
            hashed = self._hashed(block)
            before = read
            read += len(block)
            if before >= n_rows:
                yield hashed
            elif read > n_rows or (read == n_rows and saved is not None and self._digest != saved.digest):
                self._forget_and_raise()
        if read < n_rows:
            self._forget_and_raise()

    def _hashed(self, block: Block) -> Block:
        """Add a block's rows to the hash of all before it."""
        X = block.X
        arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        digest = hashlib.blake2b(self._digest.encode(), digest_size=32)
        for array in (*arrays, block.y, block.weight, block.fold):
            if array is not None:
                digest.update(np.ascontiguousarray(array).data)
        self._digest = digest.hexdigest()
        return block

    def _forget_and_raise(self) -> NoReturn:
        """Raise because the rows are not those that the checkpoint was made of."""
        self._saved, self._n_rows = None, 0  # so that the error itself saves nothing
        raise ValueError(
            f"{self._path} is the checkpoint of a fit on other rows: files or blocks that it has seen were changed. "
            "Bring them back, or delete the file to start anew."
        )


def _load(path: Path, fit: str) -> Saved | None:
    """What the same fit saved; None if there is no file. Half-written files of a killed fit are removed."""
    for part in unfinished(path):
        part.unlink(missing_ok=True)
    if not path.exists():
        return None
    if not path.is_file():
        raise ValueError(f"checkpoint={str(path)!r} is not a file: name a file, which need not exist.")
    try:
        with path.open("rb") as file:
            held = read_arrays(file)
        check_names(held, _NAMES if str(held["format"]) == _FORMAT else set())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a checkpoint of ocrep, or a damaged one ({error}): name another file, or delete this one "
            "if it is yours to delete."
        ) from error
    if str(held["format"]) != _FORMAT or str(held["stage"]) not in get_args(Route):
        raise ValueError(f"{path} is a checkpoint of another version of ocrep: delete it to start anew.")
    if str(held["fit"]) != fit:
        raise ValueError(
            f"{path} is the checkpoint of a fit with other parameters, columns, classes, groups or input ranges, or of "
            "more or fewer rows: make the same call as before, or delete the file to start anew."
        )
    return Saved(
        str(held["stage"]),
        int(held["n_rows"]),
        str(held["digest"]),
        tuple(held["fingerprints"].tolist()),
        {name.removeprefix(_STATE): array for name, array in held.items() if name.startswith(_STATE)},
    )
