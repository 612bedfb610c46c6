"""The real program, run in processes of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

# Each case runs in a child of one process that has the libraries loaded: `main()` with its own arguments, streams and
# exit code, for a fiftieth of the price of a new interpreter.
_MANY = """
import contextlib, gc, io, json, os, sys, tempfile
import ocrep.cli.app, ocrep.cli.running, ocrep.onnx, ocrep.serialization.model_files, ocrep.report
import ocrep.tables.comparison, ocrep.tables.prediction
import pyarrow.csv, rich.table, typer
from ocrep.cli import main
with contextlib.redirect_stderr(io.StringIO()):
    ocrep.cli.running.run(["inspect", "nothing"])
ocrep.serialization.model_files.require_skops()
import ocrep.cli.printing
ocrep.cli.printing.SECONDS = 1e6  # a busy machine must not add lines of progress
gc.freeze()  # else each child's first collection copies all that the libraries have made
for line in sys.stdin:
    arguments = json.loads(line)
    streams = [tempfile.TemporaryFile() for _ in range(2)]
    child = os.fork()
    if child == 0:
        for number, stream in enumerate(streams, 1):
            os.dup2(stream.fileno(), number)
        sys.argv = ["ocrep", *arguments]
        try:
            main()
        except SystemExit as end:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code or 0)
        os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read().decode())
    print(json.dumps([code, *texts]), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


def ocrep(*arguments, **options):
    """Run the installed program in a fresh interpreter."""
    command = [sys.executable, "-c", "from ocrep.cli import main; main()", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", **options.pop("env", {})}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)
    return Outcome(done.returncode, done.stdout, done.stderr)


def ocrep_many(commands, **options):
    """Run many command lines, each in a process of its own."""
    lines = "".join(json.dumps([str(argument) for argument in command]) + "\n" for command in commands)
    done = subprocess.run(
        [sys.executable, "-c", _MANY], input=lines, capture_output=True, text=True, check=True, **options
    )
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]
