"""`TableRegressor` and `TableClassifier`: scikit-learn's contract on any frame, honest folds, weights and files."""

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocrep import (
    PinvClassifierCV,
    PinvRegressor,
    PinvRegressorCV,
    TableClassifier,
    TableRegressor,
    fit_table,
    load_model,
    save_model,
)
from ocrep._files.formats import DataError
from ocrep.datasets import load_penguins
from ocrep.tables import TableCoder

QUICK = PinvRegressorCV("quick", random_state=0)
QUICK_LABELS = PinvClassifierCV("quick", random_state=0)
# Where there is nothing to learn, a network says so.
quiet = pytest.mark.filterwarnings("ignore::ocrep.exceptions.RuleEdgeWarning")


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "town": [f"town {k}" for k in rng.integers(0, 60, n)],
            "colour": np.array(["red", "blue", None], dtype=object)[rng.integers(0, 3, n)],
            "when": pd.date_range("2021-03-01", periods=n, freq="5h").astype("datetime64[us]"),
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n)),
            "number": np.arange(n),
        }
    )
    effect = np.random.default_rng(5).standard_normal(60)[frame["town"].str[5:].astype(int)]
    y = 3 * effect + frame["x"].isna() + (frame["colour"] == "red") + 0.3 * rng.standard_normal(n)
    return frame, y.rename("y")


def penguins(target):
    frame = load_penguins().dropna(subset=[target])
    return frame.drop(columns=target), frame[target]


# ------------------------------------------------------------------------------
# A real table


def test_penguins_with_text_dates_and_gaps():
    X, y = penguins("Sex")
    assert cross_val_score(TableClassifier(QUICK_LABELS), X, y, cv=KFold(4, shuffle=True, random_state=0)).mean() > 0.85
    model = TableClassifier(QUICK_LABELS, random_state=0).fit(X, y)
    assert model.left_out_ == {"Region": "is constant", "Stage": "is constant"}
    assert model.gaps_["Comments"] == X["Comments"].isna().sum()
    assert model.classes_.tolist() == ["FEMALE", "MALE"]
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert log_loss(y, proba) < 0.4


def test_intervals_of_penguins_cover_what_they_should():
    X, y = penguins("Body Mass (g)")
    train = np.random.default_rng(0).random(len(X)) < 0.7
    model = TableRegressor(random_state=0).fit(X[train], y[train])
    assert model.score(X[~train], y[~train]) > 0.75
    low, high = model.predict_interval(X[~train], coverage=0.8).T
    assert 0.65 < ((low < y[~train]) & (y[~train] < high)).mean() < 0.95


# ------------------------------------------------------------------------------
# scikit-learn


OTHERS = {"check_sample_weight_equivalence_on_dense_data": "gives `cv` a list of splits, and here it is a number"}


@parametrize_with_checks(
    [TableRegressor(Ridge()), TableClassifier(LogisticRegression()), TableCoder()],
    expected_failed_checks=lambda estimator: OTHERS if hasattr(estimator, "cv") else {},
)
@pytest.mark.filterwarnings("ignore")
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_clone_fitted_to_other_rows_is_a_fresh_model():
    X, y = table()
    other, y_other = table(200, seed=1)
    other["town"] = other["town"].str.replace("town", "village")
    fitted = TableRegressor(QUICK, random_state=0).fit(X, y)
    fresh = TableRegressor(QUICK, random_state=0).fit(other, y_other)
    for again in (clone(fitted).fit(other, y_other), fitted.fit(other, y_other)):
        np.testing.assert_array_equal(again.predict(other), fresh.predict(other))
    assert fresh.get_params()["model"] is QUICK
    assert not hasattr(QUICK, "output_coef_")


def test_frames_of_all_libraries_give_the_same_model():
    X, y = table()
    wanted = TableRegressor(QUICK, random_state=0).fit(X, y)
    arrow = pa.Table.from_pandas(X)
    for frame, target in ((arrow, pa.array(y)), (polars.from_arrow(arrow), polars.Series(y))):
        found = TableRegressor(QUICK, random_state=0).fit(frame, target)
        np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-6)
        np.testing.assert_allclose(wanted.predict(frame), wanted.predict(X), rtol=1e-12)
    assert wanted.feature_names_in_.tolist() == X.columns.tolist()
    assert wanted.n_features_in_ == 5


