"""Classes with few rows, or none, where probabilities are calibrated: no column is lost, no label is wrong for it."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from support.advice import some_advice

from ocrep import PinvClassifier, PinvClassifierCV, TikhonovClassifier, load_model, save_model, scan
from ocrep.onnx import to_onnx

LAYERS = [{"n_hidden": 40, "direct_link": True, "fit_intercept": True}, {"n_hidden": 10}]


def blobs(n, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(n_classes, 4))
    y = rng.integers(0, n_classes, n)
    return centres[y] + rng.normal(size=(n, 4)), y


def probabilities(model, X):
    """Those of all classes, after checks that hold for every model."""
    found = model.predict_proba(X)
    assert found.shape == (len(X), len(model.classes_))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(model.predict(X), model.classes_[found.argmax(axis=1)])
    return found


@pytest.mark.parametrize("unseen", [-1, 1, 7])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_class_that_was_named_and_has_no_row_changes_nothing_else(n_classes, unseen):
    X, y = blobs(400, n_classes)
    y = 2 * y
    classes = np.unique([*y, unseen])
    with_unseen = PinvClassifier(30, calibrate="loo", random_state=0).fit(scan([(X, y)], classes=classes.tolist()))
    found = probabilities(with_unseen, X)
    without = PinvClassifier(30, calibrate="loo", random_state=0).fit(X, y)
    seen = with_unseen.classes_ != unseen
    assert found[:, ~seen].max() < 1.0 / len(X)
    assert np.mean(with_unseen.predict(X) == without.predict(X)) > 0.99
    np.testing.assert_allclose(found[:, seen], without.predict_proba(X), atol=0.03)


@some_advice
@pytest.mark.parametrize("classes", [["a", "b"], ["b", "a", "c"]])
def test_where_all_rows_are_of_one_class_it_is_predicted(classes):
    X, _ = blobs(50)
    model = TikhonovClassifier(calibrate="loo").fit(scan([(X, np.full(50, "a"))], classes=classes))
    found = probabilities(model, X)
    assert set(model.predict(X)) == {"a"}
    assert (found[:, 1:] < 0.02).all()


def test_a_class_whose_rows_do_not_count_is_not_predicted():
    X, y = blobs(400)
    model = PinvClassifier(30, class_weight={1: 0.0}, calibrate="loo", random_state=0).fit(X, y)
    assert probabilities(model, X)[:, 1].max() < 1.0 / 200
    assert set(model.predict(X)) == {0, 2}


@pytest.mark.parametrize("n_rare", [1, 3])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_rare_class_is_in_every_sample(n_rare, place):
    """A sample of 300 rows would miss it most of the time; all rows have it."""
    X, y = blobs(3000, 2)
    labels = np.array([c for c in range(3) if c != place])[y]
    rare = np.arange(n_rare)
    X[rare], labels[rare] = 30.0, place
    model = PinvClassifierCV(LAYERS, selection_rows=300, random_state=0, ensemble=False).fit(X, labels)
    found = probabilities(model, X)
    uncalibrated = PinvClassifierCV(LAYERS, selection_rows=300, random_state=0, calibrate=None, ensemble=False).fit(
        X, labels
    )
    assert model.score(X, labels) > uncalibrated.score(X, labels) - 0.01
    if n_rare > 1:  # without its only row, nothing is known of a class
        assert set(model.predict(X[rare])) == {place}
    others = found[n_rare:, place]
    assert others.mean() < 5.0 * n_rare / len(X)  # its share of all rows, not of those in the sample


@some_advice
def test_the_shares_of_classes_are_those_of_all_rows():
    """Where inputs say nothing, probabilities are shares; a sample has too many rows of the rare class."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(20_000, 3)), rng.choice(3, 20_000, p=[0.001, 0.3, 0.699])
    model = PinvClassifierCV(LAYERS[1:], selection_rows=2_000, random_state=0, ensemble=False).fit(X, labels)
    shares = np.bincount(labels) / len(labels)
    np.testing.assert_allclose(probabilities(model, X).mean(axis=0), shares, rtol=0.15)


def test_rare_classes_are_sampled_alike_wherever_the_rows_are():
    X, y = blobs(900, 2)
    labels = np.array(["common", "usual"])[y]
    labels[[5, 500, 850]] = "rare"
    kinds = [
        (X[::-1].copy(), labels[::-1].copy()),
        (scan([(X[:400], labels[:400]), (X[400:], labels[400:])]),),
        (da.from_array(X, chunks=(250, 4)), da.from_array(labels, chunks=250)),
    ]
    memory = PinvClassifierCV(LAYERS, selection_rows=200, random_state=0, ensemble=False).fit(X, labels)
    assert memory.classes_.tolist() == ["common", "rare", "usual"]
    for rows in kinds:
        model = PinvClassifierCV(LAYERS, selection_rows=200, random_state=0, ensemble=False).fit(*rows)
        scores = [m.cv_results_["mean_test_score"] for m in (model, memory)]
        np.testing.assert_allclose(*scores, rtol=1e-9)
        np.testing.assert_allclose(model.predict_proba(X), memory.predict_proba(X), atol=1e-5)


