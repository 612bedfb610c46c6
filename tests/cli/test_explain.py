"""`ocrep explain`, the page of `ocrep fit --report`, and what both say of rows that cannot be explained."""

import json
import os
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.linear_model import Ridge

from ocrep import PinvRegressor, TableRegressor, load_model, save_model
from ocrep.cli.running import DATA, FINE, MODEL, OUTPUT, USAGE, run

N = 160


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of four columns of which two matter, and a model of its first half."""
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "size": rng.uniform(0, 10, N).round(3),
            "town": rng.choice(["Oslo", "Bergen"], N),
            "noise": rng.standard_normal(N).round(3),
            "tail": rng.standard_normal(N).round(3),
        }
    )
    frame["price"] = (2.0 * frame["size"] + 6.0 * frame["town"].eq("Oslo") + 0.1 * rng.standard_normal(N)).round(3)
    frame["kind"] = np.where(frame["price"] > 12, "dear", "cheap")
    frame[:100].drop(columns="kind").to_csv(folder / "rows.csv", index=False)
    frame[100:].drop(columns="kind").to_csv(folder / "new.csv", index=False)
    frame[100:].rename(columns={"price": "cost"}).to_csv(folder / "renamed.csv", index=False)
    frame[:100].drop(columns="price").to_csv(folder / "labels.csv", index=False)
    before = Path.cwd()
    os.chdir(folder)
    asked = ["--n-hidden", "30", "--quiet", "--json"]
    assert run(["fit", "rows.csv", "-t", "price", "-o", "m.skops", "--report", "fit.html", *asked]) == FINE
    assert run(["fit", "labels.csv", "-t", "kind", "-o", "k.skops", *asked]) == FINE
    os.chdir(before)
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def told(capsys, *command, code=FINE):
    capsys.readouterr()
    assert run([*command, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_columns_that_matter_are_printed_by_fit_and_kept_in_the_model(here, capsys):
    found = told(capsys, "fit", "rows.csv", "-t", "price", "-o", "again.skops", "--n-hidden", "30")
    assert {line["column"] for line in found["importance"][:2]} == {"size", "town"}
    model = load_model("again.skops")
    assert model.assessment_["importance"] == found["importance"]
    assert "Which columns matter? " in str(model.summary())
    assert run(["fit", "rows.csv", "-t", "price", "-o", "again.skops", "--n-hidden", "30"]) == FINE
    assert "Which columns matter?" in capsys.readouterr().out
    assert run(["inspect", "again.skops"]) == FINE
    assert "columns that matter most" in capsys.readouterr().out


def test_fit_writes_the_page_at_once(here, capsys):
    page = Path("fit.html").read_text(encoding="utf-8")
    assert page.index("How good is it?") < page.index("Which columns matter?") < page.index("The laboratory of γ")
    assert run(["fit", "rows.csv", "-t", "price", "-o", "x.skops", "--report", "x.html", "--test", "0"]) == USAGE
    assert "held-out rows" in capsys.readouterr().err
    assert not Path("x.html").exists()
    assert run(["fit", "rows.csv", "-t", "price", "-o", "x.skops", "--report", "x.pdf"]) == OUTPUT
    assert not Path("x.skops").exists()


def test_columns_are_ranked_on_new_rows(here, capsys):
    found = told(capsys, "explain", "m.skops", "new.csv")
    assert set(found["ranking"]["columns"][:2]) == {"size", "town"}
    assert found["n_rows"] == N - 100
    assert run(["explain", "m.skops", "new.csv"]) == FINE
    out = capsys.readouterr().out
    assert out.startswith("new.csv: 60 rows, 4 columns used.")
    assert out.index("size") < out.index("noise")
    labels = told(capsys, "explain", "k.skops", "labels.csv")
    assert labels["task"] == "classification"
    assert labels["ranking"]["scoring"] == "neg_log_loss"


def test_the_target_may_have_another_name(here, capsys):
    assert told(capsys, "explain", "m.skops", "renamed.csv", "--target", "cost") | {"data": ""} == told(
        capsys, "explain", "m.skops", "new.csv"
    ) | {"data": "", "title": "renamed.csv: m.skops"}


def test_one_row_is_explained_without_a_target(here, capsys):
    Path("inputs.csv").write_text("town,size,tail,noise\nOslo,3,0,0\nBergen,9,,0.5\n", encoding="utf-8")
    for row in (1, 2):
        found = told(capsys, "explain", "m.skops", "inputs.csv", "--row", str(row))
        assert found["base"] + sum(one["added"] for one in found["contributions"]) == pytest.approx(found["explained"])
        assert found["prediction"] == pytest.approx(found["explained"], rel=1e-5)
        assert {one["column"] for one in found["contributions"]} == {"size", "town", "noise", "tail"}
    assert next(one["value"] for one in found["contributions"] if one["column"] == "tail") == "(gap)"
    assert run(["explain", "m.skops", "inputs.csv", "--row", "1"]) == FINE
    assert "Row 1 of inputs.csv" in capsys.readouterr().out
    label = told(capsys, "explain", "k.skops", "inputs.csv", "--row", "2")
    assert label["prediction"] == label["output"] == "dear"


def test_the_reasons_of_a_row_add_up_where_the_layer_has_seen_the_targets(here, capsys):
    asked = ["--weight-init", "trees", "--gamma", "kfold", "--n-hidden", "30", "--quiet"]
    assert run(["fit", "labels.csv", "-t", "kind", "-o", "trees.skops", *asked]) == FINE
    found = told(capsys, "explain", "trees.skops", "new.csv", "--row", "2")
    assert found["scale"] == "log-odds"
    assert found["base"] + sum(one["added"] for one in found["contributions"]) == pytest.approx(found["explained"])


def test_a_row_and_a_page_may_be_asked_for_together(here, capsys):
    assert run(["explain", "m.skops", "new.csv", "--row", "3", "--report", "page.html"]) == FINE
    out = capsys.readouterr().out
    assert "Row 3 of new.csv" in out
    assert "page.html holds the report." in out
    assert "Where is it wrong?" in Path("page.html").read_text(encoding="utf-8")


def test_rows_without_a_target_are_left_out(here, capsys):
    lines = Path("new.csv").read_text(encoding="utf-8").splitlines()
    gap = ",".join(lines[1].split(",")[:-1]) + ","
    Path("gaps.csv").write_text("\n".join([lines[0], gap, *lines[2:]]) + "\n", encoding="utf-8")
    assert run(["explain", "m.skops", "gaps.csv"]) == FINE
    assert "Left out: 1 row without a target." in capsys.readouterr().out
    # Numbers of rows are those of the file.
    assert min(row["row"] for row in told(capsys, "explain", "m.skops", "gaps.csv")["worst"]) >= 2


def test_of_a_long_file_a_sample_is_read(here, capsys, monkeypatch):
    monkeypatch.setattr("ocrep.report.examination.MOST_ROWS", 20)
    found = told(capsys, "explain", "m.skops", "new.csv")
    assert found["n_rows"] == 20
    assert {row["row"] for row in found["worst"]} <= set(range(1, 61))


def test_networks_trained_in_python_are_explained_by_their_names(here, capsys):
    frame = pandas.read_csv("rows.csv")
    X = frame[["size", "noise"]]
    save_model(PinvRegressor(20, random_state=0).fit(X, frame["price"]), "network.skops")
    found = told(capsys, "explain", "network.skops", "new.csv", "--target", "price")
    assert found["ranking"]["columns"][0] == "size"
    assert run(["explain", "network.skops", "new.csv"]) == USAGE
    assert "give --target" in capsys.readouterr().err
    save_model(PinvRegressor(20, random_state=0).fit(X.to_numpy(), frame["price"]), "bare.skops")
    assert run(["explain", "bare.skops", "new.csv", "-t", "price"]) == USAGE


def test_another_estimator_behind_a_coder_is_explained_but_for_single_rows(here, capsys):
    frame = pandas.read_csv("rows.csv")
    save_model(TableRegressor(Ridge()).fit(frame.drop(columns="price"), frame["price"]), "ridge.skops")
    found = told(capsys, "explain", "ridge.skops", "new.csv", "--target", "price")
    assert set(found["ranking"]["columns"][:2]) == {"size", "town"}
    assert found["worst"][0]["reasons"] == []
    assert run(["explain", "ridge.skops", "new.csv", "-t", "price", "--report", "ridge.html"]) == FINE
    assert "ridge.html holds the report." in capsys.readouterr().out
    assert run(["explain", "ridge.skops", "new.csv", "--row", "1"]) == USAGE
    assert "reads the layers of a network" in capsys.readouterr().err


BAD = {
    "a column is missing": ("town,noise,tail,price\nOslo,1,2,3\n", [], DATA, "no column 'size'"),
    "no target": ("size,town,noise,tail\n1,Oslo,1,2\n", [], DATA, "has no column 'price'"),
    "another target": ("size,town,noise,tail,price\n1,Oslo,1,2,3\n", ["-t", "prize"], DATA, "has no column 'prize'"),
    "an input as target": ("size,town,noise,tail,price\n1,Oslo,1,2,3\n", ["-t", "size"], USAGE, "is an input"),
    "one row": ("size,town,noise,tail,price\n1,Oslo,1,2,3\n", [], DATA, "--row NUMBER to explain one prediction"),
    "one target": ("size,town,noise,tail,price\n" + "1,Oslo,1,2,3\n" * 9, [], DATA, "different targets"),
    "no targets": ("size,town,noise,tail,price\n1,Oslo,1,2,\n", [], DATA, "no row with a target"),
    "no rows": ("size,town,noise,tail,price\n", [], DATA, "no rows"),
    "a row too many": ("size,town,noise,tail\n1,Oslo,1,2\n", ["--row", "2"], DATA, "no row 2"),
    "row zero": ("size,town,noise,tail\n1,Oslo,1,2\n", ["--row", "0"], USAGE, "--row"),
    "text for numbers": ("size,town,noise,tail,price\nbig,Oslo,1,2,3\n", [], DATA, "size"),
}


@pytest.mark.parametrize(("text", "more", "code", "words"), BAD.values(), ids=BAD)
def test_what_cannot_be_explained_is_said_in_one_line(text, more, code, words, here, capsys):
    Path("bad.csv").write_text(text, encoding="utf-8")
    assert run(["explain", "m.skops", "bad.csv", *more, "--report", "bad.html"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ocrep: ")
    assert err.count("\n") == 1
    assert words in err
    assert not Path("bad.html").exists()
    assert run(["explain", "none.skops", "new.csv"]) == MODEL


def test_columns_that_do_not_vary_leave_an_answer(here, capsys):
    pandas.read_csv("new.csv").assign(town="Oslo", noise=None).to_csv("flat.csv", index=False)
    found = told(capsys, "explain", "m.skops", "flat.csv")
    fallen = dict(zip(found["ranking"]["columns"], found["ranking"]["importance"], strict=True))
    assert found["ranking"]["columns"][0] == "size"
    assert all(abs(fall) < 1e-9 for name, fall in fallen.items() if "size" not in name and "tail" not in name)
    assert {one["column"] for one in found["effects"]} <= {"size", "tail"}


def test_a_label_that_is_not_one_of_training_counts_as_none_of_them(tmp_path, monkeypatch, capsys, rng):
    monkeypatch.chdir(tmp_path)
    x = rng.normal(size=120)
    found = {}
    for name, labels in (("number", np.array([0, 1])), ("truth", np.array([False, True]))):
        frame = pandas.DataFrame({"x": x, "z": rng.normal(size=120), "y": labels[(x > 0).astype(int)]})
        frame.to_parquet(f"{name}.parquet")
        asked = ["-t", "y", "-o", f"{name}.skops", "--n-hidden", "5", "--test", "0", "--quiet"]
        assert run(["fit", f"{name}.parquet", *asked]) == FINE
        for odd in ("1.5", "7", "maybe"):
            frame.assign(y=frame["y"].astype(str).where(np.arange(120) >= 30, odd)).to_csv("odd.csv", index=False)
            code = run(["explain", f"{name}.skops", "odd.csv", "--json"])
            out, err = capsys.readouterr()
            found[name, odd] = json.loads(out[out.index("{") :])["goodness"]["confusion"] if code == FINE else err
    assert found["number", "1.5"] == found["number", "7"]
    assert len(found["number", "7"]) == 3  # 0, 1 and the label that training did not have
    assert "must hold the labels of training, which are numbers" in found["number", "maybe"]
    assert "must hold True or False, the labels of training, and not 'maybe'" in found["truth", "maybe"]
