"""What a fuzzed command may end in: it worked, or it was refused in one sentence with a documented exit code."""

import contextlib
import io
import os
import signal
from pathlib import Path

from hypothesis import HealthCheck, settings

from ocrep.cli.exit_codes import DATA, FINE, MODEL, OUTPUT, USAGE
from ocrep.cli.running import run

# `make fuzz` asks for thousands of cases, other runs try some hundred that are always the same.
LONG = os.environ.get("OCREP_FUZZ") == "long"
SECONDS = 20


class Hang(BaseException):
    """A command took too long."""


def cases(few, many):
    """Settings for a test of `few` cases, or of `many` in `make fuzz`."""
    return settings(
        max_examples=many if LONG else few,
        derandomize=not LONG,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def hang(number, frame):
    raise Hang


def command(*arguments):
    """Run a command in this process; return its exit code, output and errors, or raise if it takes too long."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # its own time, whatever else runs on the machine
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([str(argument) for argument in arguments])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return code, out.getvalue(), err.getvalue()


def judge(code, err, *, allowed=(FINE, USAGE, DATA, MODEL, OUTPUT)):
    """Whether it worked; raise if it ended in any other way than success or one sentence."""
    assert code in allowed, (code, err)
    assert "Traceback" not in err, err
    assert "internal error" not in err, err
    if code == FINE:
        return True
    assert err.startswith("ocrep: "), err
    assert err.count("\n") == 1, err
    assert len(err) < 1100, err
    return False


def attempt(*arguments, out=None):
    """Run and judge; an output is there if it worked, and nothing half-written ever."""
    existed = out is not None and Path(out).exists()
    code, told, err = command(*arguments)
    worked = judge(code, err)
    if out is not None and not existed:
        assert Path(out).exists() == worked, (arguments, err)
    assert not list(Path.cwd().glob(".*.part")), list(Path.cwd().iterdir())
    return worked, told
