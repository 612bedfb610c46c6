"""The program on model files that were not written by `ocrep fit`: it uses them, or says why it cannot."""

import json

import numpy as np
import pandas as pd
import pytest

from ocrep import PinvRegressor, PinvRegressorCV, TikhonovRegressor, save_model
from ocrep.cli.running import FINE, USAGE, run
from ocrep.literature import ELMRegressor

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((60, 3)), columns=["a", "b", "c"])
Y = X[["a", "b"]].to_numpy() + RNG.standard_normal((60, 2))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X.to_csv("rows.csv", index=False)


def test_one_gamma_for_each_target_is_a_list_in_json(capsys):
    model = TikhonovRegressor(gamma=[0.5, 2.0]).fit(X, Y)
    save_model(model, "model.skops")
    assert run(["inspect", "model.skops", "--json"]) == FINE
    assert json.loads(capsys.readouterr().out)["network"]["gamma"] == [0.5, 2.0]


def test_candidates_of_any_kind_have_a_form_in_json(capsys):
    model = PinvRegressorCV([{"n_hidden": np.int64(4)}], random_state=0, ensemble=False).fit(X, Y[:, 0])
    model.cv_results_["params"][0]["kind"] = float  # no such parameter, but a file can hold it
    save_model(model, "model.skops")
    assert run(["inspect", "model.skops", "--json"]) == FINE
    assert json.loads(capsys.readouterr().out)["network"]["n_hidden"] == 4


@pytest.mark.parametrize("more", [[], ["--digits", "3"]])
@pytest.mark.parametrize("targets", [Y, Y[:, :1]])
def test_several_targets_do_not_fit_one_column(more, targets, capsys):
    save_model(PinvRegressor(4, random_state=0).fit(X, targets), "model.skops")
    assert run(["predict", "model.skops", "rows.csv", "-o", "p.csv", *more]) == USAGE
    assert "several targets" in capsys.readouterr().err


def test_a_model_without_deviations_says_so(capsys):
    save_model(ELMRegressor(4, random_state=0).fit(X, Y[:, 0]), "model.skops")
    assert run(["predict", "model.skops", "rows.csv", "-o", "p.csv"]) == FINE
    assert run(["predict", "model.skops", "rows.csv", "-o", "p.csv", "--interval", "0.9"]) == USAGE
    assert "a ELMRegressor has none" in capsys.readouterr().err
