"""Results as one Parquet file: a row per number, small enough to be kept with the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ocrep._files.writing import replacing
from ocrep.study.results import NUMBERS, Results, Row

KEYS = ("kind", "data", "biases", "targets", "method")
ABOUT = b"ocrep.study"


def write_parquet(path: Path, about: dict[str, Any], results: Results) -> None:
    """Write results and their description; numbers have the digits of float32."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = [(case, place, row) for case in sorted(results.rows) for place, row in results.rows[case]]
    columns: dict[str, Any] = {
        key: pa.array([getattr(case, key) for case, _, _ in flat]).dictionary_encode() for key in KEYS
    }
    columns["split"] = pa.array([split for _, (split, _), _ in flat], pa.int16())
    columns["draw"] = pa.array([draw for _, (_, draw), _ in flat], pa.int16())
    columns["n_hidden"] = pa.array([row.n_hidden for *_, row in flat], pa.int16())
    columns |= {name: pa.array([getattr(row, name) for *_, row in flat], pa.float32()) for name in NUMBERS}
    table = pa.table(columns).replace_schema_metadata({ABOUT: json.dumps(about).encode()})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=19)


def read_parquet(path: Path) -> tuple[dict[str, Any], Results]:
    """Return the description and the results."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    metadata = table.schema.metadata or {}
    if ABOUT not in metadata:
        raise ValueError(
            f"{path} holds no results of a study: give a folder, or a file that ocrep.study.publish wrote."
        )
    columns = [_values(table.column(name)) for name in (*KEYS, "split", "draw", "n_hidden", *NUMBERS)]
    results = Results()
    for kind, data, biases, targets, method, split, draw, n_hidden, *numbers in zip(*columns, strict=True):
        results.put(kind, data, biases, (split, draw), Row(n_hidden, method, targets, *numbers))
    return json.loads(metadata[ABOUT]), results


def _values(column: Any) -> list[Any]:
    """The values of a column as Python's own, None where there is none; many times faster than one by one."""
    whole = column.combine_chunks()
    if hasattr(whole, "dictionary"):
        names = whole.dictionary.to_pylist()
        return [names[i] for i in whole.indices.to_numpy().tolist()]
    values = whole.to_numpy(zero_copy_only=False).tolist()
    return [None if value != value else value for value in values] if whole.null_count else values
