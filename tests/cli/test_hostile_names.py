"""Names of files and columns that nobody should give, and that arrive all the same."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from ocrep._files.formats import visible
from ocrep.cli.running import DATA, LONGEST_MESSAGE, MODEL, OUTPUT, USAGE, run

ESCAPES = "a\x1b[2J\x1b]0;title\x07b\x9b31m\u202egnp\x7f"
NAMES = {"escape sequences": ESCAPES, "NUL": "a\0b", "formula": "=1+1", "very long": "x" * 70_000, "only space": "   "}


def table(path, *names, n=40):
    numbers = np.random.default_rng(0).uniform(size=(n, len(names))).round(3)
    numbers[:, -1] += numbers[:, 0]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(numbers)
    return path


def texts(frame):
    """Of a table of three columns, the middle one as text."""
    lines = frame.read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines[1:]]
    body = [f"{a},{'uv'[i % 2]},{y}" for i, (a, _, y) in enumerate(rows)]
    frame.write_text("\n".join([lines[0], *body]) + "\n", encoding="utf-8")


def said(capsys):
    out, err = capsys.readouterr()
    assert "internal error" not in err
    for character in (out + err).replace("\n", ""):
        assert character.isprintable() or character in "\t\u00a0\u202f", repr(character)
    return out, err


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_every_command_takes_any_name_of_a_column_and_shows_it_safely(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts(table(Path("t.csv"), name, "x", "y"))
    assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "4", "--id", name]) in (0, DATA)
    for target, ids in (("y", ()), (name, ("--ignore", "y"))):
        code = run(["fit", "t.csv", "-t", target, "-o", "m.skops", "--n-hidden", "4", *ids])
        said(capsys)
        if code == DATA:  # of a name that is only space, nothing can be said
            assert not name.strip()
            continue
        assert code == 0
        for command in (
            ["inspect", "m.skops"],
            ["inspect", "m.skops", "--json"],
            ["predict", "m.skops", "t.csv", "-o", "p.csv"],
            ["explain", "m.skops", "t.csv", "--report", "e.html"],
            ["explain", "m.skops", "t.csv", "--json"],
            ["explain", "m.skops", "t.csv", "--row", "2"],
            ["predict", "m.skops", "t.csv", "-o", "p.parquet", "--id", name],
            ["compare", "t.csv", "-t", target, "--candidates", "quick", "--splits", "2"],
        ):
            assert run(command) in (0, DATA), command
            said(capsys)
        assert "\x1b" not in Path("e.html").read_text(encoding="utf-8")
    if name.strip():
        assert run(["diagnose", "t.csv", "-t", "y", "--n-hidden", "4", "--report", "r.html"]) == 0
        assert "\x1b" not in Path("r.html").read_text(encoding="utf-8")
    said(capsys)


@pytest.mark.parametrize("name", ["self", "cls", "index", "0", "name", "__class__"])
def test_a_text_column_may_have_any_name(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    predicted = []
    for column in ("colour", name):
        texts(table(Path("t.csv"), "a", column, "y"))
        assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "4"]) == 0
        assert run(["inspect", "m.skops"]) == 0
        assert run(["predict", "m.skops", "t.csv", "-o", "p.csv"]) == 0
        said(capsys)
        predicted.append(Path("p.csv").read_text(encoding="utf-8"))
    assert predicted[0] == predicted[1]


def test_errors_and_json_show_escape_sequences_as_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table("t.csv", ESCAPES, "y")
    assert run(["fit", "t.csv", "-t", "zzz", "-o", "m.skops"]) == DATA
    assert "\\x1b[2J" in said(capsys)[1]
    assert run(["fit", ESCAPES + ".csv", "-t", "y", "-o", "m.skops"]) == DATA
    assert "\\u001b[2J" in said(capsys)[1]
    assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "3", "--json"]) == 0
    assert list(json.loads(said(capsys)[0])["inputs"]) == [ESCAPES]


def test_predictions_are_as_they_are_in_a_pipe_and_safe_on_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table("t.csv", "x", ESCAPES, "y")
    assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "3", "--id", ESCAPES]) == 0
    capsys.readouterr()
    for terminal, shown in ((False, ESCAPES), (True, visible(ESCAPES))):
        stream = io.StringIO()
        stream.isatty = lambda terminal=terminal: terminal
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            assert run(["predict", "m.skops", "t.csv"]) == 0
        assert stream.getvalue().splitlines()[0].startswith(shown)


def test_text_is_left_alone_but_for_what_a_terminal_obeys():
    for text in ("", "größe [m²]\tΔ\n", "名前", "naïve\u00a0…", "😀"):
        assert visible(text) == text
    assert visible("\x1b\x9b\u2028\u202e\udcff") == "\\u001b\\u009b\\u2028\\u202e\\udcff"
    assert visible("\U000e0001") == "\\udb40\\udc01"
    assert json.loads(f'"{visible(chr(0xE0001))}"') == "\U000e0001"


def test_names_of_files_that_are_not_utf_8(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"n\xff")
    table("t.csv", "x", "y")
    os.rename("t.csv", f"{odd}.csv")
    assert run(["fit", f"{odd}.csv", "-t", "y", "-o", "m.skops"]) == DATA
    assert (
        said(capsys)[1]
        == "ocrep: n\\udcff.csv has a name that is not UTF-8, which Arrow cannot open: rename the file.\n"
    )
    os.rename(f"{odd}.csv", "t.csv")
    fit = ["fit", "t.csv", "--n-hidden", "3"]
    assert run([*fit, "-t", odd, "-o", "m.skops"]) == DATA
    assert run([*fit, "-t", "y", "-o", f"{odd}.skops"]) == 0
    assert run(["inspect", f"{odd}.skops"]) == 0
    assert run(["predict", f"{odd}.skops", "t.csv", "-o", f"{odd}.csv"]) == OUTPUT
    assert "its name is not UTF-8; give it another name" in said(capsys)[1]


def test_a_name_that_ends_in_nul_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table("t.csv", "a\0", "y")
    assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops"]) == DATA
    assert r"the column name 'a\x00' ends in a NUL character: rename the column." in said(capsys)[1]


LONG = "x" * 300


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fit", f"{LONG}.csv", "-t", "y", "-o", "m.skops"], DATA, "There is no file"),
        (["fit", "t.csv", "-t", "y", "-o", f"{LONG}.skops"], OUTPUT, "File name too long"),
        (["predict", f"{LONG}.skops", "t.csv", "-o", "p.csv"], MODEL, "File name too long"),
        (["predict", "m.skops", "t.csv", "-o", f"{LONG}.csv"], OUTPUT, "File name too long"),
        (["diagnose", "t.csv", "-t", "y", "--report", f"{LONG}.html"], OUTPUT, "File name too long"),
        (["export", "m.skops", f"{LONG}.onnx"], OUTPUT, "File name too long"),
        (["datasets", LONG], USAGE, LONG),
        (["fit", "t.csv", "-t", "y" * 5000, "-o", "m.skops"], DATA, "no column"),
        (["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "9" * 5000], USAGE, "at most 9 digits, or auto"),
        (["fit", "t.csv", "-t", "y", "-o", "m.skops", "--gamma", "9" * 5000], USAGE, "finite number"),
        (["fit", "t.csv", "-t", "y", "-o", "m.skops", "--seed", "9" * 5000], USAGE, "--seed"),
        (["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "²"], USAGE, "whole number"),
        (["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "٣" * 12], USAGE, "whole number"),
    ],
)
def test_values_of_any_length_end_in_one_short_sentence(arguments, code, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table("t.csv", "x", "y")
    assert run(arguments) == code
    _, err = said(capsys)
    assert words in err
    assert err.count("\n") == 1
    assert len(err) < LONGEST_MESSAGE + 20
    assert os.listdir() == ["t.csv"]
