"""Where results lie: lines of JSON in a folder while a study runs, one Parquet file when it is published."""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import ocrep
from ocrep._files.writing import replacing
from ocrep.study.protocol import REVISION, Protocol
from ocrep.study.results import Results, Row
from ocrep.study.yardsticks import Study

LINES, ABOUT, LOCK = "results.jsonl", "about.json", "run.lock"
LEAST_FREE_BYTES = 50_000_000
# A file of lines is closed and compressed at this size, so that every file of a study stays small.
PART_BYTES = 14_000_000


class Lines:
    """The file that a run appends to; when it is long enough, and at the end, it becomes a numbered part."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = (folder / LINES).open("a", encoding="utf-8")

    def write(self, key: str, seconds: float, rows: Iterable[Row]) -> None:
        """Append the results of a job."""
        line = {"key": key, "seconds": round(seconds, 3), "rows": [row.packed() for row in rows]}
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()
        if self._file.tell() > PART_BYTES:
            self.close()
            self._file = (self._folder / LINES).open("a", encoding="utf-8")

    def close(self) -> None:
        """Compress what was written."""
        self._file.close()
        path = self._folder / LINES
        if path.stat().st_size:
            number = len(list(self._folder.glob("results-*.jsonl.gz")))
            with replacing(self._folder / f"results-{number:03}.jsonl.gz") as temporary:
                temporary.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def read_lines(folder: Path) -> dict[str, Any]:
    """Return the results of a folder by key; a last line that an interruption cut off is removed."""
    texts = [gzip.decompress(path.read_bytes()).decode() for path in sorted(folder.glob("results-*.jsonl.gz"))]
    path = folder / LINES
    if path.exists():
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        texts.append(whole)
    known: dict[str, Any] = {}
    for line in (json.loads(line) for text in texts for line in text.splitlines()):
        if known.setdefault(line["key"], line)["rows"] != line["rows"]:
            raise ValueError(f"{folder} holds two different results of {line['key']}: start again in an empty folder.")
    return known


def collected(lines: dict[str, Any]) -> Results:
    """Return all rows of lines by case."""
    results = Results()
    for key in sorted(lines):
        results.add(key, (Row(*row) for row in lines[key]["rows"]))
    return results


def about(folder: str | Path) -> dict[str, Any]:
    """Return the description of a folder's results: protocol, versions, machine, missing data sets.

    Parameters
    ----------
    folder : path
        Where `run` stored results.

    Returns
    -------
    dict
        The description.

    See Also
    --------
    run : Makes the results.
    report : Judges them.

    Examples
    --------
    >>> from ocrep import study
    >>> _ = study.run("quick", "results", seconds=0, progress=False)
    >>> study.about("results")["protocol"]["name"]
    'quick'
    """
    path = Path(folder) / ABOUT
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no study: run one with ocrep.study.run(...) first.")
    return json.loads(path.read_text(encoding="utf-8"))


def describe(folder: Path, protocol: Protocol, missing: dict[str, str]) -> None:
    """Write the description of the results; raise if the folder holds those of another protocol or version."""
    now = {
        "protocol": json.loads(json.dumps(protocol.as_dict())),
        "versions": {library.__name__: library.__version__ for library in (ocrep, np, scipy, sklearn)},
        "machine": f"{platform.machine()}, {platform.system()}, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} cores",
        "missing": missing,
    }
    path = folder / ABOUT
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        differences = [
            f"{part}.{name} is {now[part].get(name)!r} now and was {before[part].get(name)!r} then"
            for part in ("protocol", "versions")
            for name in sorted({*now[part], *before[part]})
            if now[part].get(name) != before[part].get(name)
        ]
        if differences:
            raise ValueError(f"{folder} holds another study ({'; '.join(differences)}): use another folder.")
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make the folder, and exclude a second run by a lock that ends with the process, even if it is killed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("w")
    except OSError as reason:
        raise OSError(f"Cannot write to {folder} ({reason}): choose another folder for the study.") from reason
    with lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"Another run is writing to {folder}: wait for it, or choose another folder.") from None
        except ImportError:  # pragma: no cover - fcntl exists on POSIX only
            pass
        if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
            least = f"{LEAST_FREE_BYTES // 10**6} MB"
            raise OSError(f"Less than {least} are free in {folder}: free some space, or choose another folder.")
        yield


def load_study(source: str | Path) -> Study:
    """Read the results of a folder or of a published file.

    Parameters
    ----------
    source : path
        A folder in which `run` stored results, or a file that `publish` wrote; another revision raises a ValueError.

    Returns
    -------
    Study
        Results and description.

    See Also
    --------
    run : Makes the results.
    report : Judges them.

    Examples
    --------
    >>> from ocrep import study
    >>> _ = study.run("quick", "results", seconds=0, progress=False)
    >>> study.load_study("results").about["protocol"]["name"]
    'quick'
    """
    source = Path(source)
    if source.suffix == ".parquet":
        from ocrep.study.published_results import read_parquet

        known, results = read_parquet(source)
    else:
        known, results = about(source), collected(read_lines(source))
    found = known["protocol"].get("revision")
    if found != REVISION:
        raise ValueError(
            f"{source} holds results of revision {found} of the experiments, and this is revision {REVISION}: run the "
            "study again, or use the version of ocrep that made them."
        )
    return Study(results, known)


def publish(folder: str | Path, path: str | Path) -> Path:
    """Write the results of a folder as one compressed Parquet file.

    Parameters
    ----------
    folder : path
        Where `run` stored results.
    path : path
        The file to write.

    Returns
    -------
    Path
        The file.

    See Also
    --------
    run : Makes the results.
    report : Judges them.

    Examples
    --------
    >>> from ocrep import study
    >>> _ = study.run("quick", "results", seconds=0, progress=False)
    >>> study.publish("results", "results.parquet").name
    'results.parquet'
    """
    from ocrep.study.published_results import write_parquet

    folder, path = Path(folder), Path(path)
    known = {name: value for name, value in about(folder).items() if name != "machine"}
    write_parquet(path, known, collected(read_lines(folder)))
    return path