@quiet
def test_search_pipeline_and_representation():
    X, y = table()
    search = GridSearchCV(TableRegressor(QUICK, random_state=0), {"ignore": [(), ("town",)], "model": [QUICK, Ridge()]})
    search.fit(X, y)
    assert search.best_params_["ignore"] == ()
    step = make_pipeline(FunctionTransformer(lambda frame: frame.assign(twice=2 * frame["x"])), TableRegressor(QUICK))
    assert step.fit(X, y).score(X, y) > 0.5
    assert "TableRegressor" in search.best_estimator_._repr_html_()
    assert "model=Ridge()" in repr(TableRegressor(Ridge()))


def test_columns_are_found_by_name_and_unseen_texts_are_no_error():
    X, y = table()
    model = TableRegressor(QUICK, random_state=0).fit(X, y)
    wanted = model.predict(X)
    np.testing.assert_allclose(model.predict(X[["x", "when", "town", "colour"]]), wanted, rtol=1e-12)
    assert np.isfinite(model.predict(X.assign(town="elsewhere", colour="green"))).all()
    assert model.left_out_ == {"number": "is an id: a different whole number in each of 300 rows"}


def test_labels_keep_their_type():
    X, y = table()
    for labels in (
        y > 0,
        np.where(y > 0, 3, 1),
        np.where(y > 0, "yes", "no"),
        pd.Categorical(np.where(y > 0, "a", "b")),
    ):
        model = TableClassifier(QUICK_LABELS, random_state=0).fit(X, labels)
        assert np.mean(model.predict(X) == np.asarray(labels)) > 0.8
        assert model.classes_.tolist() == np.unique(np.asarray(labels)).tolist()


def test_any_estimator_can_take_the_place_of_the_network():
    X, y = table()
    model = TableRegressor(HistGradientBoostingRegressor(max_iter=20), random_state=0).fit(X, y, np.ones(300))
    assert model.score(X, y) > 0.5
    assert not hasattr(model, "predict_interval")
    with pytest.raises(AttributeError, match="HistGradientBoostingRegressor gives no intervals: leave model= out"):
        model.predict_interval(X)
    forest = TableClassifier(RandomForestClassifier(10, random_state=0), class_weight="balanced", random_state=0)
    assert forest.fit(X, y > 2).predict_proba(X).shape == (300, 2)


def test_scores_of_another_estimator_are_not_taken_for_those_of_a_network():
    X, y = table(100)
    searched = GridSearchCV(HistGradientBoostingRegressor(max_iter=5), {"max_depth": [2]}, cv=3)
    assert TableRegressor(searched, random_state=0).fit(X, y).assessment_ is None


@pytest.mark.parametrize("way", ["class_weight", "network", "sample_weight"])
def test_a_constant_is_judged_by_the_weights_of_the_network(way):
    X, y = table()
    labels = np.where(y > np.quantile(y, 0.9), "rare", "frequent")
    by_class = {"rare": 3.0, "frequent": 1.0}
    model = clone(QUICK_LABELS)
    if way == "network":
        model.set_params(class_weight=by_class)
    table_model = TableClassifier(model, class_weight=by_class if way == "class_weight" else None, random_state=0)
    weight = pd.Series(labels).map(by_class).to_numpy() if way == "sample_weight" else None
    found = table_model.fit(X, labels, sample_weight=weight).assessment_["models"]
    share = 3 * 30 / (3 * 30 + 270)
    wanted = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert found["baseline (majority class)"]["log_loss"] == pytest.approx(wanted)
    balanced = TableClassifier(QUICK_LABELS, class_weight="balanced", random_state=0).fit(X, labels).assessment_
    assert balanced["models"]["baseline (majority class)"]["log_loss"] == pytest.approx(np.log(2))


# ------------------------------------------------------------------------------
# Folds, weights, groups


