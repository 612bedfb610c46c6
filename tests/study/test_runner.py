"""The study's runner: resumable, deterministic, alone in its folder; and its experiments against separate fits."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.tiny_study import TINY

from ocrep import PinvClassifier, PinvRegressor, study
from ocrep._linalg.fold_plan import FoldPlan
from ocrep.datasets import load
from ocrep.literature import PrunedELMRegressor, RELMClassifier
from ocrep.study import runner
from ocrep.study.experiments import Job, run_job, split_of
from ocrep.study.protocol import rules_for


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the whole tiny study, by one worker."""
    folder = tmp_path_factory.mktemp("study")
    study.run(TINY, folder, n_jobs=1, progress=True)
    study.report(folder)
    return folder


def results(folder):
    """The results without their timings."""
    lines = {}
    for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(line)
        lines[line["key"]] = line["records"]
    return lines


def test_the_number_of_workers_changes_no_byte(finished, tmp_path):
    study.run(TINY, tmp_path, n_jobs=2)
    assert results(tmp_path) == results(finished)
    assert study.report(tmp_path).read_bytes() == (finished / "report.md").read_bytes()


def test_nothing_is_repeated(finished, monkeypatch):
    monkeypatch.setattr(runner, "_work", lambda *args: pytest.fail("a finished job was run again"))
    before = (finished / "results.jsonl").read_bytes()
    records = study.run(TINY, finished, n_jobs=1)
    assert (finished / "results.jsonl").read_bytes() == before
    assert records == study.read(finished)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from support.tiny_study import TINY
