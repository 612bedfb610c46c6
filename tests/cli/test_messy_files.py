"""Files as they come: each ends in a useful model. What is refused, and in which sentence, is in test_cli_errors."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ocrep.cli.running import DATA, FINE, run

N = 240
RNG = np.random.default_rng(0)
A, B = RNG.uniform(1.0, 9.0, N), RNG.uniform(0.0, 100.0, N)
Y = 3.0 * A + 0.1 * B + 0.1 * RNG.standard_normal(N)


def text(*columns, header="a,b,y", sep=",", end="\n"):
    return end.join([header, *(sep.join(map(str, row)) for row in zip(*columns, strict=True))]) + end


PLAIN = text(A.round(3), B.round(3), Y.round(3))
GERMAN = PLAIN.replace(",", ";").replace(".", ",")
THOUSANDS = text([f'"{1000 * a:,.1f}"' for a in A], B.round(3), Y.round(3))
CURRENCY = text([f'"${1000 * a:,.2f}"' for a in A], B.round(3), Y.round(3))
COLOUR = np.where(A > 5, "größer", "naïve")

# The bytes, what is asked beyond fit, and the R² that a useful model has.
USEFUL = {
    "plain": (PLAIN.encode(), [], 0.98),
    "decimal comma": (GERMAN.encode(), ["--decimal", ","], 0.98),
    "thousands": (THOUSANDS.encode(), ["--thousands", ","], 0.98),
    "currency": (CURRENCY.encode(), ["--thousands", ",", "--strip", "$"], 0.98),
    "BOM": (PLAIN.encode("utf-8-sig"), [], 0.98),
    "Latin-1": (text(A.round(3), COLOUR, Y.round(3)).encode("latin-1"), ["--encoding", "latin-1"], 0.6),
    "UTF-16": (PLAIN.encode("utf-16"), ["--encoding", "utf-16"], 0.98),
    "quotes": (text(*([f'"{v:.3f}"' for v in c] for c in (A, B, Y)), header='"a","b","y"').encode(), [], 0.98),
    "Windows lines": (PLAIN.replace("\n", "\r\n").encode(), [], 0.98),
    "ids": (text(np.arange(N) + 10**6, A.round(3), B.round(3), Y.round(3), header="id,a,b,y").encode(), [], 0.95),
    "dates": (
        text(pd.date_range("2020-01-01", periods=N).strftime("%Y-%m-%d"), A.round(3), Y.round(3)).encode(),
        [],
        0.6,
    ),
    "words for missing": (PLAIN.replace(f"{B[3]:.3f}", "unknown").encode(), ["--na", "unknown"], 0.95),
}


@pytest.fixture
def fitted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def fit(data, *more):
        (tmp_path / "t.csv").write_bytes(data)
        code = run(["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "20", "--quiet", *more])
        out, err = capsys.readouterr()
        assert (tmp_path / "m.skops").exists() == (code == FINE)
        assert (err == "") == (code == FINE), err
        return code, out, err

    return fit


@pytest.mark.parametrize("case", USEFUL)
def test_a_useful_model(case, fitted):
    data, options, least = USEFUL[case]
    code, out, err = fitted(data, *options, "--json")
    assert code == FINE, err
    assert json.loads(out)["scores"]["r2"] > least
    assert run(["predict", "m.skops", "t.csv", "-o", "p.csv"]) == FINE  # read as in training
    assert len(pd.read_csv("p.csv")) == N


@pytest.mark.parametrize(("column", "code", "words"), [(0, FINE, r"holds '5.349\x00' in row 9"), (2, DATA, "1234.5")])
def test_a_nul_byte_is_named_with_its_cell(column, code, words, fitted):
    lines = [line.split(",") for line in PLAIN.splitlines()]
    lines[9][column] += "\0"
    found, out, err = fitted("\n".join(map(",".join, lines)).encode())
    assert found == code
    assert words in " ".join((out + err).split())
    assert "\0" not in out + err


@pytest.mark.parametrize("target", [Y.round(3), np.where(A > 5, "high", "low")], ids=["numbers", "labels"])
def test_a_number_near_the_largest(target, fitted):
    code, _, err = fitted(text(A.round(3), ["1e308", *B[1:].round(3)], target).encode())
    assert code == FINE, err


def test_a_leak_is_named_with_the_option_that_leaves_it_out(fitted):
    data = text(A.round(3), (Y / 7).round(6), Y.round(3)).encode()
    code, out, _ = fitted(data)
    assert code == FINE
    assert "Note: 'b' alone predicts the target" in out
    assert "--ignore b" in out
    _, out, _ = fitted(data, "--ignore", "b", "--json")
    assert json.loads(out)["scores"]["r2"] < 0.9
    assert json.loads(out)["assessment"]["advice"] == []


@pytest.mark.parametrize("filler", [0.0, -1.0])
def test_a_column_that_is_filled_in_for_one_class_only_is_named_on_the_page(filler, fitted):
    sick = A > 5
    data = text(B.round(3), np.where(sick, (50.0 + 5.0 * B).round(2), filler), np.where(sick, "sick", "well")).encode()
    code, out, _ = fitted(data, "--report", "r.html")
    assert code == FINE
    assert "Note: 'b' alone predicts the target" in out
    page = Path("r.html").read_text(encoding="utf-8")
    assert "It seems so." in page
    assert "No column alone predicts" not in page


def test_diagnose_and_compare_tell_of_columns_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    dash = ["-", *B[1:].round(3)]
    rows = text(A.round(3), dash, (Y / 7).round(6), Y.round(3), header="a,b,copy,y")
    (tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    assert run(["diagnose", "t.csv", "-t", "y", "--n-hidden", "5", "--report", "r.html"]) == FINE
    out, page = capsys.readouterr().out, (tmp_path / "r.html").read_text(encoding="utf-8")
    for words in ("alone predicts the target", "--ignore copy", "in row 1: try --na -"):
        assert words in out
        assert words in page
    assert run(["diagnose", "t.csv", "-t", "y", "--n-hidden", "5", "--json"]) == FINE
    told = json.loads(capsys.readouterr().out)["table"]["advice"]
    assert [(one["code"], one["change"]) for one in told] == [
        ("near_numbers", {"na": ["-"]}),
        ("leak", {"ignore": ["copy"]}),
    ]
    assert run(["compare", "t.csv", "-t", "y", "--candidates", "quick", "--splits", "2"]) == FINE
    assert capsys.readouterr().out.count("--ignore copy") == 1


def test_a_rare_class_of_two_rows(fitted):
    labels = np.where(np.arange(N) < 2, "rare", np.where(A > 5, "high", "low"))
    code, out, err = fitted(text(A.round(3), B.round(3), labels).encode(), "--json")
    assert code == FINE, err
    assert json.loads(out)["scores"]["error"] < 0.2


def test_500_columns(fitted):
    X = np.random.default_rng(1).standard_normal((N, 500)).round(2)
    header = ",".join([*(f"c{i}" for i in range(500)), "y"])
    code, out, err = fitted(text(*X.T, (2.0 * X[:, 0]).round(2), header=header).encode(), "--json")
    assert code == FINE, err
    assert len(json.loads(out)["inputs"]) == 500


def test_200_000_rows(fitted):
    rng = np.random.default_rng(2)
    a, b = rng.uniform(size=(2, 200_000)).round(4)
    frame = pd.DataFrame({"a": a, "b": b, "y": (np.sin(6.0 * a) + b).round(4)})
    code, out, err = fitted(frame.to_csv(index=False).encode(), "--json")
    assert code == FINE, err
    assert json.loads(out)["scores"]["r2"] > 0.98


def test_an_interval_that_few_rows_do_not_have_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(8)))
    asked = ["-t", "y", "-o", "m.skops", "--test", "0", "--n-hidden", "3", "--quiet"]
    assert run(["fit", "t.csv", *asked]) == FINE
    assert run(["predict", "m.skops", "t.csv", "--interval", "0.9", "-o", "p.csv"]) == DATA
    assert "coverage=0.9 needs at least 9 rows" in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()
