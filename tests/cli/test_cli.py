"""Every command of the real program on the bundled sets, as CSV and as Parquet."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.program import ocrep, ocrep_many

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    __version__,
    load_model,
    rules,
    save_model,
)
from ocrep._files.writing import table_writer
from ocrep.analysis.assessment import Assessment
from ocrep.cli import main, printing
from ocrep.cli.running import DATA, MEANING, PIPE, run
from ocrep.datasets import info, load

BUNDLED = [record for record in info() if record.bundled]
HEAVY = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "skops", "jinja2"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All bundled sets as files, a small model for each of them and each format, and their predictions."""
    here = tmp_path_factory.mktemp("program")
    fits = [
        [
            *f"fit {record.name}.{form} --target target --out {record.name}.{form}.skops".split(),
            *("--n-hidden", "20", "--json"),
        ]
        for record in BUNDLED
        for form in ("csv", "parquet")
    ]
    predictions = [
        f"predict {record.name}.{form}.skops {record.name}.{other} --out {record.name}.{form}.pred.{out}".split()
        for record in BUNDLED
        for form, other, out in (("csv", "parquet", "csv"), ("parquet", "csv", "parquet"))
    ]
    exports = [["datasets", "--export", "."], ["datasets", "--export", ".", "--format", "parquet", "--json"]]
    outcomes = ocrep_many([*exports, *fits, *predictions], cwd=here)
    assert [(outcome.code, outcome.err) for outcome in outcomes] == [(0, "")] * len(outcomes)
    assert outcomes[0].out.split() == [f"{record.name}.csv" for record in BUNDLED]
    assert json.loads(outcomes[1].out) == {"files": [f"{record.name}.parquet" for record in BUNDLED]}
    results = [json.loads(outcome.out) for outcome in outcomes[2 : 2 + len(fits)]]
    (here / "fits.json").write_text(json.dumps(results))
    assert outcomes[2 + len(fits)].out == "abalone.csv.pred.csv holds the predictions of 4,177 rows.\n"
    return here


