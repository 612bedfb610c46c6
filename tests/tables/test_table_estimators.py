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

from ocrep import PinvClassifierCV, PinvRegressorCV, TableClassifier, TableRegressor, load_model, save_model
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
    with pytest.raises(ValueError, match=r"no value in 60 of 300 rows: .*drop_missing_target=True"):
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
        (lambda X, y: (X, y * np.nan), "target is empty"),
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
