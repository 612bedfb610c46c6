"""ONNX graphs: onnxruntime predicts what we predict, for every estimator, alone and behind scikit-learn's steps."""

import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import skl2onnx
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from support.advice import some_advice
from support.pages import run_page
from support.problems import smooth_problem

from ocrep import (
    PinvClassifier,
    PinvRegressor,
    RandomLayer,
    TikhonovClassifier,
    TikhonovRegressor,
    datasets,
    literature,
)
from ocrep._layers.activations import ACTIVATIONS
from ocrep.estimators import NETWORKS
from ocrep.literature import (
    ELMClassifier,
    ELMRegressor,
    OPELMRegressor,
    PrunedELMRegressor,
    RELMClassifier,
    RELMRegressor,
    TROPELMRegressor,
)
from ocrep.onnx import OnnxExportError, register, save_onnx, to_onnx
from ocrep.onnx.network import ESTIMATORS, network_of

X, Y = smooth_problem(120, 4)
BOTH = np.column_stack([Y, np.cos(Y)])
# Largest difference from our predictions, in standard deviations of the target.
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}

REGRESSORS = [
    PinvRegressor(30, random_state=0),
    TikhonovRegressor(),
    ELMRegressor(30, random_state=0),
    RELMRegressor(30, random_state=0),
    TROPELMRegressor(30, random_state=0),
    OPELMRegressor(30, random_state=0),
    PrunedELMRegressor(30, random_state=0),
]
CLASSIFIERS = [
    PinvClassifier(30, random_state=0),
    PinvClassifier(30, random_state=0, calibrate="loo"),
    TikhonovClassifier(),
    TikhonovClassifier(calibrate="loo"),
    ELMClassifier(30, random_state=0),
    RELMClassifier(30, random_state=0),
]
LABELS = {
    "three words": np.array(["low", "middle", "high"])[np.digitize(Y, [-0.3, 0.5])],
    "two words": np.array(["no", "yes"], dtype=object)[(Y > 0).astype(int)],
    "three numbers": np.array([7, -2, 30])[np.digitize(Y, [-0.3, 0.5])],
    "two numbers": (Y > 0).astype(np.int32),
    "whole floats": np.where(Y > 0, 1.0, -1.0),
    "truths": Y > 0,
}


def name_of(value):
    return f"{value!r:.70}" if not isinstance(value, str) else value


def run(graph, **inputs):
    """What onnxruntime gives, by name."""
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def rounded(values, dtype):
    """What a graph of this type is given, and the same for us, in double."""
    given = np.asarray(values).astype(dtype)
    return given, given.astype(np.float64)


def assert_predicts_as(model, values, target, dtype):
    given, ours = rounded(values, dtype)
    predicted = run(to_onnx(model, dtype=dtype), X=given)["variable"]
    wanted = np.asarray(model.predict(ours)).reshape(len(ours), -1)
    assert predicted.dtype == dtype
    assert predicted.shape == wanted.shape
    spread = np.std(target, axis=0)
    assert (np.abs(predicted - wanted) <= TOLERANCE[dtype] * spread).all()


def assert_classifies_as(model, values, dtype):
    given, ours = rounded(values, dtype)
    results = run(to_onnx(model, dtype=dtype), X=given)
    scores = model.decision_function(ours)
    tolerance = TOLERANCE[dtype] * max(1.0, np.abs(scores).max())
    assert results["scores"].shape == scores.shape
    assert results["scores"].dtype == dtype
    assert np.abs(results["scores"] - scores).max() <= tolerance
    gap = np.abs(scores) if scores.ndim == 1 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    clear = gap > 2 * tolerance
    assert clear.mean() > 0.9
    assert (results["label"] == model.predict(ours))[clear].all()
    assert ("probabilities" in results) == hasattr(model, "predict_proba")
    if "probabilities" in results:
        assert results["probabilities"].dtype == dtype
        assert np.abs(results["probabilities"] - model.predict_proba(ours)).max() <= TOLERANCE[dtype]