@quiet
def test_a_thousand_categories_of_noise_are_not_learned():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": [f"k{k}" for k in rng.integers(0, 1000, 3000)], "x": rng.standard_normal(3000)})
    y = rng.standard_normal(3000)
    model = TableRegressor(QUICK, random_state=0)
    assert cross_val_score(model, X, y, cv=3).max() <= 0.02
    model.fit(X, y)
    assert 1 - (-model.model_.best_score_) / np.var(y) <= 0.02
    new = pd.DataFrame({"c": [f"k{k}" for k in rng.integers(0, 1000, 3000)], "x": rng.standard_normal(3000)})
    assert model.score(new, rng.standard_normal(3000)) <= 0.02


@quiet
def test_equal_rows_and_rows_of_a_group_are_held_out_together():
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(100), 10)
    X = pd.DataFrame({"a": rng.standard_normal(100), "b": rng.standard_normal(100)}).iloc[group]
    y = rng.standard_normal(100)[group]  # a copy of a row tells its target, and nothing else does
    model = TableRegressor(QUICK, random_state=0)
    assert 1 + model.fit(X, y).model_.best_score_ / np.var(y) <= 0.05
    X = X + 0.001 * rng.standard_normal(X.shape)
    assert 1 + model.fit(X, y).model_.best_score_ / np.var(y) > 0.5
    assert 1 + model.fit(X, y, groups=group).model_.best_score_ / np.var(y) <= 0.05


@quiet
def test_text_that_tells_the_group_is_not_learned_where_groups_are_held_out():
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(80), 10)
    X = pd.DataFrame({"name": [f"customer {k}" for k in group], "x": rng.standard_normal(800)})
    y = rng.standard_normal(80)[group] + X["x"].to_numpy()
    model = TableRegressor(Ridge(), random_state=0).fit(X, y, groups=group)
    held_out = cross_val_predict(TableRegressor(Ridge(), random_state=0), X, y, cv=GroupKFold(4), groups=group)
    assert np.mean((y - held_out) ** 2) < 1.3
    assert np.mean((y - model.predict(X)) ** 2) < 1.3  # the codes of other groups say nothing, and so they are not used


