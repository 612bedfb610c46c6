"""An error is one line with a documented exit code, and leaves nothing half-written."""

import gzip
import io
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.program import ocrep_many

from ocrep import save_model
from ocrep.cli import main
from ocrep.cli.running import DATA, INTERNAL, MEANING, MODEL, OUTPUT, USAGE, run
from ocrep.tables.training import Settings, problem_of_file, train_table

GOOD = "size,colour,fresh,weight\n" + "".join(
    f"{i % 7},{'red' if i % 3 else 'blue'},{i % 2 == 0},{2.5 * (i % 7) + i % 3}\n" for i in range(40)
)


def fit(data, *more, target="weight", out="new.skops"):
    return ["fit", data, "--target", target, "--out", out, "--n-hidden", "5", *more]


def predict(data, *more, model="model.skops", out="pred.csv"):
    return ["predict", model, data, "--out", out, *more]


# What is asked, the exit code, and words that the one line must hold.
CASES = {
    "missing file": (fit("nothing.csv"), DATA, "There is no file nothing.csv"),
    "a folder without tables": (fit("folder.csv"), DATA, "The folder folder.csv holds no Parquet, CSV"),
    "no match": (fit("part*.csv"), DATA, "No file matches part*.csv"),
    "wrong column": (fit("good.csv", target="wieght"), DATA, "no column 'wieght': did you mean 'weight'?"),
    "wrong ignored column": (fit("good.csv", "--ignore", "Colours"), DATA, "did you mean 'colour'?"),
    "column far from all": (fit("good.csv", target="zzzzzz"), DATA, "it has 'size', 'colour', 'fresh', 'weight'."),
    "target without a name": (fit("nameless.csv", target=""), DATA, "has no proper name"),
    "ignored target": (fit("good.csv", "--ignore", "weight"), DATA, "is the target"),
    "target as an id": (fit("good.csv", "--id", "weight"), DATA, "is the target"),
    "kept column that is not there": (fit("good.csv", "--keep", "Colours"), DATA, "did you mean 'colour'?"),
    "kept target": (fit("good.csv", "--keep", "weight"), DATA, "no column 'weight'"),
    "a copy of the target": (fit("copy.csv"), DATA, "with --ignore 'a copy'."),
    "order of day and month": (fit("order.csv"), DATA, "--dates day-first or --dates month-first."),
    "order of dates": (fit("good.csv", "--dates", "parts"), USAGE, "--dates"),
    "only ids": (fit("ids.csv"), DATA, "Use --keep COLUMN for"),
    "empty file": (fit("empty.csv"), DATA, "empty.csv is empty"),
    "blank file": (fit("blank.csv"), DATA, "blank.csv is empty"),
    "header only": (fit("header.csv"), DATA, "has a header but no rows"),
    "short line": (fit("ragged_short.csv"), DATA, "ragged_short.csv, line 5: it has 3 values, but the header has 4"),
    "long line": (fit("ragged_long.csv"), DATA, "ragged_long.csv, line 42: it has 5 values"),
    "after a cell of two lines": (fit("ragged_lines.csv"), DATA, "line 4: it has 1 value, but"),
    "missing target": (
        fit("gaps.csv"),
        DATA,
        "3 of 40 rows: fill them in, or leave these rows out with --drop",
    ),
    "only missing targets": (fit("no_target.csv"), DATA, "is empty"),
    "duplicate columns": (fit("twice.csv"), DATA, "'size' appears more than once"),
    "not UTF-8": (fit("latin.csv"), DATA, "latin.csv, line 3, is not UTF-8"),
    "not UTF-8 header": (fit("latin_header.csv"), DATA, "latin_header.csv, line 1, is not UTF-8"),
    "infinite number": (fit("infinite.csv"), DATA, "'size' holds an infinite number in row 2"),
    "one class": (fit("one_class.csv", "--task", "classification"), DATA, "only one class"),
    "one value": (fit("one_class.csv", "--task", "regression"), DATA, "holds only one value, 5"),
    "decimal commas in the target": (fit("commas.csv"), DATA, "it holds '0,1' in row 1: try --decimal ,"),
    "decimal mark": (fit("good.csv", "--decimal", "ab"), USAGE, "--decimal='ab' must be one mark"),
    "marks at odds": (fit("good.csv", "--thousands", "."), USAGE, "not the decimal mark"),
    "signs that are digits": (fit("good.csv", "--strip", "1"), USAGE, "no part of a number"),
    "delimiter": (fit("good.csv", "--delimiter", "abc"), USAGE, "must be one character of ASCII, or tab"),
    "decimal mark that Arrow cannot read": (fit("good.csv", "--decimal", "٫"), USAGE, "one mark of ASCII"),
    "delimiter that Arrow cannot read": (fit("good.csv", "--delimiter", "§"), USAGE, "one character of ASCII, or tab"),
    "encoding of bytes": (fit("good.csv", "--encoding", "base64"), USAGE, "'base64' is not known"),
    "another decimal mark": (fit("points.csv", "--decimal", ","), DATA, "'0.1' in row 1: try --decimal ."),
    "encoding": (fit("good.csv", "--encoding", "latin-99"), USAGE, "'latin-99' is not known"),
    "another encoding": (fit("latin.csv", "--encoding", "utf-16"), DATA, "latin.csv is not utf-16 text"),
    "weight scale": (fit("good.csv", "--weight-scale", "big"), USAGE, "a number, or inverse_sqrt"),
    "floor of a number": (fit("good.csv", "--gamma", "1", "--floor", "0"), USAGE, "has no floor"),
    "floor": (fit("good.csv", "--floor", "deep"), USAGE, "floor must be"),
    "suffix of the model": (fit("good.csv", out="new.txt"), OUTPUT, "its name must end in .skops"),
    "suffix of the graph": (["export", "model.skops", "new.bin"], OUTPUT, "its name must end in .onnx"),
    "suffix of the report": (
        ["diagnose", "good.csv", "--target", "weight", "--report", "new.pdf"],
        OUTPUT,
        "its name must end in .html or .htm",
    ),
    "weighted regression": (fit("good.csv", "--class-weight", "balanced"), USAGE, "--class-weight is for class"),
    "text for a date": (predict("no_date.csv", model="dates.skops"), DATA, "'day' must hold dates"),
    "numbers for a date": (predict("no_date.parquet", model="dates.skops"), DATA, "'day' must hold dates, as"),
    "labels that floats cannot tell apart": (
        fit("digits.csv", "--task", "classification"),
        DATA,
        "labels of 16 digits and more",
    ),
    "one row": (fit("single.csv"), DATA, "The table has 1 row"),
    "text for a regression": (
        fit("good.csv", "--task", "regression", target="colour"),
        DATA,
        "holds text such as 'blue', but a regression needs numbers: use --task classification",
    ),
    "fractions for labels": (fit("fractions.csv", "--task", "classification"), DATA, "use --task regression"),
    "dates as target": (fit("dates.parquet", target="day"), DATA, "choose another column"),
    "no inputs": (fit("alone.csv"), DATA, "no column to learn from: 'same' is constant"),
    "Excel": (fit("good.xlsx"), DATA, "Excel files are not supported; save the sheet as CSV."),
    "unknown format": (fit("good.md"), DATA, "files of this kind cannot be read"),
    "damaged Parquet": (fit("damaged.parquet"), DATA, "cannot be read as Parquet"),
    "damaged gz": (fit("damaged.csv.gz"), DATA, "damaged.csv.gz"),
    "misspelt rule": (fit("good.csv", "--gamma", "ocrap"), USAGE, "did you mean 'ocrep'"),
    "unknown rule": (fit("good.csv", "--gamma", "§§§"), USAGE, "ocrep, kfold, gcv"),
    "negative gamma": (fit("good.csv", "--gamma", "-1"), USAGE, "finite number ≥ 0"),
    "test share": (fit("good.csv", "--test", "1.5"), USAGE, "above 0 and below 1"),
    "test share zero": (["compare", "good.csv", "--target", "weight", "--test", "0"], USAGE, "above 0 and below 1"),
    "hidden units": ([*fit("good.csv")[:-1], "0"], USAGE, "whole number ≥ 1"),
    "one network and many": (
        fit("good.csv", "--candidates", "quick"),
        USAGE,
        "--candidates: it chooses the networks, which --n-hidden",
    ),
    "unknown candidates": (fit("good.csv", "--candidates", "all"), USAGE, "--candidates"),
    "task": (fit("good.csv", "--task", "guess"), USAGE, "--task"),
    "unknown option": (fit("good.csv", "--nonsense"), USAGE, "--nonsense"),
    "unknown command": (["fti"], USAGE, "fti"),
    "no target option": (["fit", "good.csv", "--out", "new.skops"], USAGE, "--target"),
    "an option that is gone": (fit("good.csv", "--calibrate"), USAGE, "--calibrate"),
    "data as model": (fit("good.csv", out="good.csv"), OUTPUT, "it is the file to be read"),
    "data as predictions": (predict("good.csv", out="good.csv"), OUTPUT, "it is the file to be read"),
    "data as report": (
        ["diagnose", "good.csv", "--target", "weight", "--report", "good.csv"],
        OUTPUT,
        "it is the file to be read",
    ),
    "model as graph": (["export", "model.skops", "linked.skops"], OUTPUT, "it is the file to be read"),
    "a pipe as model": (fit("good.csv", out="pipe"), OUTPUT, "it is not a regular file"),
    "test share too large": (fit("good.csv", "--test", "0.99"), DATA, "too few of 40 rows"),
    "output is a folder": (fit("good.csv", out="folder.csv"), OUTPUT, "it is a folder"),
    "output's folder is missing": (fit("good.csv", out="none/new.skops"), OUTPUT, "there is no folder none"),
    "output's folder cannot be written": (fit("good.csv", out="/proc/new.skops"), OUTPUT, "Cannot write /proc/new"),
    "output's format": (predict("good.csv", out="pred.xlsx"), OUTPUT, "Cannot write pred.xlsx"),
    "predictions into a missing folder": (predict("good.csv", out="none/pred.csv"), OUTPUT, "no folder none"),
    "text for a number": (
        predict("text.csv"),
        DATA,
        "text.csv, line 4: column 'size' must hold numbers, but it holds 'many'. The model was trained on numbers",
    ),
    "text for a number in Parquet": (predict("text.parquet"), DATA, "row 3 holds 'many'"),
    "text for a boolean": (predict("maybe.csv"), DATA, "'fresh' must hold True or False, as in training, but row 2"),
    "dates for a number": (predict("dates.parquet"), DATA, "'size' must hold a number"),
    "missing columns": (predict("without.csv"), DATA, "no column 'size' and 1 more, which the model needs"),
    "ragged later": (predict("ragged_long.csv"), DATA, "line 42"),
    "header only, new rows": (predict("header.csv"), DATA, "no rows"),
    "unknown id": (predict("good.csv", "--id", "nam"), DATA, "no column 'nam'"),
    "id named as the result": (predict("taken.csv", "--id", "prediction"), DATA, "rename it"),
    "no probabilities": (predict("good.csv", "--proba"), USAGE, "--proba needs a classifier"),
    "no interval": (predict("good.csv", "--interval", "0.9", model="labels.skops"), USAGE, "--interval needs a regr"),
    "interval of all": (predict("good.csv", "--interval", "1"), USAGE, "above 0 and below 1"),
    "interval that is no number": (predict("good.csv", "--interval", "nan"), USAGE, "above 0 and below 1"),
    "JSON and rows on one stream": (["predict", "model.skops", "good.csv", "--json"], USAGE, "--json"),
    "pickle": (predict("good.csv", model="model.pkl"), MODEL, "pickle"),
    "damaged model": (predict("good.csv", model="damaged.skops"), MODEL, "damaged.skops"),
    "missing model, as JSON": (["inspect", "no.skops", "--json"], MODEL, "no file no.skops"),
    "missing model": (["inspect", "no.skops"], MODEL, "no file no.skops"),
    "model is a folder": (["inspect", "folder.csv"], MODEL, "folder"),
    "export of no model": (["export", "model.pkl", "x.onnx"], MODEL, "pickle"),
    "export into a missing folder": (["export", "model.skops", "none/x.onnx"], OUTPUT, "no folder none"),
    "report into a missing folder": (
        ["diagnose", "good.csv", "--target", "weight", "--report", "none/r.html"],
        OUTPUT,
        "no folder none",
    ),
    "unknown data set": (["datasets", "irises"], USAGE, "Did you mean 'iris'?"),
    "size and rule at odds": ([*fit("good.csv")[:-1], "auto", "--gamma", "loo"], DATA, "--n-hidden auto"),
}


