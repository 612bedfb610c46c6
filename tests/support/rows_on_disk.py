"""The same rows in every form that a fit can read them from."""

import numpy as np
import pandas as pd
import pyarrow.dataset
import pyarrow.feather
from support.problems import smooth_problem

from ocrep import scan

NAMES = list("abcde")


def frame_of(X, y=None, weight=None):
    frame = pd.DataFrame(X, columns=NAMES[: X.shape[1]])
    if y is not None:
        frame["y"] = y
    if weight is not None:
        frame["w"] = weight
    return frame


def smooth_frame(n_rows):
    """Five inputs and a smooth target."""
    return frame_of(*smooth_problem(n_rows, len(NAMES)))


def cut(n_rows, rows):
    """Slices of `rows` rows."""
    return [slice(a, min(a + rows, n_rows)) for a in range(0, n_rows, rows)]


def write(frame, folder, kind, n_files=3):
    """Files of unequal length; every second one has its columns in another order."""
    edges = np.linspace(0, 1, n_files + 1) ** 1.5 * len(frame)
    paths = []
    for i in range(n_files):
        part = frame.iloc[int(edges[i]) : int(edges[i + 1])].reset_index(drop=True)
        part = part[list(part.columns)[::-1]] if i % 2 else part
        path = folder / f"part{i}.{kind}"
        if kind == "parquet":
            part.to_parquet(path, row_group_size=700, write_page_checksum=True)
        elif kind == "feather":
            pyarrow.feather.write_feather(part, path, chunksize=500)
        else:
            part.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
        paths.append(path)
    return paths


def as_glob(frame, folder, kind="parquet", **options):
    write(frame, folder, kind)
    return scan(str(folder / f"*.{kind}"), target="y", sample_weight="w" if "w" in frame else None, **options)


def as_dataset(frame, folder, **options):
    write(frame, folder, "parquet")
    weight = "w" if "w" in frame else None
    return scan(pyarrow.dataset.dataset(folder), target="y", sample_weight=weight, columns=NAMES, **options)


def as_blocks(frame, rows=173):
    """Pairs, or triples with weights."""
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    weight = frame["w"].to_numpy() if "w" in frame else None
    return [(X[s], y[s]) if weight is None else (X[s], y[s], weight[s]) for s in cut(len(frame), rows)]