def test_a_rare_label_of_several_is_in_every_sample():
    X, y = blobs(3000, 3)
    labels = (y[:, None] == np.arange(3)).astype(int)
    X[:3], labels[:3, 2] = 30.0, 1
    labels[3:, 2] = 0
    model = PinvClassifierCV(LAYERS, selection_rows=300, random_state=0, ensemble=False).fit(X, labels)
    assert model.predict(X[:3])[:, 2].all()
    assert model.predict(X[3:])[:, 2].mean() < 0.01


@some_advice
def test_the_shares_of_several_labels_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    labels = (rng.random((20_000, 3)) < [0.001, 0.3, 0.9995]).astype(int)
    model = PinvClassifierCV(LAYERS[1:], selection_rows=1_000, random_state=0, ensemble=False).fit(X, labels)
    found, shares = model.predict_proba(X).mean(axis=0), labels.mean(axis=0)
    np.testing.assert_allclose(found, shares, rtol=0.3)
    np.testing.assert_allclose(1.0 - found, 1.0 - shares, rtol=0.3)
    assert not model.predict(X)[:, 0].any()


def test_classes_of_no_weight_and_named_ones_may_have_a_weight_where_a_sample_chooses():
    X, y = blobs(3000)
    model = PinvClassifierCV(LAYERS, selection_rows=300, class_weight={1: 0.0}, random_state=0, ensemble=False).fit(
        X, y
    )
    assert probabilities(model, X)[:, 1].max() < 0.01
    rows = scan([(X, y)], classes=[0, 1, 2, 9])
    model = PinvClassifierCV(LAYERS, selection_rows=300, class_weight={9: 2.0}, random_state=0, ensemble=False).fit(
        rows
    )
    assert probabilities(model, X)[:, 3].max() < 0.01
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("selection_rows", [300, 3000])
def test_the_scale_of_weights_does_not_matter(several, selection_rows):
    X, y = blobs(1500)
    labels = (y[:, None] == np.arange(3)).astype(int) if several else y
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    models = [
        PinvClassifierCV(LAYERS, selection_rows=selection_rows, random_state=0, ensemble=False).fit(
            X, labels, sample_weight=scale * weight
        )
        for scale in (1.0, 1e-6)
    ]
    np.testing.assert_allclose(*(model.predict_proba(X) for model in models), atol=1e-4)


def test_weights_that_leave_one_class_are_named_where_a_sample_chooses():
    X, y = blobs(3000)
    with pytest.raises(ValueError, match="rows of positive weight hold only one class"):
        PinvClassifierCV(LAYERS, selection_rows=300, ensemble=False).fit(X, y, sample_weight=(y == 0) * 1.0)


def test_a_model_with_a_class_without_rows_is_saved_and_exported(tmp_path):
    X, y = blobs(300)
    model = PinvClassifier(20, calibrate="loo", random_state=0).fit(scan([(X, y)], classes=[0, 1, 2, 3]))
    save_model(model, tmp_path / "model.skops")
    assert np.array_equal(load_model(tmp_path / "model.skops").predict_proba(X), model.predict_proba(X))
    assert to_onnx(model) is not None  # compared with the model on rows of its own


# ------------------------------------------------------------------------------
# Few rows of a class: the outputs of a row that is left out speak against its class, which is then hardly known.


CALIBRATED = {
    "features": TikhonovClassifier(calibrate="loo"),
    "network": PinvClassifier(20, calibrate="loo", random_state=0),
    "stack": PinvClassifierCV("quick", random_state=0),
}


@pytest.mark.parametrize("model", CALIBRATED.values(), ids=CALIBRATED)
def test_one_row_of_each_class_is_not_turned_around(model):
    rng = np.random.default_rng(0)
    centers = 8.0 * np.eye(3)
    model = clone(model).fit(centers + rng.normal(size=(3, 3)), ["a", "b", "c"])
    X = np.repeat(centers, 50, axis=0) + rng.normal(size=(150, 3))
    assert np.mean(model.predict(X) == np.repeat(["a", "b", "c"], 50)) > 0.9


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("model", CALIBRATED.values(), ids=CALIBRATED)
def test_a_rare_class_keeps_its_order(model, several):
    """Between rows of both classes that are far apart, those of the rare one have the larger probability."""
    rng = np.random.default_rng(1)

    def rows(n, n_rare):
        X = rng.normal(size=(n, 4))
        X[:n_rare, 0] += 6.0
        return X, np.arange(n) < n_rare

    X, rare = rows(60, 2)
    y = np.column_stack([rare, X[:, 1] > 0.0]).astype(int) if several else rare
    model = clone(model).fit(X, y)
    X, rare = rows(400, 100)
    probability = model.predict_proba(X)
    probability = probability[:, 0] if several else probability[:, 1]
    assert roc_auc_score(rare, probability) > 0.9
