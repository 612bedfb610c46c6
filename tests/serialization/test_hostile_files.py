"""Model files made with bad intent, or changed on the way: refused in one sentence, quickly, in little memory."""

import copy
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocrep import PinvClassifier, PinvRegressor, TikhonovRegressor, load_model, save_model
from ocrep.serialization import ModelFileError
from ocrep.serialization.archive import RECORD, digest_of
from ocrep.serialization.validation import DEEPEST, check_tree

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = X[:, 0] + RNG.standard_normal(60)
MODELS = {
    "network": PinvRegressor(6, gamma="kfold", random_state=0).fit(X, Y),
    "classes": PinvClassifier(6, calibrate="loo", random_state=0).fit(
        X, np.where(Y > 0.3, "a", np.where(Y < 0, "b", "c"))
    ),
    "pipeline": make_pipeline(StandardScaler(), TikhonovRegressor(gamma="gcv")).fit(X, Y),
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.skops"


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, members):
    """As an adversary would: with a digest that fits."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if name != RECORD:
                archive.writestr(name, data)
    with zipfile.ZipFile(path, "a") as archive:
        record = {**json.loads(members[RECORD]), "digest": digest_of(archive)}
        archive.writestr(RECORD, json.dumps(record))


def change_tree(path, change):
    members = members_of(path)
    tree = json.loads(members["model.json"])
    members["model.json"] = json.dumps(change(tree) or tree).encode()
    rewrite(path, members)


def refused(path, pattern="is damaged"):
    with pytest.raises(ModelFileError, match=pattern) as error:
        load_model(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def node(number, *children):
    content = [*children]
    return {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "__id__": number,
        "content": content,
    }


def test_nested_references_do_not_multiply(file):
    """Thirty levels, each of which names the one below twice: 2³⁰ visits if they were followed."""
    save_model(PinvRegressor(3), file)
    bomb = node(0)
    for level in range(1, 31):
        bomb = node(level, bomb, node(level - 1))
    change_tree(file, lambda tree: bomb)
    refused(file, "two objects in it have the same number")


def test_a_tree_that_is_too_deep_or_too_large_is_refused():
    deep = node(0)
    for level in range(1, DEEPEST):
        deep = node(level, deep)
    with pytest.raises(ValueError, match="far larger"):
        check_tree(deep)
    with pytest.raises(ValueError, match="far larger"):
        check_tree([[0] * 1000] * 1001)


def test_an_array_is_not_read_for_many_objects(file):
    save_model(MODELS["network"], file)

    def same_array_everywhere(tree):
        found = [part for part in walk(tree) if "file" in part]
        for part in found[1:]:
            part["file"] = found[0]["file"]

    change_tree(file, same_array_everywhere)
    refused(file, "two objects in it share one array")


def walk(part):
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    for child in part if isinstance(part, list) else ():
        yield from walk(child)


@pytest.mark.parametrize(
    "root",
    [
        node(1),
        {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "JsonNode",
            "__id__": 1,
            "content": '"text"',
            "is_json": True,
        },
    ],
)
def test_a_file_that_holds_no_model_is_refused(root, file):
    save_model(PinvRegressor(3), file)
    change_tree(file, lambda tree: {**tree, **root})
    refused(file, "not a model")


@pytest.mark.filterwarnings("ignore:Trying to unpickle")
def test_a_model_that_lacks_its_parameters_is_refused(file):
    """Its attributes have other names than texts, and are thus lost."""
    save_model(MODELS["pipeline"], file)

    def change(part):
        for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            change(child)
        if isinstance(part, dict) and (part.get("__loader__"), part.get("__class__")) == ("TypeNode", "str"):
            part["__class__"] = "tuple"

    change_tree(file, change)
    refused(file, "has no attribute")


def arrays_in(members):
    return sorted(name for name in members if name.endswith(".npy"))


def as_npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


CHANGES = {
    "transposed and longer": lambda a: np.resize(a, tuple(n + 1 for n in a.shape)),
    "NaN": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a,
    "infinity": lambda a: np.full_like(a, np.inf) if a.dtype.kind == "f" else a,
    "texts": lambda a: a.astype("U8"),
    "complex": lambda a: a.astype(complex) if a.dtype.kind == "f" else a,
    "one axis more": lambda a: a[..., None],
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("model", ["network", "classes"])
def test_a_changed_array_is_refused_or_harmless(model, change, file):
    """Each array in turn: the file is damaged, or the model predicts finite numbers, of the right shape."""
    save_model(MODELS[model], file)
    members = members_of(file)
    for name in arrays_in(members):
        array = np.load(io.BytesIO(members[name]), allow_pickle=False)
        rewrite(file, {**members, name: as_npy(CHANGES[change](array))})
        outcome_is_documented(file)


SPECTRA = {
    "UtT": lambda s: np.concatenate([s.UtT, s.UtT]),
    "residual": lambda s: -s.residual - 1.0,
    "mean_H": lambda s: s.mean_H[:-1],
    "mean_T": lambda s: s.mean_T.astype("S3"),
    "discarded": lambda s: np.zeros((2, 2)),
    "sigma": lambda s: s.sigma[::-1].copy(),
    "n_rows": lambda s: 0,
    "weight_sum": lambda s: 0.0,
}


@pytest.mark.parametrize("name", SPECTRA)
def test_a_spectrum_whose_parts_do_not_belong_together_is_refused(name, file):
    """It would be noticed only later, when a summary or an interval is asked for."""
    model = copy.deepcopy(MODELS["network"])
    model.spectrum_ = replace(model.spectrum_, **{name: SPECTRA[name](model.spectrum_)})
    save_model(model, file)
    refused(file)


@pytest.mark.parametrize("value", [float, "text", [1]])
@pytest.mark.parametrize("name", ["n", "n_rows", "weight_sum", "intercept_fitted"])
def test_a_field_that_is_no_number_is_refused(name, value, file):
    """It would be noticed only when a deviation is asked for; skops may hold a type wherever a value stands."""
    model = copy.deepcopy(MODELS["network"])
    model.spectrum_ = replace(model.spectrum_, **{name: value})
    save_model(model, file)
    refused(file)


OTHER_VALUES = [float, "x", -1, 1e308, None, [], {}, np.zeros((2, 3)), np.array(["x"]), MODELS["network"].choice_]


def test_an_attribute_of_another_kind_is_refused_or_harmless(file):
    """Each of those that fit sets, in turn: the file is damaged, or all that a command asks for is there."""
    for name in set(vars(MODELS["network"])) - set(MODELS["network"].get_params()):
        for value in OTHER_VALUES:
            model = copy.deepcopy(MODELS["network"])
            setattr(model, name, value)
            save_model(model, file)
            deviations_are_documented(file)
        delattr(model, name)
        save_model(model, file)
        deviations_are_documented(file)


def deviations_are_documented(path):
    try:
        model = load_model(path)
    except ModelFileError:
        return
    with np.errstate(all="ignore"):  # of a huge γ
        predicted, deviations = model.predict(X, return_std=True)
    assert predicted.shape == deviations.shape == (60,)
    assert not np.isnan(deviations).any()


@pytest.mark.parametrize("value", [np.zeros(0), "three", -1, True, int])
def test_a_number_of_inputs_that_is_none_is_refused(value, file):
    """In an estimator of scikit-learn too: a converter relies on it."""
    model = copy.deepcopy(MODELS["pipeline"])
    model[0].n_features_in_ = value
    save_model(model, file)
    refused(file, "number of inputs")


OTHER_PARTS = {
    "spectrum_": 1,
    "factor_": MODELS["network"].spectrum_,
    "folds_": "text",
    "choice_": float,
    "layer_": MODELS["classes"].layer_.map_,
    "_learned": replace(MODELS["network"]._learned, targets=True),
    "calibrator_": {},
}


@pytest.mark.parametrize("name", OTHER_PARTS)
def test_a_part_of_another_type_is_refused(name, file):
    model = copy.deepcopy(MODELS["network"])
    setattr(model, name, OTHER_PARTS[name])
    save_model(model, file)
    refused(file, "does not belong there")


@pytest.mark.parametrize("change", [lambda D: D[:-1], lambda D: D[:, None], lambda D: np.full_like(D, 1e-320)])
def test_singular_vectors_of_another_spectrum_are_refused(change, file):
    """They are read first when the deviation of a prediction is asked for."""
    model = PinvRegressor(80, random_state=0).fit(X, Y)
    right = model.spectrum_.right
    model.spectrum_ = replace(model.spectrum_, right=replace(right, D=change(right.D)))
    save_model(model, file)
    refused(file)


def test_weights_that_are_whole_numbers_are_refused(file):
    """Features would be rounded to whole numbers, or could not be computed when a deviation is asked for."""
    model = copy.deepcopy(MODELS["network"])
    model.layer_.map_ = replace(model.layer_.map_, weights=model.layer_.map_.weights.astype(np.int8))
    save_model(model, file)
    refused(file, "not floating-point")


@pytest.mark.parametrize("model", MODELS)
def test_a_change_without_a_new_digest_is_noticed(model, file):
    save_model(MODELS[model], file)
    members = members_of(file)
    for name in sorted(set(members) - {RECORD}):
        with zipfile.ZipFile(file, "w") as archive:
            for other, data in members.items():
                archive.writestr(other, data.replace(b"1", b"2") + b" " if other == name else data)
        refused(file, "its content was changed after it was written")


def outcome_is_documented(path):
    try:
        model = load_model(path)
    except ModelFileError as error:
        told = str(error)
    else:
        told = None
    if told is not None:
        assert "\n" not in told
        return
    found = np.asarray(model.predict(X))
    assert found.shape == (60,)
    assert found.dtype.kind != "f" or np.isfinite(found).all()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), model=st.sampled_from(sorted(MODELS)))
def test_a_changed_byte_is_refused_or_harmless(position, value, model, file):
    save_model(MODELS[model], file)
    data = bytearray(file.read_bytes())
    data[int(position * len(data))] = value
    file.write_bytes(data)
    outcome_is_documented(file)
