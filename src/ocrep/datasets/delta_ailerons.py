"""Delta Ailerons, the data set that is not bundled: find the user's copy or download one, and check it."""

from __future__ import annotations

import hashlib
import os
from itertools import dropwhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FEATURE_NAMES = ("RollRate", "PitchRate", "currPitch", "currRoll", "diffRollRate")
CSV, ARFF = "delta_ailerons.csv", "delta.ailerons.arff"
COMMIT = "c59f172882592bb58982cc54d2d3c8a2b57e9b73"
FOLDER_URL = f"https://raw.githubusercontent.com/renatopp/arff-datasets/{COMMIT}/regression/"
# Of the numbers as float64, not of a file: it does not depend on line endings or number formats, and one checksum
# serves CSV and ARFF. It depends on the order of the rows, as splits of the data do.
SHA256 = "c3c44e36626834999bbaa34e550a0aa41c2d9ee88b4e2f3cb7aac3c280fc547a"


def fetch() -> NDArray[np.float64]:
    """Return the 7129 × 6 numbers (5 inputs, then the target) from the user's folder or from a download.

    If `OCREP_DATA` is set, only that folder is searched: a wrong path there raises an error and does not start a
    download.
    """
    if os.environ.get("OCREP_DATA"):
        folder = Path(os.environ["OCREP_DATA"]).expanduser()
        for path in (folder / CSV, folder / ARFF):
            if path.is_file():
                return read(path, f"Replace it with {CSV}, or with {ARFF} from {FOLDER_URL}{ARFF}")
        raise FileNotFoundError(
            f"OCREP_DATA names the folder {folder}, which holds neither {CSV} nor {ARFF}. Put one of them there, "
            "or unset OCREP_DATA to have Delta Ailerons downloaded."
        )
    path = _download()
    try:
        return read(path, "The file was deleted: the next call downloads it again")
    except ValueError:
        path.unlink(missing_ok=True)
        raise


def read(path: Path, remedy: str) -> NDArray[np.float64]:
    """Read a CSV or ARFF file and check its numbers; if they are wrong, `remedy` is part of the error message."""
    try:
        text = path.read_text(encoding="utf-8")
        values = parse_arff(text) if path.suffix == ".arff" else parse_csv(text)
        if checksum(values) != SHA256:
            raise ValueError(f"the checksum of its numbers is not the known one (shape read: {values.shape})")
    except ValueError as exc:
        raise ValueError(f"{path} is not the Delta Ailerons data: {exc}. {remedy}.") from exc
    return values


def parse_csv(text: str) -> NDArray[np.float64]:
    """Return the numbers below the header row, separated by commas or spaces."""
    rows = [line.replace(",", " ").split() for line in text.splitlines()[1:] if line.strip()]
    # + 0.0 turns -0.0 into 0.0: files may contain either, and their checksums differ.
    return np.array(rows, dtype=np.float64) + 0.0


def parse_arff(text: str) -> NDArray[np.float64]:
    """Return the numbers below the line `@data`; lines that begin with % are comments."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("%"))
    table = "\n".join(dropwhile(lambda line: line.strip().lower() != "@data", lines))
    if not table:
        raise ValueError("it has no @data line")
    return parse_csv(table)


def checksum(values: NDArray[np.float64]) -> str:
    """Return the SHA-256 of the numbers as little-endian float64, row by row."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()


def _download() -> Path:
    remedy = f'Set OCREP_DATA to a folder with {CSV}, or be online on first use, with pooch: pip install "ocrep[data]".'
    try:
        import pooch
    except ImportError as exc:
        raise FileNotFoundError(f"Delta Ailerons is not bundled, and pooch is not installed. {remedy}") from exc
    try:
        store = pooch.create(path=pooch.os_cache("ocrep"), base_url=FOLDER_URL, registry={ARFF: None})
        return Path(store.fetch(ARFF))
    except OSError as exc:  # also the base class of all errors of requests
        raise FileNotFoundError(f"Delta Ailerons is not bundled, and its download failed ({exc}). {remedy}") from exc
