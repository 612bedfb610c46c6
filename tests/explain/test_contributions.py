"""`explain.contributions` add up to the prediction, are integrals of gradients, and agree with Shapley values."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from support.device import on_device

from ocrep import (
    PinvClassifier,
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TableClassifier,
    TableRegressor,
    TikhonovClassifier,
    TikhonovRegressor,
    explain,
    load_model,
    save_model,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 4)) * [1.0, 5.0, 0.1, 2.0] + [0.0, 50.0, 0.0, -3.0]
X[:, 3] = RNG.integers(0, 2, 300)
Y = np.sin(X[:, 0]) + X[:, 1] / 10 + X[:, 2] * X[:, 3] * 5
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, np.quantile(Y, [0.4, 0.7]))]
KINDS = [
    *({"activation": name} for name in ("sigmoid", "tanh", "sin", "relu", "gaussian", "laplace", "identity")),
    {"activation": "hardlimit"},
    {"activation": np.cos},
    {"activation": "gaussian", "weight_init": "rows", "metric": "full"},
    {"activation": "laplace", "weight_init": "rows", "metric": "diagonal"},
    {"activation": "laplace", "weight_init": "rows", "metric": "full"},
    {"activation": "relu", "weight_init": "pairs", "units_see": 2},
    {"weight_init": "trees"},
]


def assert_adds_up(found):
    np.testing.assert_allclose(found.frame.sum(axis=1) + found.base, found.predicted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("scaling", ["minmax", "squash"])
@pytest.mark.parametrize("direct_link", [True, False])
def test_they_add_up_exactly(options, scaling, direct_link):
    model = PinvRegressor(40, input_scaling=scaling, direct_link=direct_link, gamma=1e-3, random_state=0, **options)
    model.fit(X, Y)
    found = explain.contributions(model, X[:50])
    np.testing.assert_allclose(found.predicted, model.predict(X[:50]), atol=1e-10)
    np.testing.assert_allclose(found.frame.sum(axis=1) + found.base, found.predicted, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "options", [kind for kind in KINDS if kind.get("activation") not in (None, "hardlimit", np.cos)]
)
def test_they_are_integrals_of_gradients(options):
    model = PinvRegressor(40, gamma=1e-2, random_state=0, **options).fit(X, Y)  # min–max: a straight path in the inputs
    start, rows = X[7], X[20:26]
    found = explain.contributions(model, rows, background=start[None])
    times = (np.arange(2000) + 0.5) / 2000
    mean = np.mean([model.gradients(start + time * (rows - start)) for time in times], axis=0)
    size = np.abs(mean * (rows - start)).max()
    np.testing.assert_allclose(
        found.frame, mean * (rows - start), atol=2e-3 * size if "relu" in str(options) else 1e-5 * size
    )


def test_each_threshold_gives_its_jump_to_its_column():
    model = PinvRegressor(30, weight_init="trees", direct_link=False, gamma=1e-3, random_state=0).fit(X, Y)
    start, row = X[0], X[1]
    found = explain.contributions(model, row[None], background=start[None]).frame.to_numpy()[0]
    expected = np.zeros(4)
    times = np.linspace(0.0, 1.0, 200_001)
    values = model.predict(start + times[:, None] * (row - start))
    trees, scale, center = model.layer_.map_.trees, model.layer_.map_.scale, model.layer_.map_.center
    first, last = (start - center) * scale, (row - center) * scale
    for place in np.flatnonzero(np.abs(np.diff(values)) > 1e-12):
        time = times[place : place + 2]
        crossed = [
            column
            for column in range(4)
            for threshold in trees.threshold[trees.feature == column]
            if last[column] != first[column]
            and time[0] - 1e-12 <= (threshold - first[column]) / (last[column] - first[column]) <= time[1] + 1e-12
        ]
        assert len(set(crossed)) == 1
        expected[crossed[0]] += values[place + 1] - values[place]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_columns_that_cross_at_the_same_time_share_alike(rng):
    rows = rng.integers(0, 2, (400, 2)).astype(float)
    y = rows[:, 0] * rows[:, 1]
    model = PinvRegressor(60, weight_init="trees", direct_link=False, gamma=1e-6, random_state=0).fit(rows, y)
    found = explain.contributions(model, [[1.0, 1.0]], background=[[0.0, 0.0]])
    assert_adds_up(found)
    np.testing.assert_allclose(found.frame, 0.5, atol=0.15)


def test_a_linear_model_gives_weight_times_change():
    model = TikhonovRegressor().fit(X, Y)
    found = explain.contributions(model, X[:5])
    np.testing.assert_allclose(found.frame, (X[:5] - X.mean(axis=0)) * model.coef_, atol=1e-9)
    np.testing.assert_allclose(found.base, Y.mean(), atol=1e-9)


def shapley_values(predict, row, background):
    """By brute force over all coalitions: columns of the coalition are the row's, the others the background's."""
    n = len(row)
    masks = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    values = predict(np.where(masks, row, background))
    found = np.zeros(n)
    for column in range(n):
        others = [other for other in range(n) if other != column]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for coalition in combinations(others, size):
                without = sum(1 << other for other in coalition)
                found[column] += weight * (values[without | 1 << column] - values[without])
    return found


def test_the_first_three_columns_are_those_of_exact_shapley_values(rng):
    rows = rng.standard_normal((500, 8))
    y = 3 * rows[:, 4] + 2 * np.sin(rows[:, 1]) + rows[:, 6] ** 2 + 0.3 * rows[:, 2] * rows[:, 0]
    model = PinvRegressorCV("quick", random_state=0).fit(rows[:400], y[:400])
    background = rows[:400].mean(axis=0)
    found = explain.contributions(model, rows[400:430], background=background[None]).frame.to_numpy()
    exact = np.array([shapley_values(model.predict, row, background) for row in rows[400:430]])
    by_size = [np.argsort(-np.abs(values).mean(axis=0))[:3].tolist() for values in (found, exact)]
    assert by_size[0] == by_size[1]
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.98


def test_stacks_and_labels():
    members = [{"n_hidden": 30, "weight_init": "trees"}, {"n_hidden": 30, "activation": "laplace"}]
    stack = PinvRegressorCV(members, random_state=0).fit(X, Y)
    found = explain.contributions(stack, X[:20])
    assert_adds_up(found)
    assert (found.scale, found.output) == ("prediction", 0)
    labels = PinvClassifierCV(members, random_state=0).fit(X, LABELS)
    for number, label in enumerate(labels.classes_):
        found = explain.contributions(labels, X[:20], output=label)
        assert_adds_up(found)
        assert (found.scale, found.output) == ("log-odds", label)
        np.testing.assert_allclose(found.predicted, labels.decision_function(X[:20])[:, number], atol=1e-10)
    logarithms = labels.predict_log_proba(X[:20])  # what the log-odds of more than two classes are
    np.testing.assert_allclose(found.predicted, (logarithms - logarithms.mean(axis=1)[:, None])[:, 2], atol=1e-9)
    two = PinvClassifier(30, calibrate="loo", random_state=0).fit(X, LABELS == "high")
    second, first = (explain.contributions(two, X[:20], output=output) for output in (None, False))
    assert second.output is True
    np.testing.assert_allclose(first.frame, -second.frame)
    logarithms = two.predict_log_proba(X[:20])
    np.testing.assert_allclose(second.predicted, logarithms[:, 1] - logarithms[:, 0], atol=1e-9)


CLASSIFIERS = {
    "network": PinvClassifier(30, random_state=0),
    "loo": PinvClassifier(30, calibrate="loo", random_state=0),
    "trees": PinvClassifier(30, weight_init="trees", gamma="kfold", random_state=0),
    "ridge": TikhonovClassifier(),
    "stack": PinvClassifierCV([{"n_hidden": 30}], random_state=0),
    "table": TableClassifier(PinvClassifier(30, random_state=0), random_state=0),
}
TARGETS = {"two": LABELS == "high", "three": LABELS, "several": np.stack([Y > 5, X[:, 0] > 0], axis=1).astype(int)}


@pytest.mark.parametrize(
    ("kind", "target"),
    [(kind, target) for kind in CLASSIFIERS for target in TARGETS if (kind, target[0]) != ("table", "s")],
)
def test_log_odds_of_labels_are_those_of_the_probabilities(kind, target):
    model = clone(CLASSIFIERS[kind]).fit(X, TARGETS[target])
    chances = model.predict_proba(X[:20])
    logarithms = np.log(chances)
    odds = {
        "two": logarithms - logarithms[:, ::-1],
        "three": logarithms - logarithms.mean(axis=1, keepdims=True),
        "several": logarithms - np.log1p(-chances),
    }[target]
    for number, label in enumerate(model.classes_):
        found = explain.contributions(model, X[:20], output=label)
        np.testing.assert_allclose(found.predicted, odds[:, number], rtol=1e-5, atol=1e-8)  # 1 − p is rounded
        np.testing.assert_allclose(found.frame.sum(axis=1) + found.base, found.predicted, rtol=0, atol=1e-9)
        assert (found.scale, found.output) == ("log-odds", label)


def test_a_table_is_divided_by_its_columns(rng):
    frame = pd.DataFrame(
        {"size": X[:, 0], "town": rng.choice(["Oslo", "Bergen", "Bodø"], 300)}, index=np.arange(300) + 7
    )
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 300), "D")
    frame.loc[frame.index[::9], ["size", "town"]] = None
    y = frame["size"].fillna(0) + 2 * frame["town"].eq("Oslo")
    model = TableRegressor(PinvRegressorCV("quick", random_state=0), random_state=0).fit(frame, y)
    found = explain.contributions(model, frame[:20])
    assert list(found.frame.columns) == ["size", "town", "day"]
    assert found.frame.index.equals(frame.index[:20])
    assert_adds_up(found)
    np.testing.assert_allclose(found.predicted, model.predict(frame[:20]), atol=1e-10)
    labels = TableClassifier(PinvClassifierCV("quick", random_state=0), random_state=0).fit(frame, y > y.median())
    assert_adds_up(explain.contributions(labels, frame[:20]))


def test_a_model_of_logarithms_divides_the_logarithm_of_its_prediction():
    frame = pd.DataFrame(X, columns=list("abcd"))
    network = PinvRegressorCV("quick", random_state=0)
    model = TableRegressor(network, target_transform="log", random_state=0).fit(frame, np.exp(Y))
    found = explain.contributions(model, frame[:20])
    assert found.scale == "logarithm"
    np.testing.assert_allclose(np.exp(found.predicted), model.predict(frame[:20]), rtol=1e-10)
    assert_adds_up(found)
    assert explain.contributions(TableRegressor(network).fit(frame, Y), frame[:20]).scale == "prediction"


def test_several_background_rows_give_the_mean_and_one_row_can_be_explained():
    model = PinvRegressor(30, random_state=0).fit(X, Y)
    both = explain.contributions(model, X[5:6], background=X[:2])
    each = [explain.contributions(model, X[5:6], background=X[i : i + 1]) for i in range(2)]
    np.testing.assert_allclose(both.frame, (each[0].frame + each[1].frame) / 2)
    np.testing.assert_allclose(both.base, model.predict(X[:2]).mean())
    assert (explain.contributions(model, X[5:6], background=X[5:6]).frame.to_numpy() == 0).all()


def test_the_background_is_the_mean_row_also_after_saving(tmp_path):
    for model in (PinvRegressor(20, random_state=0), PinvRegressorCV([{"n_hidden": 20}], random_state=0)):
        model.fit(X, Y)
        expected = explain.contributions(model, X[:5])
        np.testing.assert_allclose(expected.base, model.predict(X.mean(axis=0)[None])[0], atol=1e-8)
        save_model(model, tmp_path / "model.skops", for_prediction=True)
        found = explain.contributions(load_model(tmp_path / "model.skops"), X[:5])
        pd.testing.assert_frame_equal(found.frame, expected.frame)


def test_a_model_on_a_device_is_explained_on_the_host():
    members = [{"n_hidden": 20, "weight_init": "trees"}, {"n_hidden": 20}]
    expected = explain.contributions(PinvRegressorCV(members, random_state=0).fit(X, Y), X[:5])
    model = PinvRegressorCV(members, random_state=0).fit(on_device(X), on_device(Y))
    found = explain.contributions(model, on_device(X[:5]))
    pd.testing.assert_frame_equal(found.frame, expected.frame, atol=1e-6)


def test_mistakes():
    model = PinvRegressor(10, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        explain.contributions(model, X[:, :3])
    with pytest.raises(ValueError, match="output=1 must be the number of a target, from 0 to 0"):
        explain.contributions(model, X, output=1)
    labels = PinvClassifier(10, random_state=0).fit(X, LABELS)
    with pytest.raises(ValueError, match="output='hihg' is no class of the model: did you mean 'high'"):
        explain.contributions(labels, X, output="hihg")
    frame = pd.DataFrame(X, columns=list("abcd"))
    forest = TableRegressor(RandomForestRegressor(5, random_state=0), random_state=0).fit(frame, Y)
    with pytest.raises(TypeError, match="RandomForestRegressor has none"):
        explain.contributions(forest, frame)
    with pytest.raises(IndexError, match="row=9 is not there"):
        explain.contributions(model, X[:3]).plot(row=9)
