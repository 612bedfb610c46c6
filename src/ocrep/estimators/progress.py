"""`Progress`: how far a search has come, on a terminal or on request."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from time import perf_counter
from typing import Any, Self

from ocrep._training.trial import Trial

# A shorter search is over before a line could be read.
_PATIENCE = 1.0


class Progress:
    """Writes to stderr: a line for each candidate if `verbose`, else on terminals one line that is overwritten."""

    def __init__(self, candidates: Sequence[dict[str, Any]], *, verbose: bool) -> None:
        self._candidates, self._verbose, self._lock = candidates, verbose, Lock()
        self._start, self._done, self._shown = perf_counter(), 0, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def report(self, number: int, trial: Trial) -> None:
        """One more candidate was tried."""
        with self._lock:
            self._done += 1
            count = f"candidate {self._done} of {len(self._candidates)}"
            told = f"failed: {trial.failure}" if trial.failure else f"held-out error {trial.loss:.6g}"
            if self._verbose:
                print(f"{count}, {self._candidates[number]}: {told}, {trial.seconds:.2f} s", file=sys.stderr)
            elif sys.stderr.isatty() and perf_counter() - self._start > _PATIENCE:
                print(f"\r\x1b[K{count}: {told}", end="", file=sys.stderr, flush=True)
                self._shown = True