both_types = pytest.mark.parametrize("dtype", TOLERANCE)


@pytest.mark.parametrize("target", [Y, BOTH], ids=["one target", "two targets"])
@pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
def test_every_regressor(model, target):
    model = clone(model).fit(X, target)
    for dtype in TOLERANCE:
        assert_predicts_as(model, X, target, dtype)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name_of)
def test_every_classifier(model, labels):
    model = clone(model).fit(X, LABELS[labels])
    for dtype in TOLERANCE:
        assert_classifies_as(model, X, dtype)


@both_types
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direct_link": True, "fit_intercept": True},
        {"input_scaling": None, "fit_intercept": True},
        {"input_scaling": (-2.0, 3.0), "weight_init": "normal", "direct_link": True},
        {"input_scaling": (-np.arange(1.0, 5.0), np.arange(1.0, 5.0))},
        {"weight_init": "pairs", "direct_link": True},
        {"weight_init": "pairs", "input_scaling": None},
        {"input_scaling": "squash", "direct_link": True},
    ],
    ids=name_of,
)
def test_every_activation(activation, options, dtype):
    model = PinvRegressor(30, activation=activation, random_state=1, **options).fit(X, Y)
    assert_predicts_as(model, X, Y, dtype)


@pytest.mark.parametrize("gamma", ["ocrep", "gcv", "kfold"])
@pytest.mark.parametrize("name", [entry for entry in datasets.names() if entry != "delta_ailerons"])
def test_the_bundled_data_sets(name, gamma):
    values, target = datasets.load(name, return_X_y=True)
    numbers = name in ("abalone", "housing", "machine_cpu")
    model = (PinvRegressor if numbers else PinvClassifier)(100, gamma=gamma, random_state=0).fit(values, target)
    for dtype in TOLERANCE:
        if numbers:
            assert_predicts_as(model, values, target, dtype)
        else:
            assert_classifies_as(model, values, dtype)


@both_types
@pytest.mark.parametrize("activation", ["sigmoid", "gaussian"])
@pytest.mark.parametrize("before", [[], [StandardScaler()], [MinMaxScaler()]], ids=name_of)
def test_a_column_far_from_zero_keeps_its_digits(before, activation, dtype):
    far = X + np.array([1e4, 0.1, 0.2, -3e5])
    # The output precision is the target's, so the target stays near zero.
    model = make_pipeline(*(clone(step) for step in before), PinvRegressor(30, activation=activation, random_state=0))
    assert_predicts_as(model.fit(far.astype(np.float32).astype(float), Y), far, Y, dtype)


@both_types
def test_constant_inputs_and_a_model_without_units(dtype):
    flat = np.column_stack([X, np.full(len(X), 7.3)])
    assert_predicts_as(PinvRegressor(20, random_state=0, direct_link=True).fit(flat, Y), flat, Y, dtype)
    empty = PrunedELMRegressor(20, random_state=0).fit(X, np.full(len(X), 3.0))
    assert empty.n_hidden_ == 0
    assert (run(to_onnx(empty, dtype=dtype), X=X.astype(dtype))["variable"] == 3.0).all()


@both_types
def test_a_layer_alone_and_before_a_model(dtype):
    given, ours = rounded(X, dtype)
    layer = RandomLayer(9, random_state=0, direct_link=True).fit(X)
    H = run(to_onnx(layer, dtype=dtype), X=given)["variable"]
    assert H.shape == (len(X), 13)
    np.testing.assert_allclose(H, layer.transform(ours), atol=np.finfo(dtype).eps * 4)
    assert_predicts_as(make_pipeline(RandomLayer(30, random_state=0), TikhonovRegressor()).fit(X, Y), X, Y, dtype)


@both_types
@pytest.mark.parametrize(
    "options", [{}, {"direct_link": False}, {"input_scaling": "squash"}, {"input_scaling": None}], ids=name_of
)
def test_leaves_of_trees(options, dtype):
    for n_hidden in (1, 60):
        model = PinvRegressor(n_hidden, weight_init="trees", gamma=0.1, random_state=0, **options).fit(X, Y)
        assert_predicts_as(model, X, Y, dtype)
    model = PinvClassifier(60, weight_init="trees", random_state=0, **options)
    assert_classifies_as(model.fit(X, LABELS["three words"]), X, dtype)