def test_rows_of_weight_zero_are_not_there():
    X, y = table()
    weight = (np.arange(300) % 3 > 0).astype(float)
    some = TableRegressor(QUICK, random_state=0).fit(X[weight > 0], y[weight > 0])
    found = TableRegressor(QUICK, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(found.predict(X), some.predict(X), rtol=1e-6)


def test_rows_without_a_target_can_be_dropped():
    X, y = table()
    y = y.where(np.arange(300) % 5 > 0)
    with pytest.raises(ValueError, match=r"The target 'y' has no value in 60 of 300 rows: .*drop_missing_target=True"):
        TableRegressor(QUICK).fit(X, y)
    model = TableRegressor(QUICK, drop_missing_target=True, random_state=0).fit(X, y)
    same = TableRegressor(QUICK, random_state=0).fit(X[y.notna()], y.dropna())
    np.testing.assert_array_equal(model.predict(X), same.predict(X))


# ------------------------------------------------------------------------------
# Files


@pytest.mark.parametrize("labels", [False, True])
def test_a_model_is_saved_and_read_without_its_types_being_named(tmp_path, labels):
    X, y = table()
    X = X.rename(columns={"town": "self", "colour": "index", "x": "0"})
    target = np.where(y > 0, "high", "low") if labels else y
    model = TableClassifier(QUICK_LABELS, random_state=0) if labels else TableRegressor(QUICK, random_state=0)
    save_model(model.fit(X, target), tmp_path / "table.skops")
    same = load_model(tmp_path / "table.skops")
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.left_out_ == model.left_out_
    assert same.coder_.get_feature_names_out().tolist() == model.coder_.get_feature_names_out().tolist()
    np.testing.assert_array_equal(clone(same).fit(X, target).predict(X), model.predict(X))


def test_a_file_is_small_and_holds_no_texts(tmp_path):
    X, y = table(2000)
    X["secret"] = [f"the secret of row {k} is kept" for k in range(2000)]
    model = TableRegressor(QUICK, random_state=0).fit(X, y)
    save_model(model, tmp_path / "table.skops")
    save_model(model.model_, tmp_path / "network.skops")
    whole, network = ((tmp_path / name).stat().st_size for name in ("table.skops", "network.skops"))
    assert whole - network < 1.5e6  # two columns of text
    assert b"secret of row" not in (tmp_path / "table.skops").read_bytes()


# ------------------------------------------------------------------------------
# Mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X.assign(copy=y), y), "Column 'copy' is the target again.*ignore="),
        (lambda X, y: (X, y.round(0).astype(str) + " kg"), "holds text such as .* use TableClassifier"),
        (lambda X, y: (X, X["when"]), "holds timestamp.*, but a regression needs numbers"),
        (lambda X, y: (X, y * np.nan), "The target 'y' is empty"),
        (lambda X, y: (X, 0 * y + 1), "only one value, 1"),
        (lambda X, y: (X, y[:10]), "10 values, but X has 300 rows"),
        (lambda X, y: (X, np.column_stack([y, y])), "one target: fit one model for each"),
        (lambda X, y: (X, y / 0), "infinite"),
        (lambda X, y: (X[["number"]], y), "no column to learn from: 'number' is an id"),
    ],
)
def test_a_regression_that_cannot_be_learned_is_refused_in_a_sentence(change, message):
    with pytest.raises(ValueError, match=message):
        TableRegressor(QUICK).fit(*change(*table()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, X["number"].astype(str) + "a"), "300 different values in 300 rows.*too many for classes"),
        (lambda X, y: (X, X["number"]), "it looks like an id or a quantity. Use TableRegressor"),
        (lambda X, y: (X, y), "labels are not continuous: use TableRegressor"),
        (lambda X, y: (X, ["a"] * 300), "only one class, a"),
        (
            lambda X, y: (X.assign(copy=np.where(y > 0, "a", "b")), np.where(y > 0, "a", "b")),
            "'copy' is the target again",
        ),
    ],
)
def test_a_classification_that_cannot_be_learned_is_refused_in_a_sentence(change, message):
    with pytest.raises(ValueError, match=message):
        TableClassifier(QUICK_LABELS).fit(*change(*table()))


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = table()
    model = TableRegressor(QUICK, random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="sample_weight has the shape"):
        model.fit(X, y, [1.0])
    with pytest.raises(ValueError, match="All rows are of one group"):
        model.fit(X, y, groups=["a"] * 300)
    with pytest.raises(ValueError, match="cv=1 must be a number of folds"):
        clone(model).set_params(model=Ridge(), cv=1).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_folds_of_the_model_that_are_not_those_of_the_codes_are_refused():
    frame = pd.DataFrame({"a": np.arange(40.0), "b": list("xyzw") * 10})
    with pytest.raises(ValueError, match="give a number of folds"):
        TableRegressor(PinvRegressorCV("quick", cv=KFold(4))).fit(frame, np.sin(np.arange(40.0)))


@pytest.mark.parametrize("labels", [False, True])
def test_the_rows_of_one_column_with_two_categories_are_no_copies(labels):
    """Folds that hold out whole categories would leave a constant to learn from; warnings are errors here."""
    kinds = ["red", "blue"] * 60
    noise = np.random.RandomState(0).normal(size=120)
    y = np.where(np.array(kinds) == "red", 1.0, 3.0) + 0.1 * noise
    frame = pd.DataFrame({"colour": kinds})
    if labels:
        model = TableClassifier(random_state=0).fit(frame, np.where(y > 2.0, "high", "low"))
        assert model.predict(frame[:2]).tolist() == ["low", "high"]
    else:
        np.testing.assert_allclose(
            TableRegressor(random_state=0).fit(frame, y).predict(frame[:2]), [1.0, 3.0], atol=0.1
        )


PRICES = np.random.default_rng(5).uniform(-1.0, 1.0, (400, 3))


def prices(X, seed):
    return np.exp(6.0 + np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.4 * np.random.default_rng(seed).standard_normal(len(X)))


