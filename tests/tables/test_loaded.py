"""What a loaded model of a table must be able to do before the program uses it."""

import copy

import numpy as np
import pandas as pd
import pytest

from ocrep import PinvRegressor
from ocrep.tables.loaded import check_description
from ocrep.tables.problem import read_problem
from ocrep.tables.training import Settings, train

TABLE = "ocrep_table_"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = tmp_path_factory.mktemp("loaded") / "t.csv"
    i = np.arange(60)
    dates = pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d")
    pd.DataFrame({"x": i % 7, "d": dates, "c": np.array(["u", "v", "w"])[i % 3], "y": i % 7 + 0.5}).to_csv(path)
    numbers = train(read_problem(path, "y"), Settings(candidates="quick"), test=0).model
    labels = train(read_problem(path, "c"), Settings(n_hidden=4), test=0).model
    return {"numbers": numbers, "labels": labels}


def described(**changes):
    return lambda model: vars(model)[TABLE].update(changes)


def median(model):
    return model["columns"].named_transformers_["numbers"]


def filling(model):
    return model["columns"].named_transformers_["texts"]["fill"]


CHANGES = {
    "another kind": ("numbers", described(kinds={"x": "colour"})),
    "no kinds": ("numbers", described(kinds={})),
    "kinds of other columns": ("numbers", described(kinds={"z": "number"})),
    "a name that is a number": ("numbers", described(target=3)),
    "another task": ("numbers", described(task="guess")),
    "a score that is a text": ("numbers", described(scores={"rmse": "high", "baseline_rmse": 1.0})),
    "a score that no float can be": ("numbers", described(scores={"rmse": 10**400, "baseline_rmse": 1.0})),
    "scores without that of the baseline": ("labels", described(scores={"error": 0.1})),
    "scores without the error": ("numbers", described(scores={"r2": 0.9, "baseline_rmse": 1.0})),
    "scores of another task": ("numbers", described(scores={"error": 0.1, "baseline_error": 0.2})),
    "scores of two tasks": ("labels", described(scores={"error": 0.1, "baseline_error": 0.2, "rmse": 1.0})),
    "ids that are an array": ("numbers", described(ids=np.array([]))),
    "signs that are an array": ("numbers", described(reading={"strip": np.array(["x", "y"])})),
    "words that are numbers": ("numbers", described(reading={"na": [1, 2]})),
    "kinds without that of a text": ("numbers", lambda model: vars(model)[TABLE]["kinds"].pop("c")),
    "a way to read that is not known": ("numbers", described(reading={"colour": 1})),
    "a field that is not known": ("numbers", described(colour=1)),
    "errors of two dimensions": (
        "numbers",
        lambda model: model[-1].cv_results_.update(mean_test_score=-np.ones((3, 2))),
    ),
    "gaps filled with infinity": (
        "numbers",
        lambda model: setattr(median(model), "statistics_", np.array([0, np.inf])),
    ),
    "gaps that are a column": ("numbers", lambda model: setattr(filling(model), "missing_values", np.ones((39, 1)))),
    "more classes than probabilities": ("labels", lambda model: setattr(model[-1], "classes_", np.array(list("uvwz")))),
}


def test_a_model_as_it_was_saved_passes(models):
    for model in (*models.values(), PinvRegressor(3).fit(np.eye(4), np.arange(4.0))):
        check_description(model)
    for scores in ({"r2": np.nan, "rmse": 0.1, "baseline_rmse": 0.2}, {"rmse": 0, "baseline_rmse": 1}):
        model = copy.deepcopy(models["numbers"])
        described(scores=scores)(model)
        check_description(model)


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_cannot_do_what_it_says_is_refused(change, models):
    name, alter = CHANGES[change]
    model = copy.deepcopy(models[name])
    alter(model)
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, IndexError)):
        check_description(model)


def test_predictions_that_are_not_finite_are_refused(models, monkeypatch):
    model = copy.deepcopy(models["numbers"])
    monkeypatch.setattr(type(model), "predict", lambda self, X: np.array([np.nan]))
    with pytest.raises(ValueError, match="not finite"):
        check_description(model)
