"""Run a command line: every expected error becomes one line on standard error and a documented exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
import warnings
from typing import Any

from ocrep.cli import exit_codes


def run(arguments: list[str]) -> int:
    """Run the program and give its exit code; `--debug` anywhere shows tracebacks."""
    debug = "--debug" in arguments
    try:
        with warnings.catch_warnings():
            if not debug:  # what the libraries warn of is for programmers
                warnings.simplefilter("ignore")
            code = _dispatch([argument for argument in arguments if argument != "--debug"])
        sys.stdout.flush()
        return code
    except SystemExit as end:
        # typer leaves in this way only when no one reads standard output any more (`| head`).
        return exit_codes.PIPE if end.code == 1 else int(end.code or 0)
    except KeyboardInterrupt:
        return _say("interrupted.", exit_codes.INTERRUPTED)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _explain(error)


def _dispatch(arguments: list[str]) -> int:
    import typer

    from ocrep.cli.app import app

    command: Any = typer.main.get_command(app)
    # Not standalone, typer neither prints errors in its own way nor exits.
    code = command.main(args=arguments, prog_name="ocrep", standalone_mode=False)
    if code == exit_codes.INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else exit_codes.FINE


def _explain(error: Exception) -> int:
    """One line on what went wrong, and the exit code for it."""
    # Older versions of typer raise click's errors, newer ones their own: both carry this method.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        return _say(format_message() or "a command is missing: ocrep --help lists them.", exit_codes.USAGE)
    if type(error).__name__ == "Abort":
        return _say("interrupted.", exit_codes.INTERRUPTED)
    if isinstance(error, ImportError):
        hint = f'{error.name} is not installed: pip install "ocrep[cli]"' if error.name else str(error)
        return _say(hint, exit_codes.INTERNAL)
    if isinstance(error, MemoryError):
        return _say("not enough memory: use fewer hidden units (--n-hidden) or fewer rows.", exit_codes.DATA)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        # Commands say which file they could not write: this is what they print.
        _let_go_of_standard_output()
        return _say(f"Cannot write to standard output: {error.strerror}.", exit_codes.OUTPUT)
    from ocrep._files.formats import DataError
    from ocrep._files.writing import OutputError
    from ocrep.onnx import OnnxExportError
    from ocrep.serialization import ModelFileError
    from ocrep.tables import UsageError

    known: dict[type[Exception], int] = {
        UsageError: exit_codes.USAGE,
        DataError: exit_codes.DATA,
        ModelFileError: exit_codes.MODEL,
        OnnxExportError: exit_codes.MODEL,
        OutputError: exit_codes.OUTPUT,
    }
    for kind, code in known.items():
        if isinstance(error, kind):
            return _say(str(error), code)
    return _say(f"internal error, {type(error).__name__}: {error} (--debug shows where)", exit_codes.INTERNAL)


def _let_go_of_standard_output() -> None:
    """What is still in its buffer goes nowhere; else Python would fail over it once more on its way out."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a file, as in a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str, code: int) -> int:
    print(f"ocrep: {' '.join(message.split())}", file=sys.stderr)
    return code
