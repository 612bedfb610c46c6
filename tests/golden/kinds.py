"""Every kind of rows that `fit` reads: how a model is fitted to them, and new rows of the same kind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from golden.rows import Rows, elsewhere, named
from scipy import sparse

from ocrep import scan


@dataclass(frozen=True)
class Kind:
    """`fit(model, rows)` trains a model, and `new(X)` turns new rows into what it predicts."""

    fit: Callable[[Any, Rows], Any]
    new: Callable[[Any], Any] = lambda X: X


def _in_memory(change: Callable[[Any], Any]) -> Kind:
    def fit(model: Any, rows: Rows) -> Any:
        weight = {} if rows.weight is None else {"sample_weight": rows.weight}
        return model.fit(change(rows.X), rows.y, **weight)

    return Kind(fit, change)


def _elsewhere(model: Any, rows: Rows) -> Any:
    weight = {} if rows.weight is None else {"sample_weight": elsewhere(rows.weight)}
    return model.fit(elsewhere(rows.X), elsewhere(rows.y), **weight)


def _memmap(model: Any, rows: Rows) -> Any:
    path = rows.folder / "X.bin"
    rows.X.tofile(path)
    return model.fit(np.memmap(path, dtype=rows.X.dtype, shape=rows.X.shape, mode="r"), rows.y, rows.weight)


def _hdf5(model: Any, rows: Rows) -> Any:
    import h5py

    with h5py.File(rows.folder / "X.h5", "w") as file:
        return model.fit(scan(file.create_dataset("X", data=rows.X), rows.y, rows.weight))


def _files(ending: str) -> Callable[[Any, Rows], Any]:
    """Three files of unequal length, the second with its columns in another order."""

    def fit(model: Any, rows: Rows) -> Any:
        _write(rows, ending)
        return model.fit(scan(str(rows.folder / f"*.{ending}"), **rows.roles))

    return fit


def _write(rows: Rows, ending: str) -> None:
    frame, n = rows.frame(), len(rows.y)
    for i, (a, b) in enumerate(((0, n // 4), (n // 4, n // 2 + 5), (n // 2 + 5, n))):
        part = frame.iloc[a:b].reset_index(drop=True)
        part = part[list(part.columns)[::-1]] if i == 1 else part
        path = rows.folder / f"part{i}.{ending}"
        if ending == "csv":
            part.to_csv(path, index=False)
        else:
            getattr(part, f"to_{ending}")(path)


def _generator(model: Any, rows: Rows) -> Any:
    return model.fit(scan(rows.blocks(), classes=rows.classes))


def _function(model: Any, rows: Rows) -> Any:
    return model.fit(scan(rows.blocks, classes=rows.classes))


def _frames(model: Any, rows: Rows) -> Any:
    import polars as pl

    frame = rows.frame()
    return model.fit(scan([pl.from_pandas(frame.iloc[a : a + 90]) for a in range(0, len(frame), 90)], **rows.roles))


def _checkpoint(model: Any, rows: Rows) -> Any:
    return model.fit(scan(rows.blocks, classes=rows.classes, checkpoint=rows.folder / "fit.ckpt", checkpoint_every=0))


class _CrashError(Exception):
    """A crash at a place of our choice."""


def _resumed(model: Any, rows: Rows) -> Any:
    """A crash near the end of a pass of which something is saved, and the same call once more."""
    path, n = rows.folder / "fit.ckpt", len(rows.y)
    options = {"classes": rows.classes, "checkpoint": path, "checkpoint_every": 0}

    def progress(done: int, total: int | None) -> None:
        if done > 0.9 * n and path.exists():
            raise _CrashError

    try:
        model.fit(scan(rows.blocks, **options, progress=progress))
    except _CrashError:
        return model.fit(scan(rows.blocks, **options))
    raise AssertionError("The first fit was to be interrupted.")


def _partial(model: Any, rows: Rows) -> Any:
    declared = {} if rows.classes is None else {"classes": rows.classes}
    for X, y, *weight in rows.blocks():
        model.partial_fit(X, y, **declared, **({"sample_weight": weight[0]} if weight else {}))
    return model


@contextmanager
def _threads() -> Iterator[None]:
    import dask

    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def _dask_array(array: Any) -> Any:
    """An array in three chunks: some rows, few rows or none, and most rows."""
    import dask.array as da

    n = array.shape[0]
    return da.from_array(array, chunks=((n // 10, n // 80, n - n // 10 - n // 80), *array.shape[1:]))


def _fit_dask_array(model: Any, rows: Rows) -> Any:
    weight = () if rows.weight is None else (_dask_array(rows.weight),)
    with _threads():
        return model.fit(_dask_array(rows.X), _dask_array(rows.y), *weight)


def _dask_frame(frame: Any) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=4, sort=False)


def _fit_dask_frame(model: Any, rows: Rows) -> Any:
    table = _dask_frame(rows.frame())
    inputs = [name for name in table.columns if name not in (*rows.targets, "w")]
    weight = () if rows.weight is None else (table["w"],)
    with _threads():
        return model.fit(table[inputs], table[rows.roles["target"]], *weight)


KINDS: dict[str, Kind] = {
    "array": _in_memory(lambda X: X),
    "columns first": _in_memory(np.asfortranarray),
    "float32": _in_memory(lambda X: X.astype(np.float32)),
    "list": _in_memory(lambda X: X.tolist()),
    "pandas": _in_memory(named),
    "csr": _in_memory(sparse.csr_array),
    "csc": _in_memory(sparse.csc_array),
    "strict": Kind(_elsewhere, elsewhere),
    "memmap": Kind(_memmap),
    "hdf5": Kind(_hdf5),
    "parquet": Kind(_files("parquet"), named),
    "feather": Kind(_files("feather"), named),
    "csv": Kind(_files("csv"), named),
    "generator": Kind(_generator),
    "function": Kind(_function),
    "polars": Kind(_frames, named),
    "checkpoint": Kind(_checkpoint),
    "resumed": Kind(_resumed),
    "partial_fit": Kind(_partial),
    "dask array": Kind(_fit_dask_array, _dask_array),
    "dask frame": Kind(_fit_dask_frame, lambda X: _dask_frame(named(X))),
}