def test_intervals_of_prices_are_above_zero_if_their_logarithm_is_learned(tmp_path):
    y = prices(PRICES, 0)
    new = np.random.default_rng(6).uniform(-1.0, 1.0, (2000, 3))
    truth = prices(new, 1)
    model = TableRegressor(PinvRegressorCV("quick", random_state=0), target_transform="log", random_state=0)
    low, high = model.fit(PRICES, y).predict_interval(new).T
    assert (low > 0.0).all()
    assert 0.87 < np.mean((low <= truth) & (truth <= high)) < 0.94
    # The same as to learn the logarithm by oneself.
    alone = TableRegressor(PinvRegressorCV("quick", random_state=0), random_state=0).fit(PRICES, np.log(y))
    np.testing.assert_allclose(model.predict(new), np.exp(alone.predict(new)), rtol=1e-12)
    np.testing.assert_allclose(high, np.exp(alone.predict_interval(new)[:, 1]), rtol=1e-12)
    assert 0.45 < np.mean(truth < model.predict(new)) < 0.55  # medians
    save_model(model, tmp_path / "model.skops", for_prediction=True)
    np.testing.assert_allclose(load_model(tmp_path / "model.skops").predict(new), model.predict(new), rtol=1e-12)


def test_a_logarithm_that_does_not_exist_is_told_in_a_sentence():
    y = prices(PRICES, 0)
    y[3:6] = 0.0, -2.5, 0.0
    with pytest.raises(DataError, match=r"needs targets above 0, and 3 of 400 are not, such as -2\.5: correct them"):
        TableRegressor(target_transform="log").fit(PRICES, y)
    with pytest.raises(ValueError, match="target_transform='sqrt' must be 'log' or None"):
        TableRegressor(target_transform="sqrt").fit(PRICES, y)


def test_a_frame_without_rows_is_refused_in_words_of_the_frame():
    X, y = table()
    numbers, labels = (
        TableRegressor(QUICK).fit(X, y),
        TableClassifier(QUICK_LABELS).fit(X, y > y.median()),
    )
    for method in (numbers.predict, numbers.predict_interval, labels.predict, labels.predict_proba):
        with pytest.raises(ValueError, match=r"^The frame has no rows, so there is nothing to predict"):
            method(X[:0])


def test_rows_unlike_those_of_training_can_be_had_by_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.uniform(0.0, 10.0, 60), "town": ["a", "b", "c"] * 20})
    model = TableRegressor(Ridge(), random_state=0).fit(frame, frame["size"] + (frame["town"] == "a"))
    new = pd.DataFrame({"size": [5.0, 10.5, 30.0, -7.0], "town": ["a", "b", "elsewhere", "c"]})
    found = model.unlike_training(new)
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "size": [False, False, True, True],
        "town": [False, False, True, False],
    }
    assert model.unlike_training(frame) == {}


def test_unknown_texts_are_told_of_columns_of_many_texts(tmp_path, rng):
    town = np.array([f"town {k}" for k in [*np.repeat(np.arange(60), 5), *range(100, 110)]], dtype=object)
    town[3] = None
    frame = pd.DataFrame({"town": town, "size": rng.uniform(0.0, 10.0, 310)})
    model = TableRegressor(Ridge(), random_state=0).fit(frame, frame["size"] + rng.normal(size=310))
    assert model.unlike_training(frame) == {}  # also of texts of one row, which have no code
    save_model(model, tmp_path / "m.skops")
    new = pd.DataFrame({"town": ["town 1", "town 105", "elsewhere", None], "size": 5.0})
    for own in (model, load_model(tmp_path / "m.skops")):
        found = own.unlike_training(new)
        assert {name: rows.tolist() for name, rows in found.items()} == {"town": [False, False, True, False]}


