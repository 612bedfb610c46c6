"""Every classifier has probabilities: without `calibrate`, the softmax of its outputs times one factor."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from support.advice import some_advice
from support.folds import fold_numbers

from ocrep import PinvClassifier, PinvClassifierCV, TikhonovClassifier, scan
from ocrep.datasets import load

pytestmark = some_advice


def some_rows(name):
    X, y = load_digits(return_X_y=True) if name == "digits" else load(name, return_X_y=True)
    return train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)


@pytest.mark.parametrize("gamma", ["ocrep_cv", "kfold", "gcv", "ocrep"])
@pytest.mark.parametrize("name", ["digits", "segment", "diabetes"])
def test_probabilities_of_unseen_rows_are_about_as_good_as_with_the_factor_that_is_best_for_them(name, gamma):
    X, new, y, labels = some_rows(name)
    model = PinvClassifier(100, gamma=gamma, random_state=0).fit(X, y)
    scores = model.decision_function(new)
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    best = min(log_loss(labels, softmax(factor * scores, axis=1)) for factor in 2.0 ** np.arange(-3, 7, 0.25))
    found = log_loss(labels, model.predict_proba(new))
    assert found < 1.05 * best
    by_loo = PinvClassifier(100, gamma=gamma, calibrate="loo", random_state=0).fit(X, y).predict_proba(new)
    assert found < 1.25 * log_loss(labels, by_loo)  # which may change labels


@pytest.mark.parametrize(
    "model",
    [
        PinvClassifier(60, random_state=0),
        PinvClassifier(60, gamma="gcv", random_state=0),
        PinvClassifier(60, gamma=0.01, random_state=0),
        PinvClassifier(60, weight_init="trees", gamma="kfold", random_state=0),
        PinvClassifierCV([{"n_hidden": 30}, {"n_hidden": 60}], ensemble=False, calibrate=None, random_state=0),
        TikhonovClassifier(),
        TikhonovClassifier("ocrep_cv"),
        TikhonovClassifier("gcv", gamma_per_target=True),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_one_factor_changes_no_label_and_probabilities_are_better_than_the_shares_of_the_classes(model, name):
    X, new, y, labels = some_rows(name)
    model.fit(X, y)
    probabilities = model.predict_proba(new)
    np.testing.assert_array_equal(model.predict(new), model.classes_[probabilities.argmax(axis=1)])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(new), rtol=1e-9, atol=1e-12)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    assert log_loss(labels, probabilities) < 0.9 * log_loss(labels, np.tile(shares, (len(labels), 1)))


@pytest.mark.parametrize("gamma", ["kfold", "gcv"])
def test_the_factor_is_that_of_outputs_that_did_not_see_their_row(gamma):
    """By hand: refit without each row, or without each fold, and take the best factor of what is predicted."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    model = TikhonovClassifier(gamma).fit(X, y)
    folds = fold_numbers(X) if gamma == "kfold" else np.arange(60)
    outputs = np.empty(60)
    for v in np.unique(folds):
        other = TikhonovClassifier(model.gamma_).fit(X[folds != v], y[folds != v])
        outputs[folds == v] = other.decision_function(X[folds == v])
    factors = np.linspace(0.05, 10.0, 4000)
    margins = factors[:, None] * np.where(y == 1, outputs, -outputs)
    losses = np.logaddexp(0.0, -margins).sum(axis=1) + (factors / 2.0) ** 2 / 200.0
    np.testing.assert_allclose(model.calibrator_.slope[0, 0], factors[losses.argmin()], atol=0.005)


