"""Every command on tables that hypothesis makes up: it works, or says in one sentence why not."""

import csv
import itertools
import json
import os
from pathlib import Path

import pytest
from hypothesis import strategies as st
from support.fuzzing import attempt, cases
from support.messy_tables import table_of

GOOD = "y,c0,c1,c2\n" + "".join(f"{i % 7 + 0.5},{i % 5},{'uv'[i % 2]},{i / 7:.3f}\n" for i in range(40))
OPTIONS = st.lists(
    st.sampled_from(
        [
            ("--decimal", ","),
            ("--thousands", ","),
            ("--strip", "$%€"),
            ("--na", "-"),
            ("--encoding", "latin-1"),
            ("--delimiter", ";"),
            ("--dates", "drop"),
            ("--dates", "day-first"),
            ("--keep", "c0"),
            ("--drop-missing-target",),
            ("--ignore", "c0"),
            ("--task", "classification"),
            ("--task", "regression"),
            ("--json",),
            ("--seed", "3"),
        ]
    ),
    max_size=2,
)
READING = ("--decimal", "--thousands", "--strip", "--na", "--encoding", "--delimiter")
TABLES = st.integers(0, 2**60)
NETWORKS = [
    ["--n-hidden", "4"],
    ["--n-hidden", "4"],
    ["--n-hidden", "4", "--gamma", "gcv"],
    ["--n-hidden", "6", "--gamma", "loo", "--no-intercept"],
    ["--n-hidden", "3", "--weight-init", "pairs", "--activation", "relu"],
    ["--n-hidden", "auto", "--max-hidden", "8"],
    ["--n-hidden", "4", "--class-weight", "balanced"],
    ["--candidates", "quick"],
    [],
]
WANTED = [[], [], ["--interval", "0.9"], ["--no-proba"], ["--digits", "3"]]


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    """A folder with one model of numbers and one of labels, in which everything happens."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("tables"))
    Path("good.csv").write_text(GOOD)
    for target, model in (("y", "numbers.skops"), ("c1", "labels.skops")):
        assert attempt("fit", "good.csv", "-t", target, "-o", model, "--n-hidden", "4")[0]
    yield
    os.chdir(before)


def written(number):
    data, suffix = table_of(number)
    for old in Path.cwd().glob("t.*"):
        old.unlink()
    path = Path(f"t{suffix}")
    path.write_bytes(data)
    return path


def flat(options):
    return list(itertools.chain(*options))


def task_of(model):
    return json.loads(attempt("inspect", model, "--json")[1])["assessment"]["task"]


def predictions_are_finite(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["prediction"].lower().lstrip("-") not in ("nan", "inf") for row in rows), rows


@cases(150, 1400, TABLES, st.sampled_from(NETWORKS), st.sampled_from(WANTED), OPTIONS)
def test_fit_and_predict(table, network, wanted, options):
    path = written(table)
    Path("m.skops").unlink(missing_ok=True)
    Path("p.csv").unlink(missing_ok=True)
    if not attempt("fit", path, "-t", "y", "-o", "m.skops", *network, *flat(options), out="m.skops")[0]:
        return
    assert attempt("inspect", "m.skops")[0]
    reading = flat(option for option in options if option[0] in READING)
    worked, _ = attempt("predict", "m.skops", path, "-o", "p.csv", *wanted, *reading, out="p.csv")
    if worked and task_of("m.skops") == "regression":  # a label may be any text
        predictions_are_finite("p.csv")


@cases(
    60,
    400,
    TABLES,
    st.sampled_from(["numbers.skops", "labels.skops"]),
    st.sampled_from([".csv", ".parquet", ".tsv.gz"]),
)
def test_predict_with_a_model_of_another_table(table, model, suffix):
    path = written(table)
    out = f"p{suffix}"
    Path(out).unlink(missing_ok=True)
    worked, _ = attempt("predict", model, path, "-o", out, out=out)
    if worked and (model, suffix) == ("numbers.skops", ".csv"):
        predictions_are_finite(out)


@cases(12, 200, TABLES, st.sampled_from(["diagnose", "report", "compare"]), OPTIONS)
def test_diagnose_and_compare(table, asked, options):
    path = written(table)
    Path("r.html").unlink(missing_ok=True)
    if asked == "compare":
        attempt("compare", path, "-t", "y", "--candidates", "quick", "--splits", "2", *flat(options))
    elif asked == "report":
        attempt("diagnose", path, "-t", "y", "--n-hidden", "4", "--report", "r.html", *flat(options), out="r.html")
        if Path("r.html").exists():
            assert "\x1b" not in Path("r.html").read_text(encoding="utf-8")
    else:
        attempt("diagnose", path, "-t", "y", "--n-hidden", "4", *flat(options))