@pytest.mark.parametrize("n_rows", [1000, 6000])
def test_what_is_not_learned_of_a_skewed_target_is_not_claimed(n_rows):
    """Of many rows some are held out; the mean is judged on the same, whose variance may be far from that of all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n_rows)})
    y = 3.0 * rng.pareto(1.3, n_rows).clip(max=300.0)
    model = TableRegressor(PinvRegressorCV("quick", random_state=0), random_state=0).fit(X, y)
    assert abs(model.assessment_["models"]["network"]["r2"]) < 0.05
    assert (model.assessment_["n_test"] < n_rows) == (n_rows > 4000)
    single = PinvRegressorCV([{"n_hidden": 20}, {"n_hidden": 40}], ensemble=False, selection_rows=300, random_state=0)
    assert TableRegressor(single, random_state=0).fit(X, y).assessment_ is None


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_are_compared_with_their_shares_on_the_same_rows(classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=5000)})
    y = rng.choice(classes, 5000, p=[0.8, 0.2] if classes == 2 else [0.7, 0.2, 0.1])
    model = TableClassifier(PinvClassifierCV("quick", random_state=0), random_state=0).fit(X, y)
    network, constant = (one["log_loss"] for one in model.assessment_["models"].values())
    assert abs(network - constant) < 0.01


@quiet
def test_decimals_with_an_odd_value_are_no_id_and_the_value_is_named(rng):
    numbers = rng.normal(size=200)
    texts = pd.Series([f"{number:.4f}" for number in numbers])
    texts[7] = "?"
    frame = pd.DataFrame({"size": texts, "other": rng.normal(size=200)})
    with pytest.warns(UserWarning, match=r"'size' became text, because it holds '\?' in row 8: .* leave gaps empty\."):
        model = TableRegressor(Ridge(), random_state=0).fit(frame, numbers)
    assert model.left_out_ == {}
    texts[:] = [str(number) for number in range(200)]
    texts[7] = "?"
    ids = TableRegressor(Ridge(), random_state=0).fit(frame.assign(size=texts), numbers)
    assert ids.left_out_["size"].startswith("is an id")


def test_a_target_may_be_a_frame_of_one_column(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    wanted = TableRegressor(Ridge(), random_state=0).fit(X, y).predict(X)
    for target in (polars.DataFrame({"y": y}), pa.table({"y": y}), polars.Series(y)):
        np.testing.assert_array_equal(TableRegressor(Ridge(), random_state=0).fit(X, target).predict(X), wanted)
    for targets in (polars.DataFrame({"y": y, "z": y}), pa.table({"y": y, "z": y})):
        with pytest.raises(ValueError, match=r"y has the shape \(60, 2\), but a table has one target"):
            TableRegressor(Ridge()).fit(X, targets)


def test_too_few_rows_for_the_folds_of_a_network_are_counted(rng):
    X, y = rng.normal(size=(5, 3)), np.arange(5.0)
    network = PinvRegressor(3, random_state=0)
    with pytest.raises(ValueError, match=r"X has 2 rows: give at least 3, one for each fold\."):
        TableRegressor(network).fit(X[:2], y[:2])
    with pytest.raises(ValueError, match=r"X has 2 different rows: give at least 3"):
        TableRegressor(network).fit(X[[0, 1, 0, 1]], y[:4])
    assert TableRegressor(network).fit(X[:3], y[:3]).predict(X).shape == (5,)


@pytest.mark.parametrize(
    "names", [pd.Index(["b"]), np.array(["b"]), {"b"}, ["b"]], ids=lambda names: type(names).__name__
)
def test_columns_are_named_by_any_collection_and_saved(names, tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    y = frame["a"] + rng.normal(size=60)
    for keep in (None, names):
        model = TableRegressor(QUICK, ignore=names if keep is None else None, keep=keep, random_state=0).fit(frame, y)
        save_model(model, tmp_path / "m.skops")
        loaded = load_model(tmp_path / "m.skops")
        np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
        assert loaded.left_out_ == ({"b": "ignored"} if keep is None else {})
        assert clone(loaded).fit(frame, y).left_out_ == loaded.left_out_
    made = fit_table(frame.assign(y=y), "y", ignore=names, keep=None, n_hidden=3, boosting=False)
    assert made.left_out_ == {"b": "ignored"}
    with pytest.raises(ValueError, match="put the name in a list"):
        fit_table(frame.assign(y=y), "y", ignore="b")


def test_a_frame_is_taken_by_place_where_training_was_on_an_array(rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    model = TableRegressor(Ridge(), random_state=0).fit(X, y)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for rows in (frame, pd.DataFrame(X), polars.from_pandas(frame)):
        with pytest.warns(UserWarning, match="TableRegressor was fitted without feature names: .* by their places"):
            np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    with pytest.warns(UserWarning, match="by their places"):
        np.testing.assert_array_equal(model.coder_.transform(frame), model.coder_.transform(X))
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X[:, ::-1], columns=["x2", "x1", "x0"])), model.predict(X))
    with pytest.raises(ValueError, match="X has 2 features, but TableRegressor is expecting 3"):
        model.predict(frame[["a", "b"]])
    with pytest.raises(ValueError, match="no column 'a'"):
        TableRegressor(Ridge(), random_state=0).fit(frame, y).predict(pd.DataFrame(X))
