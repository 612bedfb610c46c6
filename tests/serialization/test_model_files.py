"""Model files: what comes back is what was saved, nothing in a file runs, and an interrupted save harms nothing."""

import contextlib
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import zipfile
from dataclasses import fields, make_dataclass
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.cluster import Birch
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from support.advice import some_advice
from support.problems import smooth_problem

import ocrep
from ocrep import (
    PinvClassifier,
    PinvRegressor,
    RandomLayer,
    TikhonovClassifier,
    TikhonovRegressor,
    load_model,
    rules,
    save_model,
)
from ocrep._layers.activations import ACTIVATIONS
from ocrep.literature import (
    ELMClassifier,
    ELMRegressor,
    OPELMRegressor,
    PrunedELMRegressor,
    RELMClassifier,
    RELMRegressor,
    TROPELMRegressor,
)
from ocrep.serialization import ModelFileError, model_info
from ocrep.serialization.archive import FORMAT, RECORD, digest_of
from ocrep.serialization.tree import OWN, path_of

X, Y = smooth_problem(90, 4)
BOTH = np.column_stack([Y, np.cos(Y)])
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.3, 0.5])]

REGRESSORS = [
    PinvRegressor(20, random_state=0),
    PinvRegressor(20, random_state=np.random.RandomState(3), gamma=0.1, direct_link=True, fit_intercept=True),
    PinvRegressor("auto", max_hidden=15, random_state=0, weight_scale=0.5),
    PinvRegressor(20, random_state=0, gamma="kfold", store_folds=3),
    PinvRegressor(20, random_state=0, input_scaling=(np.full(4, -2.0), np.full(4, 2.0)), weight_init="orthogonal"),
    *(PinvRegressor(20, random_state=0, activation=name) for name in ACTIVATIONS),
    PinvRegressor(20, random_state=0, weight_init="pairs", units_see=2),
    PinvRegressor(20, random_state=0, input_scaling="squash"),
    PinvRegressor(20, random_state=0, weight_init="trees"),
    PinvRegressor(20, random_state=0, weight_init="pairs", activation="gaussian"),
    TikhonovRegressor(),
    TikhonovRegressor(rules.KFold(n_folds=4, grid=(0.1, 1.0))),
    ELMRegressor(20, random_state=0),
    RELMRegressor(20, random_state=0),
    TROPELMRegressor(20, random_state=0),
    OPELMRegressor(20, random_state=0),
    PrunedELMRegressor(20, random_state=0),
]
CLASSIFIERS = [
    PinvClassifier(20, random_state=0, calibrate="loo"),
    PinvClassifier(20, random_state=0, class_weight="balanced"),
    TikhonovClassifier(class_weight={"low": 2.0}),
    ELMClassifier(20, random_state=0),
    RELMClassifier(20, random_state=0),
]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.skops"


def members(file):
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def nodes(part):
    if isinstance(part, dict) and isinstance(part.get("__loader__"), str):
        yield part
    for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from nodes(child)


def own_names(file):
    found = {f"{node['__module__']}.{node['__class__']}" for node in nodes(json.loads(members(file)["model.json"]))}
    return {name for name in found if name.startswith("ocrep")}


@pytest.fixture
def there_and_back(file):
    """A function that saves and loads a model; the file names none of our private modules."""

    def travel(model, **options):
        save_model(model, file)
        written = own_names(file)
        assert written <= set(OWN)
        assert not any(part.startswith("_") for name in written for part in name.split("."))
        if type(model).__module__.startswith("ocrep."):
            assert model_info(file).type_name in written
        return load_model(file, **options)

    return travel


