"""Model files that releases wrote are loaded, and predict what they predicted then."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning
from support.pages import load_tool

import ocrep
from ocrep import literature, rules
from ocrep.serialization import ModelFileError, model_info

record_models = load_tool("record_models")
FILES = sorted(record_models.DATA.glob("*/*.skops"))


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}-{path.stem}" for path in FILES])
def test_an_old_file_is_loaded_and_predicts_as_before(path):
    with warnings.catch_warnings():
        # Pipelines hold estimators of scikit-learn, which says so where its own version differs.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = ocrep.load_model(path)
    expected = np.load(path.parent / "outputs.npz")[path.stem]
    found = record_models.outputs(model, path.stem)
    single = path.stem.endswith("float32")
    np.testing.assert_allclose(found, expected, rtol=1e-4 if single else 1e-9, atol=1e-5 if single else 1e-10)
    assert model_info(path).ocrep_version == path.parent.name


def test_a_file_from_before_the_output_weights_were_renamed_is_refused():
    path = record_models.DATA / "format-1.skops"
    with pytest.raises(
        ModelFileError, match=r"was written by an older ocrep in format 1, .*: train the model again\.$"
    ):
        ocrep.load_model(path)
    assert model_info(path).format == 1


def test_every_estimator_has_a_file():
    public = [getattr(ocrep, name) for name in ocrep.__all__] + [
        getattr(literature, name) for name in literature.__all__
    ]
    estimators = {kind.__name__ for kind in public if inspect.isclass(kind) and hasattr(kind, "get_params")}
    assert estimators <= {path.stem for path in FILES if path.parent.name == "0.1.0"}


def test_an_old_file_goes_on_where_it_stopped():
    X, y, _ = record_models.rows()
    old = ocrep.load_model(record_models.DATA / "0.1.0" / "PinvRegressor-targets.skops")
    both = np.column_stack([y, X[:, 0]])
    fresh = record_models.models()["PinvRegressor-targets"]
    for rule in ("gcv", rules.OCRePCV(n_folds=4)):
        assert old.with_gamma(rule).gamma_ == pytest.approx(fresh.with_gamma(rule).gamma_, rel=1e-6)
    assert old.partial_fit(X, both).gamma_ == pytest.approx(fresh.partial_fit(X, both).gamma_, rel=1e-6)


def test_a_classifier_of_an_older_version_says_why_it_has_no_probabilities():
    model = ocrep.load_model(record_models.DATA / "0.1.0" / "TikhonovClassifier.skops")
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="of an older version"):
        model[-1].predict_proba(record_models.rows()[0])
