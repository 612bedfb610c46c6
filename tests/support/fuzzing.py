"""What a fuzzed command may end in: it worked, or it was refused in one sentence with a documented exit code."""

import contextlib
import io
import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocrep.cli.running import DATA, FINE, MODEL, OUTPUT, USAGE, run

# `make fuzz` asks for thousands of cases, other runs try some hundred that are always the same.
LONG = os.environ.get("OCREP_FUZZ") == "long"
SECONDS = 20


class Hang(BaseException):
    """A command took too long."""


def cases(few, many, *strategies):
    """Try a test on `few` cases that are always the same, in `make fuzz` on `many` new ones; tell all bad outcomes."""
    how = settings(
        max_examples=many if LONG else few,
        derandomize=not LONG,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    def decorate(test):
        def all_cases():
            n_cases, bad = 0, []

            @how
            @given(st.tuples(*strategies))
            def one_case(drawn):
                nonlocal n_cases
                n_cases += 1
                try:
                    test(*drawn)
                except (Exception, Hang) as error:
                    bad.append(_kept(test.__name__, len(bad), drawn, error))

            one_case()
            if bad:
                pytest.fail("\n".join([f"{len(bad)} of {n_cases} cases ended badly:", *bad]), pytrace=False)

        all_cases.__name__ = test.__name__
        return all_cases

    return decorate


def _kept(name, number, drawn, error):
    """A bad outcome in words. The folder is kept: a number alone does not give a file again that holds Python's ids."""
    folder = Path.cwd().with_name(f"bad-{name}-{number}")
    shutil.copytree(Path.cwd(), folder)
    for part in Path.cwd().glob(".*.part"):  # or the next case would be blamed
        part.unlink()
    said = [f"{name}{drawn}: {type(error).__name__} {error}", *getattr(error, "__notes__", [])]
    return "\n".join([*said, f"  in {folder}"])


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
    try:
        code, told, err = command(*arguments)
        worked = judge(code, err)
        if out is not None and not existed:
            assert Path(out).exists() == worked, err
        assert not list(Path.cwd().glob(".*.part")), list(Path.cwd().iterdir())
    except (AssertionError, Hang) as bad:
        bad.add_note(f"  ocrep {' '.join(map(str, arguments))}")
        raise
    return worked, told