def same_state(one, other):
    """Whether two fitted values are equal bit for bit, through all objects they consist of."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and (one == other).all()
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_state(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_state, one, other))
    if isinstance(one, np.random.RandomState):
        return same_state(one.get_state(), other.get_state())
    if type(one).__module__.startswith("ocrep"):
        return type(one) is type(other) and same_state(one.__getstate__(), other.__getstate__())
    return one == other or (one != one and other != other)


@some_advice
@pytest.mark.parametrize("target", [Y, BOTH], ids=["one target", "two targets"])
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: f"{model!r:.60}".split(" at ")[0])
def test_a_regressor_comes_back_bit_for_bit(model, target, there_and_back):
    model = clone(model).fit(X, target)
    loaded = there_and_back(model)
    assert same_state(model, loaded)
    assert (loaded.predict(X) == model.predict(X)).all()
    assert same_state(clone(loaded), clone(model))


@pytest.mark.parametrize("labels", [LABELS, LABELS == "low", Y > 0, (LABELS == "low").astype(int)])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: f"{model!r:.60}".split(" at ")[0])
def test_a_classifier_comes_back_bit_for_bit(model, labels, there_and_back):
    model = clone(model)
    if isinstance(getattr(model, "class_weight", None), dict):
        model.set_params(class_weight={np.unique(labels)[0].item(): 2.0})
        if labels.dtype == bool:
            model.set_params(class_weight=None)
    model.fit(X, labels)
    loaded = there_and_back(model)
    assert same_state(model, loaded)
    assert (loaded.predict(X) == labels).mean() == (model.predict(X) == labels).mean()
    assert (loaded.decision_function(X) == model.decision_function(X)).all()
    if getattr(model, "calibrate", None):
        assert (loaded.predict_proba(X) == model.predict_proba(X)).all()


def test_a_layer_comes_back_and_so_does_a_model_without_fit(there_and_back):
    layer = RandomLayer(7, random_state=0, direct_link=True).fit(X)
    assert (there_and_back(layer).transform(X) == layer.transform(X)).all()
    unfitted = PinvRegressor(3, gamma=rules.OCReP(floor=0.0))
    assert there_and_back(unfitted).get_params() == unfitted.get_params()


@pytest.mark.parametrize("name", rules.names())
def test_every_rule_can_be_kept(name, there_and_back):
    rule = rules.resolve(name)
    assert there_and_back(TikhonovRegressor(rule)).gamma == rule


def test_a_loaded_model_goes_on_learning(there_and_back):
    model = PinvRegressor(20, random_state=0, store_folds=True, gamma="kfold").fit(X[:50], Y[:50])
    loaded = there_and_back(model)
    assert loaded.choice_.rule == "kfold"
    assert loaded.choice_.curve is not None
    for gamma in ("gcv", "ocrep_cv", 0.5):
        assert loaded.with_gamma(gamma).gamma_ == model.with_gamma(gamma).gamma_
    assert same_state(loaded.predict(X, return_std=True), model.predict(X, return_std=True))
    assert same_state(loaded.partial_fit(X[50:], Y[50:]), model.partial_fit(X[50:], Y[50:]))
    assert loaded.factor_.counts.n_rows == len(X)


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": X[:, 0], "weight": X[:, 1], "colour": rng.choice(["red", "green", "blue"], len(X)), "kind": LABELS}
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "colour"] = None
    return frame


@some_advice
def test_a_pipeline_with_text_and_gaps_comes_back(there_and_back):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    texts = make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder())
    columns = ColumnTransformer([("n", numbers, ["size", "weight"]), ("t", texts, ["colour", "kind"])])
    frame = table().astype({"colour": object})
    frame["colour"] = frame["colour"].where(frame["colour"].notna(), None)
    model = make_pipeline(columns, PinvRegressor(20, random_state=0)).fit(frame, Y)
    assert (there_and_back(model).predict(frame) == model.predict(frame)).all()
    plain = ColumnTransformer([("t", OneHotEncoder(handle_unknown="ignore"), ["colour"])], remainder="drop")
    model = make_pipeline(plain, TikhonovClassifier()).fit(table(), LABELS)
    assert (there_and_back(model).predict(table()) == model.predict(table())).all()


def test_the_file_says_how_it_was_written(file):
    save_model(make_pipeline(StandardScaler(), PinvRegressor(5)), file)
    info = model_info(file)
    assert info.type_name == "sklearn.pipeline.Pipeline"
    assert info.ocrep_version == ocrep.__version__
    assert info.format == FORMAT
    assert info.created.endswith("+00:00")
    with pytest.raises(AttributeError):
        info.format = 2


# What cannot be saved


def test_functions_of_ones_own_are_refused_before_anything_is_written(file):
    def half(Z):
        return Z / 2

    for model in (PinvRegressor(5, activation=half), make_pipeline(StandardScaler(), RandomLayer(activation=np.tanh))):
        with pytest.raises(ModelFileError, match="holds no code: use one of the named activations"):
            save_model(model, file)
    with pytest.raises(ModelFileError, match="function without a name"):
        save_model(make_pipeline(FunctionTransformer(lambda Z: Z), PinvRegressor(5)), file)
    with pytest.raises(ModelFileError, match="True or False as a key"):
        save_model(PinvClassifier(5, class_weight={True: 2.0}), file)
    with pytest.raises(ModelFileError, match="skops says"):
        save_model(make_pipeline(Birch(), PinvRegressor(5)), file)
    with pytest.raises(TypeError, match="this is a dict"):
        save_model({"model": 1}, file)
    assert not file.exists()


# What cannot be loaded


class Plotter:
    """What pickle would run."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def rewritten(file, **changed):
    """The same file with other values in its record."""
    content = members(file)
    record = {**json.loads(content["ocrep.json"]), **changed}
    content["ocrep.json"] = json.dumps({key: value for key, value in record.items() if value is not ...}).encode()
    write_zip(file, content)