def changed(text, row, column, value):
    lines = [line.split(",") for line in text.splitlines()]
    lines[row][column] = value
    return "\n".join(map(",".join, lines)) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("errors")
    lines = GOOD.splitlines(keepends=True)
    texts = {
        "good.csv": GOOD,
        "empty.csv": "",
        "blank.csv": "\n\n",
        "header.csv": lines[0],
        "ragged_short.csv": "".join([*lines[:4], "1,red,True\n", *lines[4:]]),
        "ragged_long.csv": GOOD + "1,red,True,2,3\n",
        "ragged_lines.csv": 'weight,colour\n1,"red\nor blue"\n5\n',
        "gaps.csv": "".join([lines[0], *(line.rsplit(",", 1)[0] + ",\n" for line in lines[1:4]), *lines[4:]]),
        "no_target.csv": "".join([lines[0], *(line.rsplit(",", 1)[0] + ",\n" for line in lines[1:])]),
        "twice.csv": "size,size,weight\n1,2,3\n",
        "infinite.csv": changed(GOOD, 2, 0, "inf"),
        "one_class.csv": "a,weight\n" + "".join(f"{i},5\n" for i in range(20)),
        "nameless.csv": GOOD.replace("size", "", 1),
        "copy.csv": "a copy,weight\n" + "".join(f"{i * i % 17}.5,{i * i % 17}.5\n" for i in range(60)),
        "order.csv": "day,weight\n" + "".join(f"{1 + i % 9}/{1 + i % 7}/2024,{i}.5\n" for i in range(40)),
        "ids.csv": "id,weight\n" + "".join(f"{i},{i * i % 17}.5\n" for i in range(60)),
        "single.csv": "".join(lines[:2]),
        "commas.csv": "size;weight\n" + "".join(f"{i};{i},1\n" for i in range(40)),
        "points.csv": "size;weight\n" + "".join(f"{i};{i}.1\n" for i in range(40)),
        "digits.csv": "a,weight\n" + "".join(f"{i},{2**53 + i % 3}\n" for i in range(40)),
        "fractions.csv": changed(GOOD, 1, 3, "0.25"),
        "alone.csv": "weight,same\n" + "".join(f"{i}.5,1\n" for i in range(20)),
        "good.xlsx": GOOD,
        "good.md": GOOD,
        "damaged.parquet": GOOD,
        "damaged.skops": "PK\x03\x04 and no more",
        "text.csv": changed(GOOD, 3, 0, "many"),
        "maybe.csv": changed(GOOD, 2, 2, "maybe"),
        "without.csv": "colour,weight\nred,3\n",
        "taken.csv": GOOD.replace("weight", "prediction"),
    }
    for name, text in texts.items():
        (here / name).write_text(text, encoding="utf-8")
    (here / "latin.csv").write_bytes("size,weight\n1,2\nä,3\n".encode("latin-1"))
    (here / "latin_header.csv").write_bytes("größe,weight\n1,2\n".encode("latin-1"))
    (here / "damaged.csv.gz").write_bytes(gzip.compress(GOOD.encode())[:-20])
    (here / "model.pkl").write_bytes(pickle.dumps({"a": 1}))
    (here / "folder.csv").mkdir()
    (here / "linked.skops").symlink_to("model.skops")
    os.mkfifo(here / "pipe")
    frame = pd.read_csv(here / "good.csv")
    frame.assign(day=pd.Timestamp("2020-01-01"), size=pd.Timestamp("2020-01-01")).to_parquet(here / "dates.parquet")
    frame.astype({"size": str}).replace({"size": {frame["size"].astype(str)[2]: "many"}}).to_parquet(
        here / "text.parquet"
    )
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=40), "weight": np.arange(40) / 3})
    days.to_parquet(here / "days.parquet")
    models = {"model": ("good.csv", "weight"), "labels": ("good.csv", "colour"), "dates": ("days.parquet", "weight")}
    for name, (data, target) in models.items():
        problem = problem_of_file(here / data, target, Settings(n_hidden=5))
        save_model(train_table(problem, test=0).model, here / f"{name}.skops")
    days.assign(day=1.5).to_parquet(here / "no_date.parquet")
    (here / "no_date.csv").write_text("day,weight\n2020-01-01,1\nsoon,2\n")
    return here