def test_what_is_not_in_memory_has_probabilities_from_the_squared_error_alone():
    """Streams, `partial_fit` and another γ: the order of the classes is kept, and no row is called too certain."""
    X, new, y, labels = some_rows("iris")
    model = PinvClassifier(20, random_state=0, input_scaling=(X.min(axis=0), X.max(axis=0)))
    once = scan((block for block in [(X[:50], y[:50]), (X[50:], y[50:])]), classes=[0, 1, 2])
    fitted = model.fit(X, y)
    in_blocks = PinvClassifier(20, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    for other in (PinvClassifier(**model.get_params()).fit(once), in_blocks, fitted.with_gamma("gcv")):
        probabilities = other.predict_proba(new)
        np.testing.assert_array_equal(other.predict(new), other.classes_[probabilities.argmax(axis=1)])
        assert log_loss(labels, probabilities) < 0.5  # the shares of the classes have 1.1


def test_outputs_that_tell_nothing_give_the_same_probability_to_all_classes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 3)), rng.integers(0, 3, 3000)
    probabilities = PinvClassifier(20, random_state=0).fit(X, y).predict_proba(X[:200])
    np.testing.assert_allclose(probabilities, 1.0 / 3.0, atol=0.05)
    streamed = PinvClassifier(20, random_state=0).partial_fit(X, y, classes=[0, 1, 2]).predict_proba(X[:200])
    np.testing.assert_allclose(streamed, 1.0 / 3.0, atol=0.1)


def test_several_labels_have_a_factor_each():
    X, _, y, _ = some_rows("iris")
    rng = np.random.default_rng(0)
    Y = np.stack([y > 0, rng.random(len(y)) > 0.5], axis=1).astype(int)
    model = PinvClassifier(20, random_state=0).fit(X, Y)
    probabilities = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), probabilities > 0.5)
    certain = np.abs(probabilities - 0.5).mean(axis=0)
    assert certain[0] > 2.0 * certain[1]


def test_a_layer_that_saw_all_targets_says_which_gamma_gives_probabilities():
    X, _, y, _ = some_rows("iris")
    model = PinvClassifier(20, weight_init="trees", gamma=1.0, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="gamma such as 'kfold'"):
        model.predict_proba(X)


def test_weights_count_as_repeated_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    y = (X[:, 0] + rng.standard_normal(100) > 0).astype(int)
    times = rng.integers(0, 3, 100)
    weighted = TikhonovClassifier("kfold").fit(X, y, sample_weight=times)
    repeated = TikhonovClassifier("kfold").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-4)


@pytest.mark.parametrize("n_rows", [60, 100, 200])
def test_few_rows_of_many_classes_are_calibrated_without_more_errors(n_rows):
    """One factor for all classes, and constants only where the likelihood of left-out rows pays for them."""
    X, y = load_digits(return_X_y=True)
    errors = []
    for seed in range(4):
        some, new, known, labels = train_test_split(X, y, train_size=n_rows, random_state=seed, stratify=y)
        plain, calibrated = (
            PinvClassifier(100, calibrate=how, random_state=seed).fit(some, known) for how in (None, "loo")
        )
        errors.append([np.mean(model.predict(new) != labels) for model in (plain, calibrated)])
        slope = calibrated.calibrator_.slope
        np.testing.assert_allclose(slope, slope[0, 0] / 0.9 * (np.eye(10) - 0.1), atol=1e-12 * slope[0, 0])
        if not calibrated.calibrator_.offset.any():
            np.testing.assert_array_equal(plain.predict(new), calibrated.predict(new))
    without, with_loo = np.mean(errors, axis=0)
    assert with_loo < without + 0.005


def test_constants_of_classes_are_used_where_left_out_rows_pay_for_them():
    """Outputs of least squares hide a class between two others; constants bring it back, and the loss falls."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1500, 1))
    y = np.digitize(x[:, 0] + 0.3 * rng.standard_normal(1500), [-0.5, 0.5])
    plain, calibrated = (TikhonovClassifier(1.0, calibrate=how).fit(x[:1000], y[:1000]) for how in (None, "loo"))
    losses = [log_loss(y[1000:], model.predict_proba(x[1000:])) for model in (plain, calibrated)]
    assert calibrated.calibrator_.offset.any()
    assert losses[1] < losses[0]
