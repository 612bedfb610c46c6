"""Model files with bytes, trees and arrays changed: refused as damaged, or they predict finite numbers."""

import csv
import io
import json
import math
import os
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from support.fuzzing import attempt, cases

from ocrep.serialization.archive import RECORD, digest_of

N = 40
GOOD = "y,c,x,d\n" + "".join(
    f"{i % 7 + 0.5},{'abc'[i % 3]},{i / 7:.3f},20{10 + i % 9}-01-0{1 + i % 9}\n" for i in range(N)
)
GAPS = "y,c,x,d\n1,,0.1,2011-01-01\n1,a,,2012-02-02\n1,b,1.1,\n1,new,-1e9,1066-10-14\n,c,2,2999-12-31\n"
FITS = {
    "numbers": ["-t", "y", "--n-hidden", "5"],
    "labels": ["-t", "c", "--n-hidden", "5"],
    "kfold": ["-t", "y", "--n-hidden", "4", "--gamma", "kfold", "--weight-init", "pairs"],
    "wide": ["-t", "y", "--n-hidden", "60", "--activation", "gaussian"],
    "candidates": ["-t", "y", "--candidates", "quick"],
}
EXPORTED = {  # a graph cannot read dates
    "numbers to export": ["-t", "y", "--n-hidden", "5", "--dates", "drop"],
    "labels to export": ["-t", "c", "--n-hidden", "5", "--dates", "drop"],
}
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
    Path("gaps.csv").write_text(GAPS)
    for name, options in {**FITS, **EXPORTED}.items():
        assert attempt("fit", "good.csv", "-o", f"{name}.skops", *options)[0]
    assert all(attempt("export", f"{name}.skops", "m.onnx")[0] for name in EXPORTED)
    yield
    os.chdir(before)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(parts, *, digest=True):
    """The file as an adversary would write it: with sums, and a digest, that fit."""
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
    return rewritten({**parts, "model.json": json.dumps(tree).encode()})


def change_array(r, data):
    parts = members(io.BytesIO(data))
    name = r.choice([name for name in parts if name.endswith(".npy")])
    array = np.load(io.BytesIO(parts[name]), allow_pickle=False)
    changes = [
        lambda a: a[..., :-1] if a.ndim and a.shape[-1] else a.reshape(-1),
        lambda a: np.concatenate([a, a]) if a.ndim else np.array([a, a]),
        lambda a: a.reshape(-1, 1),
        lambda a: a.astype(r.choice(["float32", "complex128", "int8", "U5", "S3", "bool", "datetime64[s]", ">f8"])),
        lambda a: np.full_like(a, r.choice([0, 1, -1])),
        lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, np.nan, a),
        lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, np.inf, a),
        lambda a: 1e300 * a,
        lambda a: np.zeros((0, 3)),
        lambda a: np.asfortranarray(a),
    ]
    try:
        array = r.choice(changes)(array)
    except (TypeError, ValueError, np.exceptions.DTypePromotionError):
        array = np.zeros(3)
    with np.errstate(all="ignore"):
        memory = io.BytesIO()
        np.save(memory, array, allow_pickle=False)
    return rewritten({**parts, name: memory.getvalue()})


def change_members(r, data):
    parts = members(io.BytesIO(data))
    names = sorted(parts)
    one, two = r.choice(names), r.choice(names)
    action = r.randrange(4)
    if action == 0:
        del parts[one]
    elif action == 1:
        parts[one], parts[two] = parts[two], parts[one]
    elif action == 2:
        parts[one] = change_bytes(r, parts[one])
    else:
        parts["../evil"] = b"x"
    try:
        return rewritten(parts)
    except (ValueError, TypeError, AttributeError):
        return rewritten(parts, digest=False)


CHANGES = [change_bytes, change_tree, change_tree, change_tree, change_array, change_array, change_members]


def changed(name, seed):
    r = random.Random(seed)
    with np.errstate(all="ignore"):
        return r.choice(CHANGES)(r, Path(f"{name}.skops").read_bytes())


@cases(120, 2000, st.sampled_from(sorted(FITS)), st.integers(0, 2**60))
def test_a_changed_model(name, seed):
    Path("changed.skops").write_bytes(changed(name, seed))
    for old in ("p.csv", "q.csv"):
        Path(old).unlink(missing_ok=True)
    attempt("inspect", "changed.skops")
    attempt("inspect", "changed.skops", "--json")
    if attempt("predict", "changed.skops", "good.csv", "-o", "p.csv", out="p.csv")[0]:
        check_predictions("p.csv", N)
    more = ["--allow-unseen", *([] if name == "labels" else ["--std"])]
    if attempt("predict", "changed.skops", "gaps.csv", "-o", "q.csv", *more, out="q.csv")[0]:
        check_predictions("q.csv", 5)


def check_predictions(path, n_rows):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == n_rows
    assert all(row["prediction"].lower().lstrip("-") not in ("nan", "inf") for row in rows)


@cases(20, 300, st.sampled_from(sorted(EXPORTED)), st.integers(0, 2**60))
def test_export_of_a_changed_model(name, seed):
    Path("changed.skops").write_bytes(changed(name, seed))
    Path("m.onnx").unlink(missing_ok=True)
    attempt("export", "changed.skops", "m.onnx", out="m.onnx")
