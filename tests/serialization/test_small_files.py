"""`save_model(…, for_prediction=True)`: the same predictions from a fraction of the file; the rest is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.problems import smooth_problem

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TableClassifier,
    TableRegressor,
    TikhonovRegressor,
    load_model,
    save_model,
)
from ocrep.literature import RELMRegressor

X, Y = smooth_problem(300, 4)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.3, 0.5])]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    town=[f"town {i * i % 37}" for i in range(300)], day=pd.date_range("2024-01-01", periods=300).strftime("%d %b %Y")
)
LAYERS = [{"n_hidden": 100, "weight_init": "trees"}, {"n_hidden": 100}]

# Each with its targets, its rows, and how large the small file may be beside the full one.
MODELS = {
    "network": (PinvRegressor(200, random_state=0), X, Y, 0.02),
    "network with folds": (PinvRegressor(100, store_folds=3, random_state=0), X, Y, 0.03),
    "network with intervals": (PinvRegressor(100, calibrate="loo", random_state=0), X, Y, 0.6),
    "more units than rows": (PinvRegressor(400, gamma=0.1, random_state=0), X, Y, 0.06),
    "classifier": (PinvClassifier(200, calibrate="loo", random_state=0), X, LABELS, 0.06),
    "features of one's own": (TikhonovRegressor(), X, Y, 0.8),
    "stack": (PinvRegressorCV(LAYERS, random_state=0), X, Y, 0.2),
    "stack of classifiers": (PinvClassifierCV(LAYERS, random_state=0), X, LABELS, 0.3),
    "best of a search": (PinvRegressorCV(LAYERS[1:], ensemble=False, random_state=0), X, Y, 0.1),
    "pipeline": (make_pipeline(StandardScaler(), PinvRegressor(200, random_state=0)), X, Y, 0.03),
    "vote": (VotingRegressor([("one", PinvRegressor(100, random_state=0)), ("other", TikhonovRegressor())]), X, Y, 0.2),
    "method of the literature": (RELMRegressor(100, random_state=0), X, Y, 0.2),
    "table of numbers": (TableRegressor(random_state=0), FRAME, Y, 0.4),
    "table of labels": (TableClassifier(random_state=0), FRAME, LABELS, 0.4),
}


def answers(model, rows):
    """All that a model says of rows."""
    asked = ("predict", "predict_proba", "predict_interval", "decision_function")
    return {name: getattr(model, name)(rows) for name in asked if hasattr(model, name)}


@pytest.mark.parametrize("name", MODELS)
def test_the_small_file_predicts_the_same(name, tmp_path):
    model, rows, targets, share = MODELS[name]
    model = clone(model).fit(rows, targets)
    save_model(model, tmp_path / "full.skops")
    before = pickle.dumps(model)
    save_model(model, tmp_path / "small.skops", for_prediction=True)
    assert pickle.dumps(model) == before  # the model in memory stays as it is
    sizes = {path.stem: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes["small"] < share * sizes["full"], sizes
    expected = answers(model, rows)
    found = answers(load_model(tmp_path / "small.skops"), rows)
    assert found.keys() == expected.keys()
    for what, values in expected.items():
        if values.dtype.kind == "f":  # sums may be rounded otherwise where arrays lie elsewhere in memory
            np.testing.assert_allclose(found[what], values, rtol=1e-13)
        else:
            np.testing.assert_array_equal(found[what], values)


ASKED = {
    "another rule": lambda model: model.with_gamma("gcv"),
    "further rows": lambda model: model.partial_fit(X, Y),
    "the spectrum": lambda model: model.spectrum_,
    "the factor": lambda model: model.factor_,
    "the choice": lambda model: model.choice_,
    "deviations": lambda model: model.predict(X, return_std=True),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_reads_the_training_says_that_it_is_gone(asked, tmp_path):
    model = PinvRegressor(20, random_state=0).fit(X, Y)
    save_model(model, tmp_path / "small.skops", for_prediction=True)
    small = load_model(tmp_path / "small.skops")
    before = small.predict(X)
    with pytest.raises(AttributeError, match="for_prediction=True"):
        ASKED[asked](small)
    np.testing.assert_array_equal(small.predict(X), before)
    ASKED[asked](model)
    # A new fit needs nothing of the old one.
    ASKED[asked](small.fit(X, Y))


@pytest.mark.parametrize(
    "asked", [*(name for name in ASKED if name not in ("deviations", "further rows")), "the best", "results"]
)
def test_a_stack_says_so_too(asked, tmp_path):
    more = {"the best": lambda model: model.best_estimator_, "results": lambda model: model.cv_results_}
    save_model(PinvRegressorCV(LAYERS, random_state=0).fit(X, Y), tmp_path / "small.skops", for_prediction=True)
    small = load_model(tmp_path / "small.skops")
    with pytest.raises(AttributeError, match=r"for_prediction=True|best_estimator_"):
        {**ASKED, **more}[asked](small)
    assert np.isfinite(small.ensemble_score_)


def test_a_small_file_may_be_made_again_of_a_loaded_model(tmp_path):
    model = make_pipeline(StandardScaler(), PinvClassifier(30, random_state=0)).fit(X, LABELS)
    for name in ("first", "second"):
        save_model(model, tmp_path / name, for_prediction=True)
        model = load_model(tmp_path / name)
    np.testing.assert_array_equal(model.predict(X), load_model(tmp_path / "first").predict(X))


def test_a_model_that_would_unpack_to_too_much_is_not_packed(tmp_path):
    model = TikhonovRegressor(gamma=1.0).fit(np.eye(3, 60_000), [1.0, 2.0, 3.0])
    save_model(model, tmp_path / "small.skops", for_prediction=True)
    np.testing.assert_array_equal(
        load_model(tmp_path / "small.skops").predict(np.eye(3, 60_000)), model.predict(np.eye(3, 60_000))
    )
