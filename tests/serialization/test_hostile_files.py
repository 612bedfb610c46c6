"""Model files made with bad intent, or changed on the way: refused in one sentence, quickly, in little memory."""

import copy
import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ocrep import PinvClassifier, PinvRegressor, TikhonovRegressor, load_model, save_model
from ocrep.serialization import ModelFileError
from ocrep.serialization.archive import RECORD, digest_of
from ocrep.serialization.tree import DEEPEST, check_tree

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
    """Write a file as an adversary would: with a digest that fits."""
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


def test_a_number_cannot_stand_for_a_larger_object_wherever_skops_looks_first(file):
    """The short node of each level comes first in the file, and the long one where skops begins."""
    save_model(PinvRegressor(3), file)
    bomb = node(1)
    for level in range(2, 31):
        short = {**node(level - 1), "__class__": "dict", "__loader__": "DictNode"}
        bomb = {**short, "__id__": level, "content": {"a": node(level - 1)}, "key_types": node(f"k{level}", bomb)}
    change_tree(file, lambda tree: {**tree, **bomb})
    refused(file, "two objects in it have the same number")


def test_a_tree_that_is_too_deep_or_too_large_is_refused():
    deep = node(0)
    for level in range(1, DEEPEST):
        deep = node(level, deep)
    with pytest.raises(ValueError, match="far larger"):
        check_tree(deep)
    with pytest.raises(ValueError, match="far larger"):
        check_tree([[0] * 1000] * 1001)


@pytest.mark.parametrize("number", ["its own", 0, None])
def test_an_array_is_not_read_for_many_objects(number, file):
    """Also if the objects have no number by which the array that was read would be found again."""
    save_model(MODELS["network"], file)

    def same_array_everywhere(tree):
        found = [part for part in walk(tree) if "file" in part]
        for part in found:
            part["file"] = found[0]["file"]
            if number != "its own":
                part["__id__"] = number

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


def test_a_number_in_a_file_does_not_decide_how_much_memory_is_taken(file):
    model = copy.deepcopy(MODELS["pipeline"])
    model[-1].n_features_in_ = 10**9
    save_model(model, file)
    refused(file, "more inputs than the file has bytes")


@pytest.mark.parametrize("model", ["network", "pipeline"])
def test_a_model_that_cannot_predict_is_damaged(model, file):
    """One prediction is tried, by the network at the end of a pipeline too."""
    model = copy.deepcopy(MODELS[model])
    del vars(model[-1] if isinstance(model, Pipeline) else model)["intercept_"]
    save_model(model, file)
    refused(file, "is damaged: AttributeError")


@pytest.mark.parametrize("model", MODELS)
def test_a_change_without_a_new_digest_is_noticed(model, file):
    save_model(MODELS[model], file)
    members = members_of(file)
    for name in sorted(set(members) - {RECORD}):
        with zipfile.ZipFile(file, "w") as archive:
            for other, data in members.items():
                archive.writestr(other, data.replace(b"1", b"2") + b" " if other == name else data)
        refused(file, "its content was changed after it was written")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), model=st.sampled_from(sorted(MODELS)))
def test_a_changed_byte_is_refused_or_harmless(position, value, model, file):
    save_model(MODELS[model], file)
    data = bytearray(file.read_bytes())
    data[int(position * len(data))] = value
    file.write_bytes(data)
    try:
        loaded = load_model(file)
    except ModelFileError:
        return
    # The byte was one that nothing depends on, such as the time of a member of the archive.
    assert (loaded.predict(X) == MODELS[model].predict(X)).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_refused(share, file):
    save_model(MODELS["network"], file)
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    refused(file, "is not a model file written by")
