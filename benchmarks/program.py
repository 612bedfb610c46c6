"""`ocrep fit` on a file of numbers, categories and days, and `fit(ocrep.scan(...))` on what it codes: speed and memory.

Run `python benchmarks/program.py`; it writes about 2 GB to a temporary folder and removes them again. The library reads
a file of the columns that the program makes of the first one: numbers, 0/1 columns of categories, parts of dates. Every
fit is a process of its own, start and imports included, both kinds by turns. Medians are compared: of seconds, and of
processor seconds, which other work on the machine disturbs less. `benchmarks/RESULTS.md` keeps the last recorded run.
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_NUMBERS, CATEGORIES, PIECE = 15, (3, 5, 8, 12), 250_000
NUMBERS = [f"x{j}" for j in range(N_NUMBERS)]
CODED = "coded.parquet"


def piece(number: int, n_rows: int) -> dict[str, object]:
    """Columns of some rows: 15 numbers, one more with gaps, four of categories with gaps, days, and the target."""
    import pyarrow

    rng = np.random.default_rng(number)
    X = rng.uniform(-1, 1, (N_NUMBERS, n_rows))
    y = np.sin(2 * X[0]) + X[1] * X[2] + 0.5 * X[3] ** 2 + 0.1 * rng.standard_normal(n_rows)
    gaps = pyarrow.array(rng.uniform(-1, 1, n_rows), mask=rng.random(n_rows) < 0.05)
    columns: dict[str, object] = {**dict(zip(NUMBERS, X, strict=True)), "gaps": gaps}
    for k, size in enumerate(CATEGORIES):
        codes = rng.integers(0, size, n_rows)
        words = np.array([f"category {i}" for i in range(size)])
        columns[f"c{k}"] = pyarrow.array(words[codes], mask=rng.random(n_rows) < 0.02)
        y += 0.1 * (codes % 3)
    days = np.datetime64("2020-01-01") + rng.integers(0, 2000, n_rows)
    return {**columns, "day": pyarrow.array(days), "y": y}


def write_rows(path: Path, n_rows: int) -> int:
    """Write the rows, and beside them the coded ones; the number of coded columns."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    from ocrep.tables import TableCoder

    writer = coded_writer = coder = None
    for number, start in enumerate(range(0, n_rows, PIECE)):
        table = pyarrow.table(piece(number, min(PIECE, n_rows - start)))
        inputs = table.drop_columns("y")
        coder = coder or TableCoder().fit(inputs, table["y"].to_numpy())
        columns = dict(zip(coder.get_feature_names_out(), coder.transform(inputs).T, strict=True))
        coded = pyarrow.table({**columns, "y": table["y"]})
        if writer is None:
            kind = pyarrow.csv.CSVWriter if path.suffix == ".csv" else pyarrow.parquet.ParquetWriter
            writer = kind(path, table.schema)
            coded_writer = pyarrow.parquet.ParquetWriter(path.with_name(CODED), coded.schema)
        writer.write_table(table)
        coded_writer.write_table(coded)
    writer.close()
    coded_writer.close()
    return len(columns)


def fit(what: str, path: str, n_hidden: int) -> None:
    """Fit, and print the peak memory of this process."""
    if what == "program":
        from ocrep.cli import main as program

        sys.argv = ["ocrep", "fit", path, "--target", "y", "--out", f"{path}.skops", "--json"]
        if n_hidden:
            sys.argv += ["--test", "0", "--n-hidden", str(n_hidden), "--gamma", "ocrep"]
        try:
            program()
        except SystemExit as end:
            if end.code:
                raise
    else:
        from ocrep import PinvRegressor, scan

        PinvRegressor(n_hidden, gamma="ocrep", random_state=0).fit(scan(Path(path).with_name(CODED), target="y"))
    status = Path("/proc/self/status").read_text()
    print(json.dumps([time.process_time(), int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024]))


def measured(what: str, path: Path, n_hidden: int) -> tuple[float, float, float]:
    """Seconds, processor seconds and megabytes of a fit in a process of its own."""
    start = time.perf_counter()
    command = [sys.executable, __file__, "--job", json.dumps([what, str(path), n_hidden])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    processor, megabytes = json.loads(done.stdout.splitlines()[-1])
    return time.perf_counter() - start, processor, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--hidden", type=int, default=300, help="units; 0 runs the program alone, at its defaults")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv", action="store_true", help="a CSV file instead of Parquet")
    parser.add_argument("--job")
    options = parser.parse_args()
    if options.job:
        fit(*json.loads(options.job))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{'csv' if options.csv else 'parquet'}"
        n_coded = write_rows(path, options.rows)
        size = path.stat().st_size / 1e9
        what = f"{options.rows:,} rows × 21, coded as {n_coded} columns"
        print(f"{platform.machine()}, {what}, {path.suffix}, {size:.2f} GB, M = {options.hidden}")
        runs: dict[str, list[tuple[float, float, float]]] = {"library": [], "program": []}
        if not options.hidden:
            del runs["library"]
        for _ in range(options.repeats):
            for what, found in runs.items():
                found.append(measured(what, path, options.hidden))
                seconds, processor, megabytes = found[-1]
                told = f"{seconds:.1f} s, {processor:.1f} s of processors, {megabytes:.0f} MB"
                print(f"{what}: {options.rows / seconds:,.0f} rows/s, {told}", flush=True)
        for place, name in enumerate(("seconds", "processor seconds") if options.hidden else ()):
            library, program = (statistics.median(run[place] for run in runs[what]) for what in runs)
            print(f"rows per second of the program over the library's, by {name}: {library / program:.2f}")
        print(f"peak memory of the program: {max(run[2] for run in runs['program']):.0f} MB")


if __name__ == "__main__":
    main()