def write_zip(file, content):
    """A zip file with a record whose digest fits, if the record makes sense."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in content.items():
            if name != RECORD:
                archive.writestr(name, data)
    with zipfile.ZipFile(file, "a") as archive:
        record = content.get(RECORD)
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            record = json.dumps({**json.loads(record), "digest": digest_of(archive)})
        if record is not None:
            archive.writestr(RECORD, record)


def test_a_pickle_is_refused_and_nothing_in_it_runs(file, tmp_path):
    mark = tmp_path / "ran"
    file.write_bytes(pickle.dumps(Plotter(mark)))
    for read in (load_model, model_info):
        with pytest.raises(ModelFileError, match="looks like a pickle, which could run code and is never opened"):
            read(file)
    assert not mark.exists()
    with open(file, "rb") as stream:
        pickle.load(stream)
    assert mark.exists(), "the pickle was harmless, so the test above showed nothing"


@pytest.mark.parametrize("loader", ["ConstructorFromReduceNode", "FunctionNode", "ObjectNode", "TypeNode"])
def test_a_crafted_file_that_names_a_function_is_refused_by_that_name(loader, file, tmp_path):
    mark = tmp_path / "ran"
    save_model(PinvRegressor(3).fit(X, Y), file)
    content = members(file)
    schema = json.loads(content["model.json"])
    text = {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(f"touch {mark}"),
    }
    call = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": [text]}
    schema["content"]["content"]["gamma_"] = {
        "__class__": "system",
        "__module__": "os",
        "__loader__": loader,
        "content": call,
    }
    write_zip(file, {**content, "model.json": json.dumps(schema)})
    with pytest.raises(ModelFileError, match=r"not trusted: os\.system\. If you know"):
        load_model(file)
    assert not mark.exists()


def test_further_types_are_built_only_if_they_are_named(file):
    model = make_pipeline(FunctionTransformer(smooth_problem), PinvRegressor(3))
    save_model(model, file)
    with pytest.raises(ModelFileError, match=r"not trusted: support\.problems\.smooth_problem"):
        load_model(file)
    assert load_model(file, trusted="support.problems.smooth_problem")[0].func is smooth_problem
    assert load_model(file, trusted=["support.problems.smooth_problem"])[0].func is smooth_problem
    save_model(make_pipeline(Scaler(), PinvRegressor(3)), file)
    assert isinstance(load_model(file, trusted=[Scaler])[0], Scaler)
    assert isinstance(load_model(file, trusted=Scaler)[0], Scaler)


class Scaler(StandardScaler):
    """A transformer that no list knows."""


def damaged_files():
    saved = io.BytesIO()
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("data.npy", b"x")
    raw = skops.io.dumps(PinvRegressor(3))
    return {
        "empty": (b"", "it is empty"),
        "noise": (bytes(np.random.default_rng(0).integers(0, 256, 500, dtype=np.uint8)), "of another kind"),
        "text": (b"a,b\n1,2\n", "of another kind"),
        "cut short": (raw[: len(raw) // 2], "begins like one, but is cut short"),
        "other zip": (saved.getvalue(), "a zip file, but not one written by"),
        "plain skops": (raw, "a zip file, but not one written by"),
    }


@pytest.mark.parametrize("kind", damaged_files())
def test_what_is_no_model_file_is_said_in_one_sentence(kind, file):
    content, sentence = damaged_files()[kind]
    file.write_bytes(content)
    for read in (load_model, model_info):
        with pytest.raises(ModelFileError, match=sentence) as error:
            read(file)
        assert str(file) in str(error.value)
        assert "\n" not in str(error.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.skops"):
        load_model(tmp_path / "nowhere.skops")
    with pytest.raises(ModelFileError, match="is a folder"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"ocrep_version": "0.9.3"},
        {"ocrep_version": "1.0.0"},
        {"format": FORMAT + 1},
    ],
)
def test_a_newer_file_is_refused_politely(changed, file):
    save_model(PinvRegressor(3), file)
    rewritten(file, **changed)
    version = changed.get("ocrep_version", ocrep.__version__)
    number = changed.get("format", FORMAT)
    sentence = f"has format {number} and was written by ocrep {version}, and this is ocrep {ocrep.__version__}, "
    with pytest.raises(ModelFileError, match=f"{sentence}which reads formats up to {FORMAT}: upgrade with pip"):
        load_model(file)
    assert model_info(file).ocrep_version == version


@pytest.mark.parametrize("version", ["0.0.7", "0.1.99", "0.1.dev3"])
def test_an_older_file_and_one_of_the_same_minor_version_load(version, file):
    save_model(PinvRegressor(3), file)
    rewritten(file, ocrep_version=version)
    assert load_model(file).n_hidden == 3


# Names in files


def with_tree(file, change):
    """The same file with a changed tree."""
    content = members(file)
    write_zip(file, {**content, "model.json": change(content["model.json"].decode())})


def test_a_public_type_stands_in_files_under_the_name_that_users_import():
    for name, kind in OWN.items():
        room, _, own = name.rpartition(".")
        public = getattr(ocrep, room.removeprefix("ocrep."), None) if room != "ocrep" else ocrep
        if own in getattr(public, "__all__", ()):
            assert getattr(public, own) is kind
    assert {f"ocrep.{name}" for name in ("PinvRegressor", "Factor", "rules.KFold", "literature.ELMRegressor")} <= set(
        OWN
    )
    assert len({path_of(kind) for kind in OWN.values()}) == len(OWN)


def in_a_new_module(monkeypatch, *kinds):
    """Let these classes live in a module that no file has heard of."""
    module = ModuleType("somewhere_new")
    for kind in kinds:
        monkeypatch.setattr(kind, "__module__", module.__name__)
        setattr(module, kind.__name__, kind)
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_files_survive_when_classes_move_to_another_module(file, monkeypatch):
    model = PinvRegressor(5, gamma=rules.KFold(), random_state=0).fit(X, Y)
    save_model(model, file)
    in_a_new_module(monkeypatch, ocrep.Factor, rules.KFold, PinvRegressor)
    loaded = load_model(file)
    monkeypatch.undo()
    assert same_state(loaded, model)


def test_files_survive_when_fields_change_places(file):
    model = PinvRegressor(5, gamma="kfold", random_state=0).fit(X, Y)
    save_model(model, file)
    with_tree(file, lambda text: json.dumps(reversed_fields(json.loads(text))))
    assert same_state(load_model(file), model)


def test_files_survive_when_a_class_has_slots_no_longer(file, monkeypatch):
    save_model(PinvRegressor(5, gamma=rules.KFold(n_folds=4), random_state=0).fit(X, Y), file)
    without_slots = make_dataclass("KFold", [(field.name, object) for field in fields(rules.KFold)], frozen=True)
    in_a_new_module(monkeypatch, without_slots)
    monkeypatch.setitem(OWN, "ocrep.rules.KFold", without_slots)
    loaded = load_model(file).gamma
    assert isinstance(loaded, without_slots)
    assert loaded.n_folds == 4


def reversed_fields(part):
    if isinstance(part, list):
        return [reversed_fields(child) for child in part]
    if not isinstance(part, dict):
        return part
    part = {key: reversed_fields(child) for key, child in part.items()}
    if "fields" in part:
        part["fields"] = dict(reversed(part["fields"].items()))
    return part


@pytest.mark.parametrize(
    "name", ["ocrep.Novelty", "ocrep.rules.Novelty", "ocrep._linalg.factor.Factor", "ocrep.cli.main"]
)
def test_an_unknown_type_of_ours_is_refused(name, file):
    save_model(PinvRegressor(3).fit(X, Y), file)
    module, _, own = name.rpartition(".")
    old, new = '"__class__": "Factor", "__module__": "ocrep"', f'"__class__": "{own}", "__module__": "{module}"'
    with_tree(file, lambda text: text.replace(old, new))
    sentence = f"holds {re.escape(name)}, which ocrep {ocrep.__version__} does not know: upgrade with pip"
    for trusted in ((), [name]):
        with pytest.raises(ModelFileError, match=sentence) as error:
            load_model(file, trusted=trusted)
        assert "\n" not in str(error.value)


def test_a_type_of_ours_without_a_name_is_not_written(file):
    with pytest.raises(ModelFileError, match=r"holds ocrep\.datasets\..*load, which is not among the types"):
        save_model(make_pipeline(FunctionTransformer(ocrep.datasets.load), PinvRegressor(3)), file)
    assert not file.exists()


@pytest.mark.parametrize("change", [{"triangular": "Q"}, {"triangular": None}], ids=["renamed", "missing"])
def test_a_file_whose_types_had_other_fields_is_refused(change, file):
    save_model(PinvRegressor(3).fit(X, Y), file)

    def changed(text):
        tree = json.loads(text)
        for node in nodes(tree):
            if node["__class__"] == "Factor":
                renamed = {change.get(name, name): child for name, child in node["fields"].items()}
                node["fields"] = {name: child for name, child in renamed.items() if name}
        return json.dumps(tree)

    with_tree(file, changed)
    with pytest.raises(ModelFileError, match=r"in which ocrep\.Factor had other fields"):
        load_model(file)


def test_state_in_the_form_of_skops_is_not_accepted_for_our_dataclasses(file):
    save_model(PinvRegressor(3).fit(X, Y), file)
    with_tree(file, lambda text: text.replace('"fields"', '"content"'))
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(file)


def test_a_second_tree_hidden_in_a_file_is_refused(file):
    save_model(PinvRegressor(3), file)
    write_zip(file, {**members(file), "schema.json": b"{}"})
    with pytest.raises(ModelFileError, match="a zip file, but not one written by"):
        load_model(file)


def test_a_dict_with_the_keys_of_a_node_comes_back(there_and_back):
    keys = {"__loader__": "a", "__module__": "ocrep", "__class__": "b"}
    model = make_pipeline(FunctionTransformer(np.sqrt, kw_args=keys), PinvRegressor(3))
    assert there_and_back(model)[0].kw_args == keys


@pytest.mark.parametrize(
    "changed",
    [
        {"ocrep_version": ...},
        {"ocrep_version": "new"},
        {"ocrep_version": 3},
        {"format": "one"},
        {"format": "1"},
        {"created": []},
        {"format": None},
    ],
)
def test_a_record_without_sense_is_damage(changed, file):
    save_model(PinvRegressor(3), file)
    rewritten(file, **changed)
    with pytest.raises(ModelFileError, match="is damaged: its record does not say"):
        load_model(file)


@pytest.mark.parametrize("name", ["model.json", "ocrep.json"])
@pytest.mark.parametrize("text", [b"{", b"[]", b"[" * 100_000, b"\xff"])
def test_members_without_sense_are_damage(name, text, file):
    save_model(PinvRegressor(3), file)
    write_zip(file, {**members(file), name: text})
    with pytest.raises(ModelFileError):
        load_model(file)


# Saving that is interrupted


def test_an_error_while_saving_leaves_the_old_file(file, monkeypatch):
    save_model(PinvRegressor(3), file)
    old = file.read_bytes()

    writestr = zipfile.ZipFile.writestr

    def interrupted(archive, name, data):
        if name == "ocrep.json":  # the last member
            raise KeyboardInterrupt
        writestr(archive, name, data)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(PinvRegressor(4), file)
    monkeypatch.undo()
    assert file.read_bytes() == old
    assert os.listdir(file.parent) == [file.name]


def test_a_process_killed_while_saving_leaves_the_old_file(file):
    save_model(PinvRegressor(3), file)
    code = f"""
