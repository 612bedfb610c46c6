"""The rows of a problem in memory, as the program's pipelines were fed before they were trained block by block."""

import numpy as np
import pandas as pd

from ocrep._files.convert import as_kind


def inputs_of(problem, rows=None):
    """The inputs of all rows of a problem, or of some, as one frame."""
    frames = []
    for found in (rows or problem.rows).blocks():
        block = found.block
        columns = {name: as_kind(block.columns[name], kind, name, 0) for name, kind in problem.kinds.items()}
        frames.append(pd.DataFrame({name: pd.Series(found.of(v), dtype=v.dtype) for name, v in columns.items()}))
    return pd.concat(frames, ignore_index=True)


def targets_of(rows):
    return np.concatenate([found.y for found in rows.blocks()])
