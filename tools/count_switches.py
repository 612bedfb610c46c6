"""Count how often one fit in memory changes from one file of ocrep to another: `python tools/count_switches.py`.

The fit is that of the paper's network with 50 units, constructor included, on one thread,
after a first fit that makes the lazy imports.

A function counts once, when it is first entered. It is a switch if the nearest function of ocrep that called it,
through other libraries or not, lies in another file. Lambdas, comprehensions and generators are functions too; the code
of a module is not. Repeated calls are counted apart, as `call_switches`, because they grow with the number of blocks.

Before the code was put into rooms, 50,000 × 10 inputs gave 118 functions, 25 files and 68 switches; 500 × 5, which fit
into one block, gave 109, 25 and 63.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

PAPER = {"direct_link": False, "fit_intercept": False}
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Switches:
    """What one fit entered; `pairs` counts the switches by (file of the caller, file of the function)."""

    functions: int
    files: int
    switches: int
    call_switches: int
    pairs: Counter[tuple[str, str]]


class Recorder:
    """Keeps (file, function, file of the nearest caller) for every call of a function under a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = f"{folder}{os.sep}"
        self.calls: list[tuple[str, str, str | None]] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; this is what `sys.setprofile` takes."""
        if event == "call" and self._is_ours(frame):
            caller = frame.f_back
            while caller is not None and not self._is_ours(caller):
                caller = caller.f_back
            self.calls.append((self._file(frame), frame.f_code.co_qualname, caller and self._file(caller)))

    def _is_ours(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(self.folder) and frame.f_code.co_name != "<module>"

    def _file(self, frame: FrameType) -> str:
        return Path(frame.f_code.co_filename).relative_to(self.folder).as_posix()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Note the calls of a block, on this thread and on those it starts."""
        before, before_threads = sys.getprofile(), threading.getprofile()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before_threads)

    def result(self) -> Switches:
        """The counts of what was recorded so far."""
        first: dict[tuple[str, str], str | None] = {}
        for file, function, caller in self.calls:
            first.setdefault((file, function), caller)
        pairs = Counter((caller, file) for (file, _), caller in first.items() if caller not in (None, file))
        repeated = sum(caller not in (None, file) for file, _, caller in self.calls)
        return Switches(len(first), len({file for file, _ in first}), pairs.total(), repeated, pairs)


def count(n_rows: int = 500, n_features: int = 5) -> Switches:
    """Trace one fit on rows of a fixed seed."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    import ocrep

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n_rows)
    recorder = Recorder(Path(ocrep.__file__).parent)
    estimator = ocrep.PinvRegressor
    with patch.dict(os.environ, ONE_THREAD), threadpool_limits(1):
        estimator(n_hidden=50, gamma="ocrep", random_state=0, **PAPER).fit(X, y)
        with recorder.recording():
            estimator(n_hidden=50, gamma="ocrep", random_state=0, **PAPER).fit(X, y)
    return recorder.result()


def main() -> None:
    """Print the counts for rows in one block and in many."""
    for n_rows, n_features in ((500, 5), (50_000, 10)):
        found = count(n_rows, n_features)
        print(
            f"{n_rows} × {n_features}: {found.functions} functions, {found.files} files, {found.switches} switches "
            f"({found.call_switches} with repeated calls)"
        )
        for (caller, file), times in found.pairs.most_common():
            print(f"  {times:3}  {caller} > {file}")


if __name__ == "__main__":
    main()
