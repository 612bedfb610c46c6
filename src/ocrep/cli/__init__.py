"""The program `ocrep`: its entry point, which checks for typer and rich before anything imports them."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

from ocrep.cli import exit_codes


def main() -> None:
    """Run the program with this process's arguments, and exit with its code."""
    try:
        import rich
        import typer
    except ImportError:
        sys.exit('ocrep: the command line needs more libraries: pip install "ocrep[cli]"')
    del rich, typer
    from ocrep.cli.running import run

    signal.signal(signal.SIGTERM, _stop)
    _open_streams()
    sys.exit(run(sys.argv[1:]))


def _open_streams() -> None:
    """Write UTF-8 to files and pipes; on a terminal, replace characters that its encoding lacks."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - it stays open until the process ends
    if sys.stdout is None:
        print("ocrep: Cannot write to standard output: it is closed.", file=sys.stderr)
        sys.exit(exit_codes.OUTPUT)
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


def _stop(number: int, frame: Any) -> None:
    # An exception, so that half-written files are removed.
    raise SystemExit(128 + number)
