"""Running a command line: an expected error becomes one line on standard error and a documented exit code.

Importing this module needs neither typer nor rich, so that their absence can be explained.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import errno
import io
import json
import os
import re
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

# The exit codes; that of a closed pipe is the shell's own, and no user needs its meaning.
FINE = 0
INTERNAL = 1
USAGE = 2
DATA = 3
MODEL = 4
OUTPUT = 5
INTERRUPTED = 130
PIPE = 141
MEANING = {
    FINE: "success",
    INTERNAL: "an error in ocrep itself, or a library is not installed",
    USAGE: "wrong usage",
    DATA: "the data cannot be used",
    MODEL: "the model file cannot be used",
    OUTPUT: "the output cannot be written",
    INTERRUPTED: "interrupted",
}

# A full disk, a spent quota (unknown on Windows) or a broken device.
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EIO)
LONGEST_MESSAGE = 1000


def main() -> None:
    """Run the program with this process's arguments, and exit with its code."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.exit('ocrep: the command line needs more libraries: pip install "ocrep[cli]"')
    # SIGINT is an exception already; without this, SIGTERM would leave temporary files behind.
    signal.signal(signal.SIGTERM, _stop)
    _open_streams()
    _return_memory_at_once()
    sys.exit(run(sys.argv[1:]))


def _stop(number: int, frame: Any) -> None:
    # An exception, so that half-written files are removed.
    raise SystemExit(128 + number)


def _open_streams() -> None:
    """Write UTF-8 to files and pipes; on a terminal, replace characters that its encoding lacks."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - it stays open until the process ends
    if sys.stdout is None:
        sys.exit(_fail("Cannot write to standard output: it is closed.", OUTPUT))
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


def _return_memory_at_once() -> None:
    """Have arrays that are no longer needed go back to the system; the allocators would keep some hundred megabytes.

    Of its own accord, glibc takes arrays of up to 32 MB from heaps, one for each thread, and hardly shrinks these.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if sys.platform == "linux" and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        with contextlib.suppress(AttributeError):  # other C libraries do not have it
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


# As in malloc.h; larger arrays come from the system and go back to it.
_M_MMAP_THRESHOLD = -3
_LARGE = 2**20


def run(arguments: list[str]) -> int:
    """Run the program and return its exit code; `--debug`, before or after the command, shows tracebacks."""
    debug = "--debug" in arguments
    fail = partial(_fail, as_json="--json" in arguments)
    try:
        import typer

        from ocrep.cli.app import app

        with warnings.catch_warnings():
            if not debug:  # the libraries' warnings address programmers
                warnings.simplefilter("ignore")
            command: Any = typer.main.get_command(app)
            # In standalone mode, typer would print errors in its own format and exit.
            given = [argument for argument in arguments if argument != "--debug"]
            code = command.main(args=given, prog_name="ocrep", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        return code if isinstance(code, int) else FINE
    except SystemExit as end:
        # typer exits with 1 only if standard output is closed by its reader, as in `| head`.
        return PIPE if end.code == 1 else int(end.code or 0)
    except KeyboardInterrupt:
        return fail("interrupted.", INTERRUPTED)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _explain(error, fail)


def _explain(error: Exception, fail: Callable[[str, int], int]) -> int:
    """Print one line about the error, and return its exit code."""
    # Older versions of typer raise click's errors, newer ones their own: both have this method.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        return fail(format_message() or "a command is missing: ocrep --help lists them.", USAGE)
    if type(error).__name__ == "Abort":
        return fail("interrupted.", INTERRUPTED)
    if isinstance(error, ImportError):
        hint = f'{error.name} is not installed: pip install "ocrep[cli]"' if error.name else str(error)
        return fail(hint, INTERNAL)
    if isinstance(error, MemoryError):
        return fail("not enough memory: use fewer hidden units (--n-hidden) or fewer rows.", DATA)
    if isinstance(error, OSError) and error.errno in _FULL:
        # An error on a file is an OutputError, so this one is on standard output. The rest of the buffer goes to the
        # null device; otherwise Python would fail again when it exits.
        with contextlib.suppress(OSError, ValueError):  # a stream without a file descriptor, as in a test
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(f"Cannot write to standard output: {error.strerror}.", OUTPUT)
    from ocrep._files.formats import DataError
    from ocrep._files.writing import OutputError
    from ocrep.onnx import OnnxExportError
    from ocrep.serialization import ModelFileError
    from ocrep.tables.training import UsageError

    known: dict[type[Exception], int] = {
        UsageError: USAGE,
        DataError: DATA,
        OutputError: OUTPUT,
        ModelFileError: MODEL,
        OnnxExportError: MODEL,
    }
    for kind, code in known.items():
        if isinstance(error, kind):
            return fail(in_options(str(error)), code)
    return fail(f"internal error, {type(error).__name__}: {error} (--debug shows where)", INTERNAL)


# Parameters of the library that are options of the program; the values of others are left as they are.
_PARAMETER = re.compile(
    r"\b(ignore|keep|dates|drop_missing_target|candidates|class_weight|n_hidden|max_hidden|gamma|activation|weight_init"
    r"|weight_scale|direct_link)=(?:\[(…)\]|\[(?='|\")(.*?)(?<=['\"])\]|(True)|'([\w-]+)'|([\d.e+-]*\d))"
)
_WORDS = {
    r"\b([Uu])se TableRegressor\b": r"\1se --task regression",
    r"\b([Uu])se TableClassifier\b": r"\1se --task classification",
    r"\bX has 1 sample\b": "The table has 1 row",
    r"\bX has (?=no |two |\d)": "The table has ",
    r"\bof X are\b": "of the table are",
}


def in_options(message: str) -> str:
    """The library's sentence with options of the program in place of Python's parameters."""
    for pattern, words in _WORDS.items():
        message = re.sub(pattern, words, message)
    return _PARAMETER.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    name, any_name, names, _, word, number = found.groups()
    option = f"--{name.replace('_', '-')}"
    if any_name:
        return f"{option} COLUMN"
    if names:
        return " ".join(f"{option} {shlex.quote(one)}" for one in _texts(names))
    return " ".join(filter(None, (option, word, number)))


def _texts(names: str) -> list[str]:
    """The texts of a list as Python writes it."""
    try:
        return list(ast.literal_eval(f"[{names}]"))
    except (SyntaxError, ValueError):  # a name that itself looks like the end of a list
        return [names]


def _fail(message: str, code: int, *, as_json: bool = False) -> int:
    """Print one line on standard error, with `as_json` also an object on standard output, and return the exit code."""
    from ocrep._files.formats import visible

    line = " ".join(message.split())
    if len(line) > LONGEST_MESSAGE:  # names and values of any length may be given
        line = f"{line[: LONGEST_MESSAGE // 2]} … {line[-LONGEST_MESSAGE // 2 :]}"
    print(f"ocrep: {visible(line)}", file=sys.stderr)
    if as_json:
        error = {"message": line, "exit_code": code, "meaning": MEANING[code]}
        print(visible(json.dumps({"error": error}, ensure_ascii=False)), flush=True)
    return code
