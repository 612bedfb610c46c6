"""Calls timed in turn, so that whatever else the machine does falls on all of them alike."""

import platform
import statistics
import time
from collections.abc import Callable, Mapping

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import ocrep


def medians(
    calls: Mapping[str, Callable[[], object]], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each call over `rounds` rounds, each of which runs every call once; one warm-up round.

    On one thread, `clock=time.process_time` leaves out what other processes of a busy machine take.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            start = clock()
            call()
            if turn:
                times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def machine() -> str:
    """What the figures were measured with."""
    blas = sorted(
        {f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if "blas" in pool["prefix"]}
    )
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return (
        f"{platform.machine()}, {threads} BLAS threads, CPython {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, {', '.join(blas)}, ocrep {ocrep.__version__}"
    )


def row(what: str, ratio: float, goal: str) -> None:
    """One line of a Markdown table."""
    print(f"| {what} | {ratio:.3g} | {goal} |", flush=True)
