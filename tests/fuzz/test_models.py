"""Model files that were damaged or forged: refused in one sentence, soon, or the model is still whole."""

import io
import json
import math
import os
import random
import signal
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from support.fuzzing import SECONDS, attempt, cases, hang

from ocrep import load_model
from ocrep.serialization import ModelFileError
from ocrep.serialization.archive import RECORD, digest_of

N = 40
GOOD = "y,c,x,d\n" + "".join(
    f"{i % 7 + 0.5},{'abc'[i % 3]},{i / 7:.3f},20{10 + i % 9}-01-0{1 + i % 9}\n" for i in range(N)
)
FITS = {
    "numbers": ["-t", "y", "--n-hidden", "5"],
    "labels": ["-t", "c", "--n-hidden", "5"],
    "kfold": ["-t", "y", "--n-hidden", "4", "--gamma", "kfold", "--weight-init", "pairs"],
    "wide": ["-t", "y", "--n-hidden", "60", "--activation", "gaussian"],
    "candidates": ["-t", "y", "--candidates", "quick"],
    "without dates": ["-t", "c", "--n-hidden", "5", "--dates", "drop"],
}
EXPORTED = ("without dates",)
VALUES = [
    None,
    True,
    0,
    -1,
    1,
    10**30,
    1e308,
    math.nan,
    "",
    "x",
    "builtins",
    "os",
    "system",
    [],
    {},
    [1, 2],
    "int64",
    "<f8",
    "O",
]


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("models"))
    Path("good.csv").write_text(GOOD)
    for name, options in FITS.items():
        assert attempt("fit", "good.csv", "-o", f"{name}.skops", *options)[0]
        assert attempt("predict", f"{name}.skops", "good.csv", "-o", f"{name}.csv")[0]
    assert all(attempt("export", f"{name}.skops", "m.onnx")[0] for name in EXPORTED)
    yield
    os.chdir(before)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(parts, *, digest):
    """The file with sums of the archive that fit, and perhaps a digest that fits."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, data in parts.items():
            if name != RECORD:
                archive.writestr(name, data)
    if RECORD in parts:
        with zipfile.ZipFile(memory, "a") as archive:
            record = parts[RECORD]
            if digest:
                record = json.dumps({**json.loads(record), "digest": digest_of(archive)})
            archive.writestr(RECORD, record)
    return memory.getvalue()


def places(part):
    """All containers of a tree with their keys."""
    if isinstance(part, dict | list):
        for key in list(part) if isinstance(part, dict) else range(len(part)):
            yield part, key
            yield from places(part[key])


def with_one_object_for_each_number(tree):
    """The tree with repeated nodes as one object, so that a change is made wherever the node is repeated."""
    found = {}
    for holder, key in list(places(tree)):
        node = holder[key]
        if isinstance(node, dict) and "__id__" in node:
            holder[key] = found.setdefault(node["__id__"], node)
    return tree


def change_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.choice([1, 1, 3])):
        place = r.randrange(len(data))
        if r.random() < 0.7:
            data[place] ^= 1 << r.randrange(8)
        elif r.random() < 0.5:
            del data[place : place + r.randrange(1, 100)]
        else:
            del data[place:]
            break
    return bytes(data)


def change_tree(r, data):
    parts = members(io.BytesIO(data))
    tree = with_one_object_for_each_number(json.loads(parts["model.json"]))
    for _ in range(r.choice([1, 1, 2])):
        found = list(places(tree))
        if not found:
            break
        (holder, key), (other, second) = r.choice(found), r.choice(found)
        action = r.randrange(5)
        if action == 0:
            del holder[key]
        elif action == 1:
            holder[key] = json.loads(json.dumps(other[second])) if second in other or isinstance(other, list) else None
        elif action == 2 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * r.choice([-1, 0, 2, 1000]) + r.choice([0, 1])
        else:
            holder[key] = r.choice(VALUES)
    return rewritten({**parts, "model.json": json.dumps(tree).encode()}, digest=True)


def change_members(r, data):
    """Members removed, exchanged, changed or added; the sums of the archive fit, the digest does not."""
    parts = members(io.BytesIO(data))
    one, two = r.choice(sorted(parts)), r.choice(sorted(parts))
    action = r.randrange(4)
    if action == 0:
        del parts[one]
    elif action == 1:
        parts[one], parts[two] = parts[two], parts[one]
    elif action == 2:
        parts[one] = change_bytes(r, parts[one])
    else:
        parts["../evil"] = b"x"
    return rewritten(parts, digest=False)


@cases(60, 1000, st.sampled_from(sorted(FITS)), st.integers(0, 2**60))
def test_a_damaged_model_file(name, seed):
    """Every command refuses it in one sentence, unless the model is still whole."""
    r = random.Random(seed)
    Path("changed.skops").write_bytes(r.choice([change_bytes, change_members])(r, Path(f"{name}.skops").read_bytes()))
    for old in ("p.csv", "m.onnx"):
        Path(old).unlink(missing_ok=True)
    attempt("inspect", "changed.skops", *r.choice([[], ["--json"]]))
    if attempt("predict", "changed.skops", "good.csv", "-o", "p.csv", out="p.csv")[0]:
        assert Path("p.csv").read_text() == Path(f"{name}.csv").read_text()
    if name in EXPORTED:
        attempt("export", "changed.skops", "m.onnx", out="m.onnx")


@cases(60, 1000, st.sampled_from(sorted(FITS)), st.integers(0, 2**60))
def test_a_changed_tree_with_a_right_digest(name, seed):
    """Whatever a forger writes, reading it ends soon: in an estimator, or in one sentence."""
    r = random.Random(seed)
    Path("changed.skops").write_bytes(change_tree(r, Path(f"{name}.skops").read_bytes()))
    sentence = ""
    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of scikit-learn, about another version of itself
            assert isinstance(load_model("changed.skops"), BaseEstimator)
    except ModelFileError as error:
        sentence = str(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert "\n" not in sentence
