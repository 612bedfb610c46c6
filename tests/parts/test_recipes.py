"""The recipes of docs/parts.md: job arrays as plain processes, three parties, and the page itself."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.pages import run_page
from support.problems import smooth_problem

from ocrep import PinvClassifier, PinvRegressor, TikhonovClassifier, load_model, scan

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _examples_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))


def job(*arguments):
    script = ROOT / "examples" / "parts_job_array.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, encoding="utf-8")


def test_a_job_array_of_processes_gives_the_model_of_fit(tmp_path):
    X, y = smooth_problem(600, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["target"] = np.where(y > 0.2, "yes", "no")
    for number, rows in enumerate((frame[:150], frame[150:500], frame[500:])):
        rows.to_csv(tmp_path / f"rows-{number}.csv", index=False)
    recipe = import_module("parts_job_array")
    for command, others in (("survey", (1, 2)), ("part", (2, 2))):
        done = job(command, 0, tmp_path)
        assert done.returncode == 0, done.stderr
        for number in others:  # in this process, which is faster
            recipe.main(command, number, tmp_path)
    lost = job("finish", tmp_path)
    assert lost.returncode
    assert "Part 1 is missing" in lost.stderr
    assert not (tmp_path / "model.ocrep").exists()
    recipe.main("part", 1, tmp_path)
    assert "from 3 parts" in job("finish", tmp_path).stdout

    found = load_model(tmp_path / "model.ocrep")
    fitted = recipe.MODEL.fit(scan(str(tmp_path / "rows-*.csv"), target="target"))
    np.testing.assert_allclose(found.gamma_, fitted.gamma_, rtol=1e-5)
    new, fitted = frame[list("abcd")][:50], fitted.with_gamma(found.gamma_)
    expected = fitted.decision_function(new)
    np.testing.assert_allclose(found.decision_function(new), expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (PinvRegressor(50, random_state=0, gamma="kfold"), False),
        (PinvClassifier(50, random_state=0, gamma="ocrep_cv", class_weight="balanced"), True),
        (TikhonovClassifier(gamma="gcv", store_folds=5), True),
    ],
)
def test_three_parties_give_the_model_of_all_rows(model, labels):
    federated = import_module("parts_federated")
    X, y = smooth_problem(900, 4)
    y = (y > 0).astype(int) + (y > 1) if labels else y
    order = np.argsort(X[:, 0])  # rows that are not alike
    parties = [federated.Party(i, X[rows], y[rows]) for i, rows in enumerate(np.array_split(order, 3))]
    found, fitted = federated.train(model, parties), model.fit(X, y)
    np.testing.assert_allclose(found.gamma_, fitted.gamma_, rtol=1e-5)
    found, fitted = (some.with_gamma(fitted.gamma_) for some in (found, fitted))
    answer = "decision_function" if labels else "predict"
    expected = getattr(fitted, answer)(X)
    np.testing.assert_allclose(getattr(found, answer)(X), expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))


def test_the_federated_example_runs(capsys):
    together, whole = import_module("parts_federated").main()
    assert "by fit on all rows" in capsys.readouterr().out
    np.testing.assert_allclose(together.gamma_, whole.gamma_, rtol=1e-5)


def test_the_page_runs_as_it_is_written(capsys):
    assert run_page("docs/parts.md", capsys) >= 2


def test_the_page_shows_the_recipes_that_are_tested():
    page = (ROOT / "docs" / "parts.md").read_text(encoding="utf-8")
    for name in ("parts_job_array", "parts_federated", "parts_spark"):
        assert f"examples/{name}.py" in page