@both_types
@pytest.mark.parametrize("metric", ["diagonal", "full"])
@pytest.mark.parametrize("layer", [{}, {"weight_init": "rows", "activation": "gaussian"}], ids=name_of)
def test_a_learned_metric(layer, metric, dtype):
    model = PinvRegressor(30, metric=metric, gamma=0.1, random_state=0, **layer).fit(X, Y)
    assert_predicts_as(model, X, Y, dtype)


def test_ties_are_broken_as_we_do():
    layer = RandomLayer(6, activation="hardlimit", input_scaling=None, random_state=0).fit(X)
    layer.map_.biases[:] = 0.0
    zeros = np.zeros((2, 4))
    assert (run(to_onnx(layer, dtype="float64"), X=zeros)["variable"] == layer.transform(zeros)).all()
    for labels in ("three words", "two words"):
        model = TikhonovClassifier(fit_intercept=False).fit(X, LABELS[labels])
        assert (run(to_onnx(model, dtype="float64"), X=zeros)["label"] == model.predict(zeros)).all()


# Pipelines


@both_types
@pytest.mark.parametrize(
    "imputer", [SimpleImputer(), SimpleImputer(strategy="median", add_indicator=True)], ids=name_of
)
def test_gaps_are_filled(imputer, dtype):
    gaps = np.column_stack([X, np.full(len(X), np.nan)])
    gaps[::5, 1] = np.nan
    gaps[3::7, 3] = np.nan
    keep = clone(imputer).set_params(keep_empty_features=True)
    assert_predicts_as(make_pipeline(keep, PinvRegressor(30, random_state=0)).fit(gaps, Y), gaps, Y, dtype)
    drop = make_pipeline(clone(imputer), StandardScaler(), PinvRegressor(30, random_state=0))
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        drop.fit(gaps, Y)
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        assert_predicts_as(drop, gaps, Y, dtype)


@both_types
def test_a_number_may_stand_for_a_gap(dtype):
    gaps = X.copy()
    gaps[::5, 1] = -99.0
    model = make_pipeline(SimpleImputer(missing_values=-99, strategy="constant"), PinvRegressor(30, random_state=0))
    assert_predicts_as(model.fit(gaps, Y), gaps, Y, dtype)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X.copy(), columns=["size", "net weight", "unused", "depth"])
    frame.insert(1, "colour", rng.choice(["red", "green", "blue"], len(X)))
    frame["kind"] = rng.choice(["a", "b"], len(X))
    frame.loc[::6, "size"] = np.nan
    return frame


def fed(frame, columns, dtype):
    return {name: frame[[name]].to_numpy(dtype=object if frame[name].dtype.kind == "O" else dtype) for name in columns}


def columns_model(texts, model, remainder="drop"):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = ColumnTransformer(
        [("t", texts, ["colour", "kind"]), ("n", numbers, ["size", "net weight", "depth"])], remainder=remainder
    )
    return make_pipeline(columns, model)


@both_types
@pytest.mark.parametrize("remainder", ["drop", "passthrough"])
@pytest.mark.parametrize(
    "texts",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="if_binary", sparse_output=False),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
        make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore")),
    ],
    ids=name_of,
)
def test_tables_with_text_and_gaps(texts, remainder, dtype):
    frame = table().astype({"colour": object, "kind": object})
    numbers = ["size", "net weight", "unused", "depth"]
    frame[numbers] = frame[numbers].astype(dtype).astype(float)
    model = columns_model(clone(texts), PinvRegressor(30, random_state=0), remainder).fit(frame, Y)
    graph = to_onnx(model, dtype=dtype)
    columns = [value.name for value in graph.graph.input]
    assert columns == [name for name in frame if name != "unused" or remainder == "passthrough"]
    predicted = run(graph, **fed(frame, columns, dtype))["variable"][:, 0]
    assert np.abs(predicted - model.predict(frame)).max() <= TOLERANCE[dtype] * Y.std()
    with_example = to_onnx(model, dtype=dtype, example=frame.head(3))
    assert [str(value.type) for value in with_example.graph.input] == [str(value.type) for value in graph.graph.input]