def judge(case, code, out, err):
    arguments, wanted, words = CASES[case]
    assert code == wanted, (case, code, out, err)
    if "--json" in arguments:
        error = json.loads(out)["error"]
        assert f"ocrep: {error['message']}\n" == err
        assert (error["exit_code"], error["meaning"]) == (code, MEANING[code])
    else:
        assert out == "", (case, out)
    assert err.startswith("ocrep: "), (case, err)
    assert err.count("\n") == 1, (case, err)
    assert words in err, (case, err)
    assert "Traceback" not in err


@pytest.mark.parametrize("case", CASES)
def test_one_line_says_what_cannot_be(case, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(os.listdir())
    code = run(list(CASES[case][0]))
    judge(case, code, *capsys.readouterr())
    assert sorted(os.listdir()) == before


def test_the_real_program_says_the_same(folder):
    """One case of each exit code, and one with JSON."""
    cases = [next(case for case, (_, code, _) in CASES.items() if code == wanted) for wanted in (DATA, USAGE, OUTPUT)]
    cases += ["missing model", "missing model, as JSON"]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    outcomes = ocrep_many([CASES[case][0] for case in cases], cwd=folder)
    for case, outcome in zip(cases, outcomes, strict=True):
        judge(case, outcome.code, outcome.out, outcome.err)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_debug_shows_the_traceback(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(["fit", "--debug", *fit("single.csv")[1:]]) == DATA
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.rstrip().splitlines()[-1].startswith("ocrep: The table has 1 row")


def test_an_error_of_our_own_is_told_from_others(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def broken(*args, **kwargs):
        raise ZeroDivisionError("why")

    monkeypatch.setattr("ocrep.tables.training.problem_of_file", broken)
    assert run(fit("good.csv")) == INTERNAL
    assert "internal error, ZeroDivisionError: why" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            ModuleNotFoundError("No module named 'x'", name="x"),
            INTERNAL,
            'x is not installed: pip install "ocrep[cli]"',
        ),
        (ImportError("Needs that."), INTERNAL, "Needs that."),
        (MemoryError(), DATA, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (type("Abort", (RuntimeError,), {})(), 130, "interrupted"),
    ],
)
def test_other_ends(error, code, words, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def end(*args, **kwargs):
        raise error

    monkeypatch.setattr("ocrep.tables.training.problem_of_file", end)
    assert run(fit("good.csv")) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("out", ["/proc/new.skops", "none/new.skops", "folder.csv"])
def test_the_output_is_tried_before_the_work(out, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    # Without the try, the missing data would be found first.
    assert run(fit("nothing.csv", out=out)) == OUTPUT
    assert run(predict("nothing.csv", model="no.skops", out=out.replace("skops", "csv"))) == OUTPUT
    assert capsys.readouterr().err.count("Cannot write") == 2


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    old = Path("model.skops").read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ocrep.serialization.save_model", full)
    assert run(fit("good.csv", out="model.skops")) == OUTPUT
    assert capsys.readouterr().err == "ocrep: Cannot write model.skops: No space left on device.\n"
    assert Path("model.skops").read_bytes() == old


def test_a_failed_prediction_leaves_the_old_file(folder, tmp_path, monkeypatch, capsys):
    old = tmp_path / "pred.csv"
    old.write_text("kept\n")
    late = tmp_path / "late.csv"
    late.write_text(GOOD + "".join(GOOD.splitlines(keepends=True)[1:]) * 5000 + "many,red,True,1\n")
    monkeypatch.chdir(folder)
    assert run(predict(str(late), out=str(old))) == DATA
    assert f"line {40 * 5001 + 2}: column 'size' must hold numbers, but it holds 'many'" in capsys.readouterr().err
    assert old.read_text() == "kept\n"
    assert sorted(os.listdir(tmp_path)) == ["late.csv", "pred.csv"]


def test_rare_classes_and_rules_that_do_not_apply(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(30)
    pd.DataFrame({"x": rows, "y": np.where(rows % 3 == 0, "a", np.where(rows % 3 == 1, "b", "c"))}).to_csv("three.csv")
    assert run(fit("three.csv", "--gamma", "kibria", target="y")) == DATA
    assert capsys.readouterr().err.count("\n") == 1
    assert not Path("new.skops").exists()


def test_without_the_extra_one_line_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from ocrep.cli import main; main()"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == INTERNAL
    assert done.stderr == 'ocrep: the command line needs more libraries: pip install "ocrep[cli]"\n'


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="No device that is always full.")
def test_a_full_standard_output():
    command = [sys.executable, "-c", "from ocrep.cli import main; main()", "datasets"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (OUTPUT, 1)
    assert done.stderr.startswith("ocrep: Cannot write to standard output: ")


@pytest.fixture
def version(monkeypatch):
    """The program, in this process, asked for its version; its exit code."""
    monkeypatch.setattr(sys, "argv", ["ocrep", "--version"])
    before = signal.getsignal(signal.SIGTERM)

    def run_it():
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    yield run_it
    signal.signal(signal.SIGTERM, before)


def test_a_closed_standard_output(version, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert version() == OUTPUT
    assert capsys.readouterr().err == "ocrep: Cannot write to standard output: it is closed.\n"


def test_without_standard_error_the_message_goes_nowhere(version, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert version() == 0
    print("lost", file=sys.stderr)
    sys.stderr.close()
    assert "lost" not in capsys.readouterr().out


@pytest.mark.parametrize(("terminal", "shown"), [(False, "γ".encode()), (True, b"?")])
def test_rows_are_utf_8_and_a_terminal_shows_what_it_can(terminal, shown, version, monkeypatch):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    version()
    print("γ", end="", flush=True)
    assert written.getvalue().endswith(shown)