def test_help_answers_without_the_numerical_libraries():
    script = """
import sys
from ocrep.cli import main
for arguments in (["--help"], ["fit", "--help"], ["--version"], ["fit", "a", "-t", "y", "-o", "m", "--gamma", "-1"]):
    sys.argv = ["ocrep", *arguments]
    try:
        main()
    except SystemExit as end:
        print("code", end.code)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *text, modules = done.stdout.splitlines()
    assert not HEAVY & set(modules.split())
    shown = "\n".join(text)
    assert [line for line in text if line.startswith("code")] == ["code 0"] * 3 + ["code 2"]
    assert f"ocrep {__version__}" in text
    for word in ("fit", "predict", "diagnose", "compare", "datasets", "export", "inspect", "130 interrupted"):
        assert word in shown


def test_models_are_read_without_torch_and_dask(folder):
    script = (
        "import sys\nfrom ocrep import load_model\nload_model('iris.csv.skops')\n"
        "print('seen', *({'torch', 'dask'} & set(sys.modules)))\n"
        "assert not [name for name, module in sys.modules.items() if module is None and 'sklearn' in name]"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder)
    assert done.stdout == "seen\n"


def test_completion_knows_the_rules():
    for typed in ("", "ocrep"):
        asked = {"_OCREP_COMPLETE": "complete_bash", "COMP_WORDS": f"ocrep fit --gamma {typed}", "COMP_CWORD": "3"}
        assert ocrep(env=asked).out.split() == [name for name in rules.names() if name.startswith(typed)]


def test_fit_says_the_same_of_csv_and_parquet(folder):
    results = json.loads((folder / "fits.json").read_text())
    for record, csv, parquet in zip(BUNDLED, results[::2], results[1::2], strict=True):
        assert csv["task"] == parquet["task"] == record.task
        same = {"scores", "gamma", "rank", "condition_number", "regularized_condition_number", "inputs", "left_out"}
        assert {key: csv[key] for key in same} == {key: parquet[key] for key in same}
        assert csv["n_train"] + csv["n_test"] == record.n_rows
        assert csv["n_test"] == np.ceil(0.3 * record.n_rows)
        error = "rmse" if record.task == "regression" else "error"
        assert csv["scores"][error] < csv["scores"][f"baseline_{error}"]
        assert csv["assessment"]["models"] == parquet["assessment"]["models"]
        assert csv["regularized_condition_number"] <= csv["condition_number"]


def test_predictions_are_those_of_the_saved_pipeline(folder):
    for record in BUNDLED:
        frame = load(record.name, as_frame=True).data
        wanted = load_model(folder / f"{record.name}.csv.skops").predict(frame)
        for predicted in (
            pd.read_csv(folder / f"{record.name}.csv.pred.csv"),
            pd.read_parquet(folder / f"{record.name}.parquet.pred.parquet"),
        ):
            if record.task == "regression":
                assert list(predicted.columns) == ["prediction"]
                np.testing.assert_allclose(predicted["prediction"], wanted, rtol=1e-5)
            else:
                assert list(predicted["prediction"].astype(str)) == list(wanted.astype(str))
                assert list(predicted.columns[1:]) == [
                    f"probability_{label}" for label in np.unique(wanted.astype(str))
                ]
                np.testing.assert_allclose(predicted[predicted.columns[1:]].sum(axis=1), 1.0, rtol=1e-4)


def test_rows_are_matched_by_name(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    frame = pd.read_csv("wine.csv")
    frame.insert(0, "id", [f"{row:04d}" for row in range(len(frame))])
    frame["unused"] = "any text"
    frame[frame.columns[::-1]].to_csv("turned.csv", index=False)
    assert run(["predict", "wine.csv.skops", "turned.csv", "--id", "id", "--out", "turned.tsv.gz"]) == 0
    assert run(["predict", "wine.csv.skops", "wine.csv", "--out", "plain.feather"]) == 0
    turned = pd.read_csv("turned.tsv.gz", sep="\t", dtype=str)
    assert list(turned["id"]) == list(frame["id"])
    assert list(turned["prediction"]) == list(pd.read_feather("plain.feather")["prediction"].astype(str))


def test_probabilities_and_intervals(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(["predict", "iris.csv.skops", "iris.csv", "--proba", "--out", "p.parquet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"predictions": "p.parquet", "rows": 150, "rows_unlike_training": 0, "columns_unlike_training": {}}
    table = pd.read_parquet("p.parquet")
    probabilities = table.filter(like="probability_")
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert list(probabilities.idxmax(axis=1)) == [f"probability_{label}" for label in table["prediction"]]
    widths = []
    for share in ("0.5", "0.9"):
        asked = ["predict", "housing.csv.skops", "housing.parquet", "--interval", share, "--out", "s.csv"]
        assert run(asked) == 0
        found = pd.read_csv("s.csv")
        assert list(found.columns) == ["prediction", "lower", "upper"]
        assert ((found["lower"] < found["prediction"]) & (found["prediction"] < found["upper"])).all()
        target = pd.read_parquet("housing.parquet")["target"]
        assert target.between(found["lower"], found["upper"]).mean() > float(share) - 0.05
        widths.append((found["upper"] - found["lower"]).mean())
    assert widths[0] < widths[1]


def test_ids_of_training_are_kept_and_rows_go_to_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(0, 1, 50)
    pd.DataFrame({"name": [f"00{i}" for i in range(50)], "x": x, "y": x**2}).to_csv("d.csv", index=False)
    assert run(["fit", "d.csv", "-t", "y", "-o", "m.skops", "--id", "name", "--n-hidden", "5", "--test", "0"]) == 0
    assert "not measured" not in capsys.readouterr().out
    assert run(["predict", "m.skops", "d.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name,prediction"
    assert lines[1].startswith("000,")
    assert len(lines) == 51
    pd.DataFrame({"x": x}).to_csv("without.csv", index=False)
    assert run(["predict", "m.skops", "without.csv"]) == 0
    assert capsys.readouterr().out.startswith("prediction\n")


def test_rows_unlike_those_of_training_are_predicted_and_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    colours = ["red", "blue"] * 10
    pd.DataFrame({"c": colours, "x": range(20), "y": np.arange(20) * 1.5}).to_csv("d.csv", index=False)
    pd.DataFrame({"c": ["green", "pink", "red", "red"], "x": [1, 1, 1, 1e9]}).to_csv("new.csv", index=False)
    assert run(["fit", "d.csv", "-t", "y", "-o", "m.skops", "--n-hidden", "5", "--no-refit"]) == 0
    assert "trained on 14 rows" in capsys.readouterr().out
    assert run(["predict", "m.skops", "new.csv"]) == 0
    out, err = capsys.readouterr()
    header, *rows = out.splitlines()
    assert header == "prediction"
    assert len(rows) == 4
    assert rows[0] == rows[1]
    assert np.isfinite(np.array(rows, dtype=float)).all()
    assert err.startswith("Note: 3 rows of 4 ")
    assert "c (2), x (1)" in err
    assert err.count("\n") == 1
    assert run(["predict", "m.skops", "new.csv", "--quiet"]) == 0
    assert capsys.readouterr() == (out, "")
    assert run(["predict", "m.skops", "new.csv", "--out", "p.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows_unlike_training"], told["columns_unlike_training"]) == (3, {"c": 2, "x": 1})


def test_what_fit_prints(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    frame = pd.read_csv("abalone.csv").assign(day="2020-01-01", nothing="", same=1, colour=["red", ""] * 2088 + ["red"])
    frame.loc[:2, "target"] = np.nan
    frame.loc[:9, "length"] = frame.loc[:99, "height"] = np.nan
    frame.to_csv("odd.csv", index=False)
    assert run(["fit", "odd.csv", "-t", "target", "-o", "odd.skops", "--n-hidden", "20", "--drop-missing-target"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "odd.csv: 4,174 rows, 9 columns used." in out
    assert re.search(r"\n colour +category +0/1 columns +\d +2,087\n", out)
    assert re.search(r"\n length +number +as it is +\d +7\n", out)  # three of ten gaps are in rows without a target
    assert "Task: regression of 'target' (the target holds 28 different numbers; --task changes it)." in out
    assert "Not used: day (is constant), nothing (is empty), same (is constant)." in out
    assert "Left out: 3 rows without a target." in out
    for word in ("held-out rows", "RMSE", "baseline (mean)", "linear model", "gradient boosting", "γ", "rank", "time"):
        assert word in out
    assert "Is it good?" in out
    assert out.splitlines()[-1] == "odd.skops holds the model, trained on all 4,174 rows."


def test_the_model_is_a_stack_unless_one_network_is_described(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    asked = ["fit", "iris.csv", "-t", "target", "-o", "stack.skops", "--candidates", "quick"]
    assert run(asked) == 0
    out = capsys.readouterr().out
    network = load_model("stack.skops").model_
    assert re.search(rf"model +a stack of {sum(network.weights_ > 0)} of {len(network.weights_)} networks", out)
    assert run([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["weights"] == pytest.approx(network.weights_)
    assert told["gamma"] is None
    assert told["assessment"]["verdict"]["code"] == "good"
    assert " ".join(told["assessment"]["verdict"]["answer"].split()) in " ".join(out.split())
    assert run(["inspect", "stack.skops", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["assessment"]["models"] == told["assessment"]["models"]
    assert shown["network"]["weights"] == told["weights"]
    assert json.loads((folder / "fits.json").read_text())[0]["weights"] is None  # one network


def test_library_and_program_have_the_same_defaults(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    wanted = {
        ("iris", "--gamma gcv"): PinvClassifier(gamma="gcv", calibrate="loo", random_state=0),
        ("iris", "--candidates quick"): PinvClassifierCV("quick", random_state=0),
        ("housing", "--activation relu"): PinvRegressor(activation="relu", calibrate="loo", random_state=0),
        ("housing", "--candidates quick"): PinvRegressorCV("quick", calibrate="loo", random_state=0),
    }
    for (name, options), estimator in wanted.items():
        assert run(["fit", f"{name}.csv", "-t", "target", "-o", "d.skops", "--test", "0", *options.split()]) == 0
        assert load_model("d.skops").model_.get_params() == estimator.get_params()


def test_a_number_for_gamma(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert (
        run(["fit", "iris.csv", "-t", "target", "-o", "zero.skops", "--n-hidden", "9", "--gamma", "0", "--seed", "1"])
        == 0
    )
    out = capsys.readouterr().out
    assert "0 (not regularized)" in out
    assert "baseline (majority class)" in out


def test_inspect(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(["inspect", "housing.csv.skops"]) == 0
    out = capsys.readouterr().out
    for word in (__version__, "PinvRegressor", "target (regression)", "CRIM (number)", "RMSE", "ocrep", "20"):
        assert word.lower() in out.lower()
    network = load_model("housing.csv.skops").model_
    assert out.endswith(f"\n{network.summary()}\n")
    assert run(["inspect", "housing.csv.skops", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["target"] == "target"
    assert about["inputs"]["CRIM"] == "number"
    assert about["network"]["gamma"] == network.gamma_
    assert about["summary"]["sections"]["data"]["Inputs"] == "13"


def test_export(folder, monkeypatch, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(folder)
    frame = load("housing", as_frame=True).data
    model = PinvRegressor(20, random_state=0).fit(frame, load("housing").target)
    save_model(model, "network.skops")
    assert run(["export", "network.skops", "housing.onnx", "--double"]) == 0
    assert capsys.readouterr().out == "housing.onnx holds the model as an ONNX graph in float64.\n"
    session = onnxruntime.InferenceSession("housing.onnx")
    (one,) = session.get_inputs()
    (got,) = session.run(["variable"], {one.name: frame.to_numpy()})
    np.testing.assert_allclose(got[:, 0], model.predict(frame), rtol=1e-9, atol=1e-9)
    assert run(["export", "network.skops", "housing.onnx", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dtype"] == "float32"


def test_diagnose_judges_the_model_that_fit_would_save(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    asked = ["wine.parquet", "--target", "target", "--candidates", "quick"]
    assert run(["fit", *asked, "--out", "wine.skops", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert run(["diagnose", *asked, "--report", "report.html"]) == 0
    out = capsys.readouterr().out
    assert out.index("Is it good?") < out.index("Which rule should I use?")
    assert "report.html holds the report." in out
    assert "<html" in Path("report.html").read_text(encoding="utf-8")[:500]
    assert run(["diagnose", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["title"] == "wine.parquet: target"
    assert found["n_test"] == 54
    assert found["goodness"]["models"] == told["assessment"]["models"]
    assert found["goodness"]["finding"]["answer"] == told["assessment"]["verdict"]["answer"]


def test_compare(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for package in ("lightgbm", "catboost"):  # they may be installed or not
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("ocrep.tables.comparison.find_spec", lambda name: None)
    asked = ["compare", "iris.csv", "--target", "target", "--candidates", "quick", "--splits", "3"]
    assert run([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [method["mean"] for method in found["methods"]] == sorted(method["mean"] for method in found["methods"])
    usual = {"network", "linear model", "gradient boosting"}
    assert {method["name"] for method in found["methods"]} == usual
    assert all(len(method["errors"]) == 3 for method in found["methods"])
    assert run([*asked, "--json", "--all"]) == 0
    every = json.loads(capsys.readouterr().out)
    of_rules = {f"γ by {name}" for name in rules.names()}
    assert {m["name"] for m in every["methods"]} | set(every["not_applicable"]) == {*of_rules, *usual, "ELM", "RELM"}
    of_fit = [next(m["errors"] for m in one["methods"] if m["name"] == "network") for one in (found, every)]
    assert of_fit[0] == of_fit[1]
    assert run([*asked, "--all"]) == 0
    out = capsys.readouterr().out
    assert "quasi_optimality" in out
    assert "Not applicable here: " in out
    assert out.splitlines()[-1] == every["advice"]


def test_the_list_of_data_sets(capsys):
    assert run(["datasets"]) == 0
    out = capsys.readouterr().out
    assert all(record.name in out and f"{record.n_rows:,}" in out for record in info())
    assert run(["datasets", "iris", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["data_sets"]] == ["iris"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_exported_set_is_the_set(form, tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    assert run(["datasets", "wine", "housing", "--export", str(folder), "--format", form]) == 0
    assert capsys.readouterr().out.split() == [str(folder / f"{name}.{form}") for name in ("wine", "housing")]
    read = getattr(pd, f"read_{form}")
    wine, housing = load("wine"), load("housing")
    np.testing.assert_array_equal(read(folder / f"housing.{form}").to_numpy(), np.c_[housing.data, housing.target])
    table = read(folder / f"wine.{form}")
    assert table["target"].astype(str).tolist() == wine.target_names[wine.target].tolist()


def test_the_set_that_is_not_bundled(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OCREP_DATA", str(tmp_path))
    assert run(["datasets", "delta_ailerons", "--export", str(tmp_path), "--json"]) == DATA
    assert "delta_ailerons cannot be loaded" in capsys.readouterr().err


def test_the_widest_table_of_scores_fits_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    names = ("error", "balanced_accuracy", "roc_auc", "log_loss")
    models = {name: dict.fromkeys(names, 1.0) for name in ("network", "baseline (majority class)", "linear model")}
    printing.score_table(Assessment("classification", 60_000, models, ("a", "b"), None, ()))
    out = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert max(map(len, out.splitlines())) <= 80
    for words in ("on 60,000 held-out rows", "misclassified", "balanced accuracy", "ROC AUC", "log-loss", *models):
        assert words in out


@pytest.mark.parametrize("width", [30, 69, 70, 200])
def test_no_word_is_lost_on_a_narrow_terminal(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    words = [f"word{number}" for number in range(40)]
    printing.pairs([("a name of more than thirty letters", " ".join(words))])
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()  # without the marks of bold letters
    assert all(len(line) <= width for line in lines)
    assert [word for line in lines for word in line.split() if word.startswith("word")] == words


@pytest.mark.parametrize("more", [[], ["--quiet"]])
def test_without_a_terminal_a_line_now_and_then_tells_of_progress(more, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(printing, "SECONDS", 0.001)
    assert run(["fit", "iris.csv", "-t", "target", "-o", "m.skops", "--n-hidden", "20", "--json", *more]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["task"] == "classification"
    assert bool(err) != bool(more)
    assert all(line.startswith("ocrep: ") and line.endswith("(--quiet omits this)") for line in err.splitlines())


def test_progress_is_drawn_on_a_terminal(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert run(["fit", "abalone.csv", "-t", "target", "-o", "shown.skops", "--n-hidden", "20", "--json"]) == 0
    shown = capsys.readouterr()
    assert "Reading" in shown.err  # a stage that is over at once may not be drawn
    assert json.loads(shown.out)["task"] == "regression"


def test_a_reader_that_has_enough_ends_it_quietly(folder):
    frame = pd.concat([pd.read_csv(folder / "abalone.csv")] * 30)
    frame.to_csv(folder / "long.csv", index=False)
    script = "from ocrep.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "predict", "abalone.csv.skops", "long.csv"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"prediction\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == PIPE


def test_a_signal_to_stop_is_an_exception_so_that_half_written_files_are_removed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ocrep", "--version"])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="0"):
            main()
        with pytest.raises(SystemExit, match="143"):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def peak_of(folder, *arguments):
    # Not ru_maxrss, which begins with what the parent of a process held.
    script = (
        "import re, sys\nfrom pathlib import Path\nfrom ocrep.cli import main\ntry:\n    main()\n"
        "except SystemExit as end:\n    code = end.code\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) / 1024, code)"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    megabytes, code = done.stdout.split()[-2:]
    assert code == "0"
    return float(megabytes)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Only Linux tells the peak of a process.")
@pytest.mark.parametrize("form", [pytest.param("csv", marks=pytest.mark.slow), "parquet"])
@pytest.mark.parametrize(
    ("command", "times"),
    [
        # Up to some 200,000 rows the sample for medians grows, and what a reader of CSV holds in advance.
        (["fit", "ROWS", "-t", "target", "--n-hidden", "20", "--out", "o.skops"], (100, 400)),
        (["predict", "segment.csv.skops", "ROWS", "--out", "o.csv"], (6, 60)),
    ],
)
def test_many_times_the_rows_need_no_more_memory(command, times, form, folder):
    wide = pd.read_parquet(folder / "segment.parquet")
    peaks = []
    for n in times:
        with table_writer(folder / f"rows.{form}") as write:
            for _ in range(n):
                write(wide)
        peaks.append(peak_of(folder, *(f"rows.{form}" if word == "ROWS" else word for word in command)))
    some, many = peaks
    assert many < some + 60
    # Of which half is libraries; the sample that teaches the coder has up to 100,000 rows.
    assert many < 600


DOCS = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"


def test_the_page_tells_of_every_command_option_and_exit_code():
    page = DOCS.read_text(encoding="utf-8")
    for code, meaning in MEANING.items():
        assert f"| {code} | {meaning} |" in page
    import typer

    from ocrep.cli.app import app

    command = typer.main.get_command(app)
    for name, sub in command.commands.items():
        assert f"ocrep {name}" in page
        for parameter in sub.params:
            assert all(option in page for option in parameter.opts if option.startswith("--")), (name, parameter.opts)
