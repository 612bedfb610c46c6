"""Kills at any moment, full disks, folders that cannot be written, little memory: nothing half-written is left."""

import contextlib
import errno
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.fuzzing import LONG, attempt, command, judge

from ocrep import load_model
from ocrep._files import writing
from ocrep.cli.running import DATA, FINE, OUTPUT, run

GOOD = "y,c,x\n" + "".join(f"{i % 7 + 0.5},{'abc'[i % 3]},{i / 7:.3f}\n" for i in range(400))
KILLS = 70 if LONG else 10

# Each command runs in a child of a process that has the libraries loaded; limits are set in the child alone.
_SERVER = """
import gc, json, os, resource, signal, sys, time
import ocrep.cli.running
from ocrep.cli import main
with open(os.devnull, "w") as nothing:  # whatever is imported late is imported now
    sys.stdout, shown = nothing, sys.stdout
    ocrep.cli.running.run(["fit", "good.csv", "-t", "y", "-o", "warm.skops", "--n-hidden", "3"])
    ocrep.cli.running.run(["predict", "warm.skops", "good.csv"])
    sys.stdout = shown
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    read, write = os.pipe()  # limits of files do not hold for it
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if asked["memory"]:
            pages = int(open("/proc/self/statm").read().split()[0])
            most = pages * resource.getpagesize() + asked["memory"]
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if asked["file_size"]:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (asked["file_size"], asked["file_size"]))
        sys.argv = ["ocrep", *asked["arguments"]]
        try:
            main()
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(99)
    start, code = time.monotonic(), None
    while code is None:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
        elif asked["kill_after"] is not None and time.monotonic() - start > asked["kill_after"]:
            os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        else:
            time.sleep(0.001)
    os.close(write)
    with open(read) as told:
        print(json.dumps([code, told.read(), time.monotonic() - start]), flush=True)
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("faults"))
    Path("good.csv").write_text(GOOD)
    assert attempt("fit", "good.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "20")[0]
    yield
    os.chdir(before)


@pytest.fixture(scope="module")
def server(here):
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one_thread
    ) as process:

        def ask(*arguments, kill_after=None, memory=0, file_size=0):
            asked = {"arguments": arguments, "kill_after": kill_after, "memory": memory, "file_size": file_size}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


FIT = ["fit", "good.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "20"]
PREDICT = ["predict", "m.skops", "good.csv", "-o", "p.csv"]


def test_a_kill_leaves_the_old_file_or_the_new_one(server):
    code, err, _ = server(*FIT)
    assert (code, err) == (FINE, "")
    assert server(*PREDICT)[0] == FINE
    seconds = min(server(*asked)[2] for asked in (FIT, PREDICT))  # the first time libraries are imported
    n_lines = len(Path("p.csv").read_text().splitlines())
    r = random.Random(0)
    killed = 0
    for _ in range(KILLS):
        asked = r.choice([FIT, PREDICT])
        code, err, _ = server(*asked, kill_after=r.uniform(0.0, 1.2 * seconds))
        killed += code == -9
        assert code in (-9, FINE), (code, err)
        load_model("m.skops")
        assert len(Path("p.csv").read_text().splitlines()) == n_lines
        for part in Path.cwd().glob(".*.part"):  # what a killed process could not remove is told by its name
            part.unlink()
    assert killed


@pytest.mark.parametrize("size", [1, 1000, 20_000] if not LONG else [1, 10, 100, 1000, 4096, 5000, 10_000, 20_000])
@pytest.mark.parametrize("asked", [FIT, PREDICT], ids=["fit", "predict"])
def test_a_file_that_cannot_grow_is_refused_and_the_old_one_stays(server, asked, size):
    server(*FIT)
    server(*PREDICT)
    before = {path: Path(path).read_bytes() for path in ("m.skops", "p.csv")}
    code, err, _ = server(*asked, file_size=size)
    if judge(code, err, allowed=(FINE, OUTPUT)):
        assert Path(asked[-1] if asked is PREDICT else "m.skops").stat().st_size <= size
    else:
        assert {path: Path(path).read_bytes() for path in before} == before
    assert not list(Path.cwd().glob(".*.part"))


def test_little_memory_ends_in_one_sentence(server):
    """Address space is taken away until nothing works, in steps from enough to almost none."""
    enough = [2**k for k in range(28, 19, -1)] if LONG else [2**28, 2**24, 2**21]
    for memory in enough:
        before = Path("m.skops").read_bytes()
        code, err, _ = server(*FIT, memory=memory)
        if code != FINE:
            assert code == DATA, (memory, code, err)
            assert err.startswith("ocrep: not enough memory"), err
            assert Path("m.skops").read_bytes() == before
        assert not list(Path.cwd().glob(".*.part"))


@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("call", ["touch", "replace", "fsync"])
@pytest.mark.parametrize("asked", [FIT, PREDICT], ids=["fit", "predict"])
def test_every_step_of_writing_may_fail(here, asked, call, kind, monkeypatch):
    def fail(*_, **__):
        raise OSError(kind, os.strerror(kind))

    out = Path(asked[asked.index("-o") + 1])
    out.unlink(missing_ok=True)
    if asked is PREDICT:
        attempt(*FIT)
    with monkeypatch.context() as patch:
        patch.setattr(*{"fsync": (writing.os, "fsync", fail)}.get(call, (Path, call, fail)))
        code, _, err = command(*asked)
    assert not judge(code, err, allowed=(OUTPUT,))
    assert not out.exists()
    assert not list(Path.cwd().glob(".*.part"))


def test_standard_output_may_be_full(here):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    attempt(*FIT)
    err = io.StringIO()
    with contextlib.redirect_stdout(Full()), contextlib.redirect_stderr(err):
        code = run(["predict", "m.skops", "good.csv"])
    assert not judge(code, err.getvalue(), allowed=(OUTPUT,))