@both_types
def test_missing_text_is_the_empty_string(dtype):
    frame = table().astype({"colour": object, "kind": object})
    frame.loc[::9, "colour"] = np.nan
    texts = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder())
    model = columns_model(texts, PinvClassifier(30, random_state=0, calibrate="loo")).fit(frame, LABELS["three words"])
    graph = to_onnx(model, dtype=dtype)
    columns = [value.name for value in graph.graph.input]
    frame[["size", "net weight", "depth"]] = frame[["size", "net weight", "depth"]].astype(dtype).astype(float)
    for stand_in in ("", "nan"):
        given = frame.assign(colour=frame["colour"].where(frame["colour"].notna(), stand_in))
        results = run(graph, **fed(given, columns, dtype))
        assert np.abs(results["probabilities"] - model.predict_proba(frame)).max() <= TOLERANCE[dtype]
        assert (results["label"] == model.predict(frame)).all()


@both_types
def test_text_alone_gives_the_precision_asked_for(dtype):
    frame = table()[["colour", "kind"]].astype(object)
    model = make_pipeline(ColumnTransformer([("t", OneHotEncoder(), ["colour", "kind"])]), TikhonovRegressor())
    predicted = run(to_onnx(model.fit(frame, Y), dtype=dtype), **fed(frame, frame, dtype))["variable"]
    assert predicted.dtype == dtype
    assert np.abs(predicted[:, 0] - model.predict(frame)).max() <= TOLERANCE[dtype] * Y.std()


@both_types
def test_columns_may_have_any_name(dtype):
    names = ["label", "scores", "a:b", "X_double", "variable", "probabilities", "constant", "cast", "a b", "a_b", "ü"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, len(names))).astype(dtype), columns=names)
    columns = ColumnTransformer([("s", StandardScaler(), names[:8])], remainder="passthrough")
    target = frame["label"].to_numpy() > 0
    model = make_pipeline(columns, PinvClassifier(20, random_state=0, calibrate="loo")).fit(frame, target)
    graph = to_onnx(model, dtype=dtype)
    assert [value.name for value in graph.graph.input] == names
    results = run(graph, **fed(frame, names, dtype))
    assert list(results) == ["output_label", "output_probabilities", "output_scores"]
    wanted = model.predict_proba(frame.astype(float))
    assert np.abs(results["output_probabilities"] - wanted).max() <= TOLERANCE[dtype]


def test_a_search_gives_the_model_it_found():
    search = GridSearchCV(PinvRegressor(30, random_state=0), {"gamma": ["ocrep", "gcv"]}, cv=2).fit(X, Y)
    assert_predicts_as(search, X, Y, "float64")


def test_columns_chosen_by_position():
    columns = ColumnTransformer([("s", StandardScaler(), [0, 2])], remainder="passthrough")
    assert_predicts_as(make_pipeline(columns, PinvRegressor(30, random_state=0)).fit(X, Y), X, Y, "float64")


# The file


def test_the_graph_is_valid_and_says_where_it_comes_from(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), PinvClassifier(9, calibrate="loo")).fit(frame, Y > 0)
    save_onnx(model, path)
    assert os.listdir(tmp_path) == ["model.onnx"]
    graph = onnx.load(path)
    onnx.checker.check_model(graph, full_check=True)
    assert {opset.domain: opset.version for opset in graph.opset_import}[""] <= 18
    about = {entry.key: entry.value for entry in graph.metadata_props}
    assert json.loads(about["feature_names"]) == list("abcd")
    assert about["model"] == "Pipeline"
    assert graph.producer_name == "ocrep"
    assert [value.name for value in graph.graph.output] == ["label", "probabilities", "scores"]


