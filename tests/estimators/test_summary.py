"""`summary()`: every number against the model's own, on one screen, for every estimator."""

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from support.problems import smooth_problem

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TikhonovClassifier,
    TikhonovRegressor,
    literature,
    load_model,
    rules,
    save_model,
)
from ocrep.estimators.summary import WIDTH, Summary

X, Y = smooth_problem(120, 4)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.4, 0.5])]
ESTIMATORS = [
    PinvRegressor(30, random_state=0),
    PinvRegressor(15, gamma=rules.KFold(n_folds=4), random_state=0, activation=np.sin),
    PinvClassifier(20, random_state=0),
    PinvRegressorCV([{"n_hidden": 5}, {"n_hidden": 9}], random_state=0, ensemble=False),
    PinvClassifierCV([{"n_hidden": 5}, {"n_hidden": 9}], random_state=0, ensemble=False),
    TikhonovRegressor(),
    TikhonovClassifier(),
    literature.ELMClassifier(random_state=0),
    literature.RELMRegressor(random_state=0),
    literature.OPELMRegressor(random_state=0),
    literature.PrunedELMRegressor(random_state=0),
]


def fitted(model, y=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, (LABELS if "Classifier" in type(model).__name__ else Y) if y is None else y)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_every_estimator_fits_one_screen(model):
    found = fitted(model).summary()
    lines = str(found).splitlines()
    assert lines[0].strip() == type(model).__name__
    assert len(lines) <= 24
    assert max(map(len, lines)) <= WIDTH
    assert f"Inputs:{'4':>31}" in str(found)
    assert repr(found) == str(found)
    for section in found.sections.values():
        for name, value in section.items():
            assert f"<th style='text-align: left'>{name}</th><td>{value}</td>" in found._repr_html_()
            assert f"{name}: " in str(found)
            assert value in str(found)


def test_the_numbers_are_those_of_the_model():
    model = fitted(PinvRegressor(30, random_state=0, store_folds=True, gamma="gcv"))
    told = {name: value for section in model.summary().sections.values() for name, value in section.items()}
    residual = Y - model.predict(X)
    assert float(told["Training RMSE"]) == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-3)
    H = model.layer_.transform(X)
    H = H - H.mean(axis=0)
    sigma = np.linalg.svd(H, compute_uv=False)
    assert float(told["Effective parameters"]) == pytest.approx(np.sum(sigma**2 / (sigma**2 + model.gamma_)), rel=1e-2)
    assert float(told["Condition number"]) == pytest.approx(sigma[0] / sigma[-1], rel=1e-2)
    assert (told["Rule"], told["Rank"], told["Rows"]) == ("gcv", "34 of 34", "120")
    held_out = float(told["CV RMSE"])
    assert float(told["CV R²"]) == pytest.approx(1.0 - held_out**2 / np.var(Y), abs=2e-3)


def test_the_held_out_error_is_that_of_refits():
    model = fitted(TikhonovRegressor("kfold"))
    fold = model.folds_.plan.of(X)
    total = 0.0
    for v in range(3):
        part = TikhonovRegressor(model.gamma_).fit(X[fold != v], Y[fold != v])
        total += np.sum((part.predict(X[fold == v]) - Y[fold == v]) ** 2)
    told = model.summary().sections["error"]
    assert float(told["CV RMSE"]) == pytest.approx(math.sqrt(total / len(Y)), rel=1e-3)


def test_without_folds_or_intercept_less_is_said():
    told = fitted(TikhonovRegressor("gcv", fit_intercept=False)).summary().sections
    assert list(told["error"]) == ["Training RMSE"]
    assert told["network"] == {"Intercept": "no"}
    assert "CV R²" not in fitted(TikhonovRegressor("kfold", fit_intercept=False)).summary().sections["error"]


def test_one_gamma_per_target_is_told_as_a_range():
    several = np.c_[Y, X[:, 0] ** 3, np.random.default_rng(0).standard_normal(len(Y))]
    model = fitted(TikhonovRegressor("kfold", gamma_per_target=True), several)
    told = model.summary().sections
    assert told["regularization"]["γ"] == f"{model.gamma_.min():.3g} to {model.gamma_.max():.3g}"
    rmse = np.sqrt(np.mean((several - model.predict(X)) ** 2))
    assert float(told["error"]["Training RMSE"]) == pytest.approx(rmse, rel=1e-3)
    assert told["data"]["Targets"] == "3"


def test_weights_are_counted():
    weight = np.r_[np.zeros(20), np.full(100, 2.5)]
    told = TikhonovRegressor().fit(X, Y, sample_weight=weight).summary().sections["data"]
    assert told == {"Rows": "100", "Sum of weights": "250", "Inputs": "4", "Targets": "1"}


@pytest.mark.parametrize(
    ("model", "y", "words"),
    [
        (PinvRegressor(200, gamma="none", random_state=0), Y, ["effective parameters for 120 rows"]),
        (TikhonovRegressor("kfold"), np.random.default_rng(0).standard_normal(120), ["that of predicting the mean"]),
        (PinvRegressor(60, activation="identity", random_state=0), Y, ["numerically singular: its rank is 4"]),
        (PinvRegressor(90, activation="sin", gamma="ocrep", random_state=0, weight_scale=0.01), Y, ["precision floor"]),
        (TikhonovRegressor("kfold"), Y, []),
    ],
)
def test_what_deserves_attention_is_said(model, y, words):
    found = fitted(model, y).summary()
    assert bool(found.warnings) == bool(words)
    told = " ".join(found.warnings)
    assert all(word in told for word in words)
    assert ("Warnings:" in str(found)) == bool(words)


def test_a_model_that_is_ill_conditioned_but_of_full_rank():
    rng = np.random.default_rng(0)
    H = rng.standard_normal((120, 3)) * [1.0, 1.0, 1e-9]
    told = TikhonovRegressor(1e-30).fit(H, Y).summary()
    assert any("small errors in the inputs may count" in warning for warning in told.warnings)


def test_a_loaded_model_says_the_same(tmp_path):
    model = fitted(PinvClassifierCV([{"n_hidden": 5}, {"n_hidden": 9}], random_state=0, ensemble=False))
    save_model(model, tmp_path / "model.skops")
    assert str(load_model(tmp_path / "model.skops").summary()) == str(model.summary())


def test_before_fit_there_is_nothing_to_show():
    with pytest.raises(NotFittedError):
        PinvRegressor().summary()


def test_what_is_too_long_for_half_a_line_gets_its_own_and_markup_stays_text():
    long = Summary("M", {"regularization": {"Rule": "x" * 50, "γ": "<b>"}})
    assert f"Rule: {'x' * 50}" in str(long).splitlines()
    assert "&lt;b&gt;" in long._repr_html_()
    assert "<b>" not in long._repr_html_().replace("<b>M</b>", "")