from ocrep import study
study.run(TINY, {folder!r}, n_jobs=2)
"""


def test_a_killed_run_goes_on_where_it_stopped(finished, tmp_path):
    code = SCRIPT.format(tests=str(Path(__file__).parents[1]), folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    results_file = tmp_path / "results.jsonl"
    until = time.monotonic() + 120
    while not (results_file.exists() and results_file.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None, "the run ended without results"
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # However far it came on a fast machine: the first two jobs are kept, and the next line was cut off.
    kept = b"".join(results_file.read_bytes().splitlines(keepends=True)[:2])
    results_file.write_bytes(kept + b'{"key": "fixed/ir')
    study.run(TINY, tmp_path, n_jobs=1)
    assert results_file.read_bytes().startswith(kept)
    assert results(tmp_path) == results(finished)
    assert study.report(tmp_path).read_bytes() == (finished / "report.md").read_bytes()


def test_two_runs_do_not_share_a_folder(finished):
    with runner._alone(finished), pytest.raises(RuntimeError, match="Another run"):
        study.run(TINY, finished)


@pytest.mark.parametrize("change", [{"reference_draws": 3}, {"name": "other"}])
def test_another_protocol_is_refused_by_name(finished, change):
    with pytest.raises(ValueError, match=f"protocol.{next(iter(change))} is .* use another folder"):
        study.run(dataclasses.replace(TINY, **change), finished)


def test_another_version_is_refused(finished, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    about = study.about(folder)
    about["versions"]["ocrep"] = "0.0.1"
    (folder / "about.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"versions.ocrep is .* now and was '0.0.1' then"):
        study.run(TINY, folder)


def test_a_missing_data_set_is_named_and_the_others_run(tmp_path, monkeypatch):
    monkeypatch.setenv("OCREP_DATA", str(tmp_path / "nowhere"))
    protocol = dataclasses.replace(TINY, data_sets=("delta_ailerons", "iris"), reference_draws=1, further_splits=0)
    records = study.run(protocol, tmp_path / "out", n_jobs=1)
    assert {record["data"] for record in records} == {"iris"}
    text = study.report(tmp_path / "out").read_text(encoding="utf-8")
    assert "set OCREP_DATA to a folder" in text
    assert str(tmp_path) not in text


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="choose another folder"):
        study.run(TINY, tmp_path / "file" / "inside")
    monkeypatch.setattr(runner.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(OSError, match="MB are free"):
        study.run(TINY, tmp_path / "full")


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no study"):
        study.report(tmp_path)
    with pytest.raises(ValueError, match="Did you mean 'quick'"):
        study.run("quik", tmp_path)


@pytest.mark.parametrize("name", ["machine_cpu", "iris"])
def test_fixed_sizes_equal_separate_fits(name):
    data, job = load(name), Job(1, 2, name, "fixed")
    records = run_job(job, data, TINY)
    X, X_test, y, y_test = split_of(data, 1)
    kind = PinvRegressor if data.task == "regression" else PinvClassifier
    for record in records:
        rule = rules_for(data.task)[record["method"]]
        model = kind(record["n_hidden"], gamma=rule, random_state=1002).fit(X, y)
        wrong = model.predict(X_test) - y_test
        error = np.sqrt(np.mean(wrong**2)) if data.task == "regression" else 100 * np.mean(wrong != 0)
        assert record["error"] == pytest.approx(error, rel=1e-4)
        assert record["gamma"] == pytest.approx(model.gamma_, rel=1e-4)
        assert record["condition"] == pytest.approx(model.regularized_condition_number_, rel=1e-4)
    assert {record["n_hidden"] for record in records} == {6, 9}


@pytest.mark.parametrize("name", ["machine_cpu", "iris"])
def test_the_path_chooses_by_validation_on_the_folds(name):
    data = load(name)
    records = {r["method"]: r for r in run_job(Job(0, 0, name, "path"), data, TINY)}
    X, _X_test, y, _y_test = split_of(data, 0)
    kind = PinvRegressor if data.task == "regression" else PinvClassifier
    fold = FoldPlan().of(X)
    scale = (X.min(axis=0), X.max(axis=0))
    for size, cv_error in zip(records["ocrep"]["sizes"], records["ocrep"]["cv_errors"], strict=True):
        lost = 0.0
        for v in range(3):
            rule = rules_for(data.task)["ocrep"]
            model = kind(size, gamma=rule, input_scaling=scale, random_state=0).fit(X[fold != v], y[fold != v])
            wrong = model.predict(X[fold == v]) - y[fold == v]
            lost += np.sum(wrong**2) if data.task == "regression" else np.sum(wrong != 0)
        assert cv_error == pytest.approx(lost / len(X), rel=1e-6)
    for record in records.values():
        best = int(np.argmin(record["cv_errors"]))
        assert (record["n_hidden"], record["error"]) == (record["sizes"][best], record["test_errors"][best])


def test_the_literature_runs_as_published():
    protocol = dataclasses.replace(TINY, literature=("pruned_elm", "relm"))
    for name, method, estimator in (
        ("machine_cpu", "pruned_elm", PrunedELMRegressor),
        ("iris", "relm", RELMClassifier),
    ):
        data = load(name)
        (record,) = run_job(Job(1, 0, name, "literature"), data, protocol)
        X, X_test, y, y_test = split_of(data, 1)
        model = estimator(random_state=1000).fit(X, y)
        wrong = model.predict(X_test) - y_test
        error = np.sqrt(np.mean(wrong**2)) if data.task == "regression" else 100 * np.mean(wrong != 0)
        assert (record["method"], record["n_hidden"]) == (method, model.n_hidden_)
        assert record["error"] == pytest.approx(error)


def test_a_rule_that_does_not_apply_is_recorded_with_its_reason():
    protocol = dataclasses.replace(TINY, fixed_sizes=(("housing", (400,)),))
    records = run_job(Job(1, 0, "housing", "fixed"), load("housing"), protocol)
    refused = {record["method"]: record["reason"] for record in records if record["error"] is None}
    assert set(refused) == {"kibria", "hoerl_kennard"}
    assert all("observations" in reason for reason in refused.values())


def test_the_curve_and_the_peak_are_there(finished):
    records = study.read(finished)
    curves = [r for r in records if r["kind"] == "curve"]
    assert {r["data"] for r in curves} == {"iris", "machine_cpu"}
    assert all(r["split"] == 0 and len(r["gammas"]) == len(r["errors"]) == 16 for r in curves)
    peaks = [r for r in records if r["kind"] == "peak" and r["data"] == "iris"]
    assert {r["n_hidden"] for r in peaks} >= {105, 210}