def test_an_export_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    with pytest.raises(NotFittedError):
        save_onnx(PinvRegressor(3), path)
    assert path.read_bytes() == b"old"


def test_the_converters_work_without_our_own_call():
    register()
    register()
    given = X.astype(np.float32)
    model = make_pipeline(StandardScaler(), PinvClassifier(9, random_state=0)).fit(given, LABELS["three words"])
    graph = skl2onnx.to_onnx(model, given[:1], options={"zipmap": False})
    results = run(graph, X=given)
    assert results["scores"].dtype == np.float32
    assert np.abs(results["scores"] - model.decision_function(given)).max() < 1e-4
    regressor = PinvRegressor(9, random_state=0).fit(X, Y)
    numbers = skl2onnx.common.data_types.FloatTensorType
    graph = skl2onnx.convert_sklearn(regressor, initial_types=[("a", numbers([None, 1])), ("b", numbers([None, 3]))])
    predicted = run(graph, a=given[:, :1], b=given[:, 1:])["variable"][:, 0]
    assert np.abs(predicted - regressor.predict(given)).max() < 1e-6


def test_the_page_on_models_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_page("docs/models.md", capsys, alone=True) == 4


# What cannot be exported


def test_a_model_that_is_not_fitted():
    for model in (*REGRESSORS, *CLASSIFIERS, RandomLayer(3), make_pipeline(StandardScaler(), PinvRegressor(3))):
        with pytest.raises(NotFittedError):
            to_onnx(clone(model))


def test_a_function_of_ones_own():
    model = PinvRegressor(5, activation=np.cos, random_state=0).fit(X, Y)
    with pytest.raises(OnnxExportError, match="which a graph cannot hold: use one of the named activations"):
        to_onnx(model)


def test_a_gamma_that_is_not_calibrated():
    model = PinvClassifier(9, random_state=0, calibrate="loo").fit(X, Y > 0).with_gamma(1.0)
    with pytest.raises(NotFittedError, match="not calibrated"):
        to_onnx(model)


def test_steps_without_an_onnx_form():
    class Unknown(StandardScaler):
        pass

    with pytest.raises(OnnxExportError, match=r"cannot write a step of this Pipeline, for it says: .*Unknown"):
        to_onnx(make_pipeline(Unknown(), PinvRegressor(5)).fit(X, Y))
    hashed = make_pipeline(HashingVectorizer(n_features=8), TikhonovRegressor("gcv")).fit(
        ["a b", "b c", "c"], [1.0, 2.0, 3.0]
    )
    with pytest.raises(OnnxExportError, match="the model begins with HashingVectorizer"):
        to_onnx(hashed)
    with pytest.raises(OnnxExportError, match="cannot write a step of this Pipeline"):
        to_onnx(make_pipeline(StandardScaler(), "passthrough", PinvRegressor(5)).fit(X, Y))
    frame = table().astype({"colour": object, "kind": object})
    frame.loc[::9, "colour"] = np.nan
    texts = make_pipeline(SimpleImputer(strategy="most_frequent", add_indicator=True), OneHotEncoder())
    with pytest.raises(OnnxExportError, match="add_indicator=True"):
        to_onnx(columns_model(texts, PinvRegressor(5)).fit(frame, Y))


def test_labels_that_no_graph_can_give():
    model = TikhonovClassifier().fit(X, Y > 0)
    model.classes_ = np.array([b"no", b"yes"])
    with pytest.raises(OnnxExportError, match="labels as text or whole numbers"):
        to_onnx(model)
    with pytest.raises(OnnxExportError, match="LinearRegression is not an estimator of ocrep"):
        network_of(LinearRegression().fit(X, Y))


def test_every_public_estimator_has_a_converter():
    public = (*NETWORKS, TikhonovRegressor, TikhonovClassifier, RandomLayer)
    assert set(ESTIMATORS) == {*public, *(getattr(literature, name) for name in literature.__all__)}


