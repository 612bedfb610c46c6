"""What the options of the program do: classes, files, dates, the network, and help."""

import io
import json
import re
import shlex
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score

from ocrep import RandomLayer, load_model, rules
from ocrep.cli.app import app
from ocrep.cli.running import DATA, USAGE, run


def told(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def frauds(n=6000):
    """1.2 % positives, which a linear model finds with an area of 0.95."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 83 == 0
    X = rng.standard_normal((n, 4)) + np.outer(y, [2.2, 1.1, 0.0, 0.0])
    return pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(y, "fraud", "fine"))


def test_rare_classes_are_found_if_they_weigh_as_much_and_a_hint_says_so(here, capsys):
    frame = frauds()
    frame.to_csv("t.csv", index=False)
    linear = LogisticRegression().fit(frame[list("abcd")], frame["kind"])
    area = roc_auc_score(frame["kind"] == "fraud", linear.predict_proba(frame[list("abcd")])[:, 1])
    assert (frame["kind"] == "fraud").mean() == pytest.approx(0.012, abs=0.001)
    assert area == pytest.approx(0.95, abs=0.01)
    asked = ["fit", "t.csv", "-t", "kind", "-o", "m.skops", "--n-hidden", "30", "--no-refit"]
    assert run(asked) == 0
    out = capsys.readouterr().out
    assert re.search(r"Note: .*fraud.*: try --class-weight balanced\n", out)
    for word in ("misclassified", "balanced accuracy", "ROC AUC", "log-loss", "true \\ predicted"):
        assert word in out
    assert run([*asked, "--class-weight", "balanced", "--json"]) == 0
    found = told(capsys)["assessment"]
    assert found["classes"] == ["fine", "fraud"]
    (_, _), (missed, hit) = found["confusion"]
    assert hit / (missed + hit) >= 0.6
    assert found["models"]["network"]["roc_auc"] > 0.9
    assert not [advice for advice in found["advice"] if "class_weight" in advice["change"]]
    assert run(["predict", "m.skops", "t.csv", "--out", "p.csv"]) == 0
    predicted = pd.read_csv("p.csv")
    assert recall_score(frame["kind"], predicted["prediction"], pos_label="fraud") >= 0.6
    assert list(predicted.columns) == ["prediction", "probability_fine", "probability_fraud"]
    assert run(["predict", "m.skops", "t.csv", "--out", "p.csv", "--no-proba"]) == 0
    assert list(pd.read_csv("p.csv").columns) == ["prediction"]


def german(n=60):
    rng = np.random.default_rng(1)
    x, share = rng.uniform(0, 5000, n).round(2), rng.uniform(0, 100, n).round(1)
    frame = pd.DataFrame(
        {"preis": x, "anteil": share, "ort": ["Köln", "Bonn"] * (n // 2), "y": (x / 100 + share).round(3)}
    )
    comma = {"preis": [f"{v:,.2f} €" for v in x], "anteil": [f"{v} %" for v in share], "y": frame["y"].astype(str)}
    words = {name: [w.translate(str.maketrans(",.", ".,")) for w in column] for name, column in comma.items()}
    odd = frame.assign(**words)
    odd.loc[3, "anteil"] = "k.A."
    return frame.assign(anteil=frame["anteil"].where(frame.index != 3)), odd


OPTIONS = ["--decimal", ",", "--thousands", ".", "--strip", "€%", "--na", "k.A.", "--encoding", "cp1252"]


def test_a_german_spreadsheet_is_read_as_the_plain_table(here, capsys):
    plain, odd = german()
    plain.to_csv("plain.csv", index=False)
    odd.to_csv("odd.txt", index=False, sep=";", encoding="cp1252")
    asked = ["-t", "y", "--n-hidden", "5", "--json"]
    assert run(["fit", "plain.csv", "-o", "plain.skops", *asked]) == 0
    wanted = told(capsys)
    assert run(["fit", "odd.txt", "-o", "odd.skops", *asked, *OPTIONS]) == 0
    found = told(capsys)
    assert wanted["inputs"] == found["inputs"] == {"preis": "number", "anteil": "number", "ort": "text"}
    assert found["scores"] == pytest.approx(wanted["scores"])
    # The model remembers how its file was written; what is given goes first.
    assert run(["predict", "odd.skops", "odd.txt", "--out", "odd.parquet"]) == 0
    usual = ["--decimal", ".", "--thousands", "", "--strip", "", "--encoding", "utf-8"]
    assert run(["predict", "odd.skops", "plain.csv", "--out", "plain.parquet", *usual]) == 0
    assert run(["predict", "plain.skops", "plain.csv", "--out", "wanted.parquet"]) == 0
    first, second, third = (pd.read_parquet(f"{name}.parquet") for name in ("odd", "plain", "wanted"))
    pd.testing.assert_frame_equal(first, second)
    pd.testing.assert_frame_equal(first, third)


def test_the_options_that_would_read_a_column_are_named(here, capsys):
    _, odd = german()
    odd.to_csv("odd.csv", index=False, sep=";")
    assert run(["fit", "odd.csv", "-t", "y", "-o", "m.skops"]) == DATA
    assert re.search(r"'y' is no number, because it holds '.*' in row 1: try --decimal ,$", capsys.readouterr().err)
    assert run(["fit", "odd.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "3", "--decimal", ","]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"Column 'preis' became text, because it holds '.* €' in row 1: try --thousands \. --strip '€'\n", out
    )
    assert re.search(r"Column 'anteil' became text, because .*: try --strip % --na k\.A\.\n", out)


def test_standard_input_folders_and_patterns(here, capsys, monkeypatch):
    frame = frauds(400)
    (here / "parts").mkdir()
    for i, part in enumerate(np.array_split(np.arange(400), 3)):
        frame.iloc[part].to_csv(f"parts/p{i}.csv", index=False)
    text = frame.to_csv(index=False)
    (here / "whole.csv").write_text(text)
    found = {}
    for data in ("whole.csv", "parts", "parts/p*.csv", "-"):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        assert run(["fit", data, "-t", "kind", "-o", "m.skops", "--n-hidden", "5", "--json"]) == 0
        found[data] = told(capsys)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        assert run(["predict", "m.skops", data]) == 0
        found[data]["predictions"] = capsys.readouterr().out
        assert found[data]["predictions"].count("\n") == 401
    for data in found:
        for name in ("scores", "gamma", "predictions"):
            wanted = found["whole.csv"][name]
            assert found[data][name] == (wanted if name == "predictions" else pytest.approx(wanted, rel=1e-9))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a,b\n1\n")))
    assert run(["fit", "-", "-t", "b", "-o", "m.skops"]) == DATA
    assert capsys.readouterr().err == "ocrep: standard input, line 2: it has 1 value, but the header has 2 columns.\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert run(["diagnose", "-", "-t", "kind", "--n-hidden", "5"]) == 0
    assert capsys.readouterr().out.startswith("Standard input: 400 rows, 4 columns used.")


def test_the_options_of_one_network_reach_it(here, capsys):
    frauds(400).drop(columns="kind").to_csv("t.csv", index=False)
    fixed = "--activation tanh --weight-init normal --weight-scale 0.5 --no-direct-link --max-hidden 7 --no-intercept"
    asked = f"fit t.csv -t a -o m.skops --n-hidden auto --gamma ocrep --floor 0.001 {fixed}"
    assert run(asked.split()) == 0
    parameters = load_model("m.skops").model_.get_params()
    wanted = {"n_hidden": "auto", "activation": "tanh", "weight_init": "normal", "weight_scale": 0.5}
    wanted |= {"direct_link": False, "fit_intercept": False, "max_hidden": 7, "gamma": rules.OCReP(floor=0.001)}
    assert {name: parameters[name] for name in wanted} == wanted
    assert run([*asked.split()[:6], "--n-hidden", "9", "--weight-scale", "inverse_sqrt", "--floor", "precision"]) == 0
    parameters = load_model("m.skops").model_.get_params()
    assert (parameters["weight_scale"], parameters["gamma"]) == (
        "inverse_sqrt",
        rules.resolve("ocrep_cv").__class__(floor="precision"),
    )


@pytest.mark.parametrize("parameter", ["activation", "weight_init"])
def test_the_choices_are_those_of_the_library(parameter, capsys):
    assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops", f"--{parameter.replace('_', '-')}", "?"]) == USAGE
    offered = capsys.readouterr().err.partition("is not one of ")[2]
    with pytest.raises(ValueError, match="Known: ") as refused:
        RandomLayer(3, **{parameter: "?"}).fit(np.eye(6))
    known = str(refused.value).partition("Known: ")[2]
    assert sorted(re.findall(r"'(\w+)'", offered)) == re.findall(r"'(\w+)'", known) != []


@pytest.mark.parametrize("digits", [3, 17, None])
def test_digits(digits, here, capsys):
    frauds(300).drop(columns="kind").to_csv("t.csv", index=False)
    assert run(["fit", "t.csv", "-t", "a", "-o", "m.skops", "--n-hidden", "5"]) == 0
    given = [] if digits is None else ["--digits", str(digits)]
    for form in ("csv", "parquet"):
        assert run(["predict", "m.skops", "t.csv", "--interval", "0.9", "--out", f"p.{form}", *given]) == 0
    text, exact = pd.read_csv("p.csv"), pd.read_parquet("p.parquet")
    model = load_model("m.skops").predict(pd.read_csv("t.csv"))
    np.testing.assert_allclose(text["prediction"], model, rtol=10.0 ** (1 - (digits or 6)))
    np.testing.assert_allclose(exact["prediction"], model, rtol=1e-2 if digits == 3 else 1e-12)
    longest = max(
        len(cell.lstrip("-0.").replace(".", ""))
        for cell in pd.read_csv("p.csv", dtype=str)["prediction"]
        if "e" not in cell
    )
    assert longest <= (digits or 6)


def test_dates_are_inputs_or_are_dropped(here, capsys):
    rng = np.random.default_rng(2)
    day = pd.date_range("2021-01-01", periods=500)
    y = 3.0 * (day.day_of_week >= 5) + day.year + 0.1 * rng.standard_normal(500)
    pd.DataFrame({"day": day.astype(str), "x": rng.standard_normal(500), "y": y}).to_csv("t.csv", index=False)
    r2 = {}
    for dates in ("day-first", "drop"):  # the order of a date that begins with its year is certain
        assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "100", "--dates", dates, "--json"]) == 0
        found = told(capsys)
        r2[dates] = found["scores"]["r2"]
        assert found["left_out"] == ({} if dates == "day-first" else {"day": "holds dates"})
    assert r2["day-first"] > 0.7 > 0.1 > r2["drop"]


def commands():
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        subs = getattr(command, "commands", None)
        yield from {f"{name} {sub}": one for sub, one in subs.items()}.items() if subs else [(name, command)]


def test_help_fits_eighty_columns_with_every_option_whole_and_two_examples(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in commands():
        assert run([*name.split(), "--help"]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert not option.startswith("-") or re.search(rf"(^|\s){option}(\s|,|$)", out, re.MULTILINE), (
                    name,
                    option,
                )
        examples = out.partition("Examples:\n")[2].split("\n")
        examples = [example.strip() for example in examples if example.strip()]
        assert len(examples) == 2
        for example in examples:
            assert example.startswith(f"ocrep {name}")
            words = shlex.split(example)[1 + len(name.split()) :]
            command.make_context(name, words)  # raises at an option that does not exist
    assert run(["--help"]) == 0
    assert "..." not in capsys.readouterr().out.split("Commands:")[1]


def test_a_model_that_learned_nothing_is_noted_once(here, capsys):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcy")).to_csv("t.csv", index=False)
    assert run(["fit", "t.csv", "-t", "y", "-o", "m.skops", "--candidates", "quick"]) == 0
    told = capsys.readouterr()
    assert told.out.count("Note: ") == 1
    assert re.search(r"Is it good\? +No: ", told.out)
    assert not told.err
