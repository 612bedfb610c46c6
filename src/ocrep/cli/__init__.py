"""The program `ocrep`: its entry point, which needs nothing but Python until it knows that the rest is there."""

from __future__ import annotations

import signal
import sys
from typing import Any


def main() -> None:
    """Run the program with the arguments of this process, and exit with its code."""
    try:
        import rich
        import typer
    except ImportError:
        sys.exit('ocrep: the command line needs more libraries: pip install "ocrep[cli]"')
    del rich, typer
    from ocrep.cli.running import run

    signal.signal(signal.SIGTERM, _stop)
    sys.exit(run(sys.argv[1:]))


def _stop(number: int, frame: Any) -> None:
    # An exception, so that what was half-written is taken away.
    raise SystemExit(128 + number)