@some_advice
def test_inputs_that_no_graph_can_take():
    frame = table()[["colour", "depth"]].astype({"colour": object})
    columns = ColumnTransformer([("t", OneHotEncoder(), [0])], remainder="passthrough")
    model = make_pipeline(columns, PinvRegressor(5)).fit(frame.to_numpy(), Y)
    with pytest.raises(OnnxExportError, match="fit it on a data frame"):
        to_onnx(model)
    model.fit(frame, Y)
    with pytest.raises(OnnxExportError, match="must be a data frame with the 2 columns"):
        to_onnx(model, example=frame[["depth"]])
    with pytest.raises(OnnxExportError, match="the example is sparse"):
        to_onnx(model, example=pytest.importorskip("scipy.sparse").csr_array(X))
    with pytest.raises(ValueError, match="Unknown dtype 'float16'"):
        to_onnx(model, dtype="float16")


def test_an_estimator_that_is_not_ours_is_left_to_skl2onnx():
    assert_predicts_as(LinearRegression().fit(X, Y), X, Y, "float64")


def test_without_skl2onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install \"ocrep\[onnx\]\""):
        to_onnx(PinvRegressor(3).fit(X, Y))


@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name != "hardlimit"])
@pytest.mark.parametrize(
    "options", [{}, {"direct_link": True}, {"n_hidden": 1}, {"input_scaling": None}, {"weight_init": "pairs"}], ids=str
)
def test_a_single_input_keeps_all_its_digits(activation, options):
    # onnxruntime keeps a product with one number in single precision if it can merge it into a MatMul.
    x = X[:, :1] / 3.0
    model = PinvRegressor(**{"n_hidden": 10, "activation": activation, "random_state": 0, **options}).fit(x, Y)
    assert_predicts_as(model, x, Y, "float64")


# Graphs are compared with their models before they are handed out

# Named because its default is about to change; before scikit-learn 1.7 there was no choice.
QUANTILES = {"quantile_method": "averaged_inverted_cdf"} if hasattr(KBinsDiscretizer(), "quantile_method") else {}


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (PolynomialFeatures(2), "cannot load|cannot write|differs from the model"),
        (KBinsDiscretizer(5, encode="onehot-dense", **QUANTILES), "differs from the model"),
    ],
    ids=name_of,
)
def test_a_graph_that_does_not_agree_is_not_written(step, reason, tmp_path):
    model = make_pipeline(step, PinvRegressor(10, random_state=0)).fit(X, Y)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    with pytest.raises(OnnxExportError, match=reason):
        save_onnx(model, path)
    assert path.read_bytes() == b"old"


def test_a_graph_of_another_shape_is_not_handed_out():
    model = make_pipeline(SimpleImputer(), PinvRegressor(10, random_state=0)).fit(X, Y)
    model[0].statistics_ = model[0].statistics_[:, None]
    with pytest.raises(OnnxExportError, match="gives 4 numbers where the model gives 1"):
        to_onnx(model, example=X[:1])


def test_nothing_is_printed_about_a_graph_that_cannot_run(capfd):
    frame = pd.DataFrame({"c": ["a", "b", "b"] * 20})
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["c"])), TikhonovRegressor(1.0)).fit(frame, Y[:60])
    with pytest.raises(OnnxExportError, match="onnxruntime cannot run the graph"):
        to_onnx(model, example=pd.DataFrame({"c": ["new"]}))
    assert capfd.readouterr().err == ""


def test_a_pipeline_of_one_input_keeps_its_promise_or_says_so():
    model = make_pipeline(StandardScaler(), PinvRegressor(10, random_state=0)).fit(X[:, :1], Y)
    try:
        graph = to_onnx(model, dtype="float64")
    except OnnxExportError as error:
        told = str(error)
    else:
        told = ""
        found = run(graph, X=X[:, :1])["variable"].ravel()
        np.testing.assert_allclose(found, model.predict(X[:, :1]), atol=1e-9 * np.std(Y), rtol=0)
    assert not told or "differs from the model" in told