import os, signal, zipfile
from ocrep import PinvRegressor, save_model
writestr = zipfile.ZipFile.writestr
def die(archive, name, data):
    if name != "model.json":
        return writestr(archive, name, data)
    archive.fp.write(data[: len(data) // 2].encode())
    archive.fp.flush()
    os.kill(os.getpid(), signal.SIGKILL)
zipfile.ZipFile.writestr = die
save_model(PinvRegressor(4), {str(file)!r})
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert load_model(file).n_hidden == 3


def test_without_skops_the_extra_is_named(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for call in (lambda: load_model(file), lambda: save_model(PinvRegressor(3), file)):
        with pytest.raises(ImportError, match=r"pip install \"ocrep\[models\]\""):
            call()


def test_a_small_file_does_not_fill_the_memory(file):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", "{}")
        archive.writestr("ocrep.json", b" " * 10**7)
    with pytest.raises(ModelFileError, match="unpack to far more"):
        load_model(file)


@pytest.mark.parametrize(
    "model",
    [
        VotingRegressor([("a", PinvRegressor(5, random_state=0)), ("b", TikhonovRegressor())]),
        StackingRegressor([("a", PinvRegressor(5, random_state=0))], TikhonovRegressor()),
        make_pipeline(SelectKBest(f_regression, k=2), PinvRegressor(5, random_state=0)),
    ],
    ids=["voting", "stacking", "selection"],
)
def test_models_of_models_come_back(model, there_and_back):
    model.fit(X, Y)
    np.testing.assert_array_equal(there_and_back(model).predict(X), model.predict(X))
