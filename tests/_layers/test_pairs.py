"""Units from pairs of rows: their levels at the two rows, the law of the pairs, and what must not change them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.pipeline import make_pipeline
from support.advice import some_advice
from support.problems import smooth_problem

from ocrep import PinvClassifier, PinvRegressor, RandomLayer, TikhonovRegressor

X, Y = smooth_problem(60, 4)
X = X * [1.0, 10.0, 0.01, 3.0] + [0.0, 100.0, 5.0, -7.0]
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.0, 0.7])]

LEVELS = {
    "sigmoid": (0.25, 0.75),
    "tanh": (-0.5, 0.5),
    "relu": (0.0, 1.0),
    "sin": (-0.5, 0.5),
    "gaussian": (1.0, 0.5),
    "hardlimit": (0.0, 1.0),
    "identity": (-0.5, 0.5),
}


def layer(n_hidden=20, **options):
    return RandomLayer(n_hidden, **{"weight_init": "pairs", "random_state": 0, **options})


def pairs_of(X, y=None, n_units=20):
    """The numbers of the two rows of each unit: an identity is −½ at the first and ½ at the second."""
    H = layer(n_units, activation="identity", input_scaling=None).fit(X, y).transform(X)
    return np.abs(H + 0.5).argmin(axis=0), np.abs(H - 0.5).argmin(axis=0)


@pytest.mark.parametrize("name", sorted(LEVELS))
@pytest.mark.parametrize("scaling", ["minmax", None, (-5.0, 200.0)])
@pytest.mark.parametrize("y", [Y, LABELS, None], ids=["numbers", "labels", "none"])
def test_each_unit_takes_its_levels_at_two_rows(name, scaling, y):
    H = layer(activation=name, input_scaling=scaling).fit(X, y).transform(X)
    for level in LEVELS[name]:
        assert (np.abs(H - level).min(axis=0) < 1e-9).all()


def test_the_two_rows_are_the_ends_of_the_unit():
    """The oracle: w = 2·atanh(½)·Δu/‖Δu‖² in standardised inputs, centred between the rows."""
    fitted = layer(activation="tanh", input_scaling=None).fit(X, Y)
    a, b = pairs_of(X, Y)
    U = (X - X.mean(axis=0)) / X.std(axis=0)
    D = U[b] - U[a]
    squared = (D**2).sum(axis=1)
    weights = fitted.weights_.T
    np.testing.assert_allclose(weights * X.std(axis=0), 2 * math.atanh(0.5) * D / squared[:, None], rtol=1e-9)
    np.testing.assert_allclose(np.sum(weights * (X[a] + X[b]) / 2, axis=1) + fitted.biases_, 0.0, atol=1e-9)


def test_a_function_of_ones_own_gets_minus_one_and_one():
    H = layer(activation=np.positive).fit(X, Y).transform(X)
    for level in (-1.0, 1.0):
        assert (np.abs(H - level).min(axis=0) < 1e-9).all()


@pytest.mark.parametrize("activation", ["tanh", "gaussian"])
def test_weight_scale_makes_units_steeper_and_narrower(activation):
    one, three = (layer(activation=activation, weight_scale=s).fit(X, Y) for s in (1.0, 3.0))
    H = one.transform(X)
    steeper = np.tanh(3 * np.arctanh(H)) if activation == "tanh" else H**9
    np.testing.assert_allclose(three.transform(X), steeper, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("units_see", [None, 2])
@pytest.mark.parametrize("weights", ["pairs", "uniform", "normal"])
def test_smaller_layers_are_the_beginning_of_larger_ones(weights, units_see):
    small, large = (layer(m, weight_init=weights, units_see=units_see).fit(X, Y) for m in (7, 40))
    np.testing.assert_array_equal(large.weights_[:, :7], small.weights_)
    np.testing.assert_array_equal(large.biases_[:7], small.biases_)
    np.testing.assert_array_equal(large.take(slice(7)).transform(X), small.transform(X))


def test_seeds_decide_the_layer():
    first, second = (layer(random_state=seed).fit(X, Y) for seed in (0, 1))
    assert not np.isclose(first.weights_, second.weights_).all(axis=0).any()
    np.testing.assert_array_equal(layer(random_state=np.random.RandomState(0)).fit(X, Y).weights_, first.weights_)
    seen = [layer(weight_init="uniform", units_see=2, random_state=seed).fit(X).weights_ != 0 for seed in (0, 1)]
    assert (seen[0] != seen[1]).any()


@settings(deadline=None)
@given(seed=st.integers(0, 99), y=st.sampled_from([Y, LABELS, None]))
def test_the_order_of_the_rows_does_not_matter(seed, y):
    order = np.random.default_rng(seed).permutation(len(X))
    mixed = layer().fit(X[order], None if y is None else y[order])
    np.testing.assert_array_equal(mixed.weights_, layer().fit(X, y).weights_)


@pytest.mark.parametrize("y", [Y, LABELS], ids=["numbers", "labels"])
def test_weights_equal_repetition(y):
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    for scaling in ("minmax", None):
        weighted = layer(input_scaling=scaling).fit(X, y, sample_weight=weight)
        repeated = layer(input_scaling=scaling).fit(X[rows], y[rows])
        np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-12)
        np.testing.assert_allclose(weighted.biases_, repeated.biases_, rtol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "gaussian"])
@pytest.mark.parametrize("scaling", ["minmax", None])
def test_a_change_of_units_changes_nothing(activation, scaling):
    options = {"activation": activation, "input_scaling": scaling}
    H = layer(**options).fit_transform(X, Y)
    changed = X * [1.8, 1e-6, 1e7, 2.0] + [32.0, 0.0, -1.0, 1e3]
    np.testing.assert_allclose(layer(**options).fit_transform(changed, 5.0 * Y - 3.0), H, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("activation", ["sigmoid", "gaussian", "relu"])
@pytest.mark.parametrize("units_see", [None, 2])
def test_sparse_rows_give_the_same_layer(activation, units_see):
    if activation == "gaussian" and units_see:
        return
    Z = np.where(X > 50, 0.0, X)
    options = {"activation": activation, "units_see": units_see}
    dense = layer(**options).fit_transform(Z, Y)
    np.testing.assert_allclose(layer(**options).fit_transform(sparse.csr_array(Z), Y), dense, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_inputs_are_standardised_by_weight(make):
    """The oracle: the weighted standard deviation; rows far away that hardly count do not widen it."""
    rows = np.vstack([X, X[:3] * 1e3])
    weight = np.r_[np.random.default_rng(0).uniform(1, 2, 60), np.full(3, 1e-12)]
    fitted = layer(5, activation="gaussian", input_scaling=None).fit(make(rows), sample_weight=weight)
    mean = np.average(rows, axis=0, weights=weight)
    deviation = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(fitted.map_.metric, 1 / deviation, rtol=1e-9)


@pytest.mark.parametrize("weights", ["uniform", "pairs"])
def test_units_that_see_some_inputs_do_not_waste_them_on_constant_ones(weights):
    rows = np.column_stack([np.full((60, 20), 3.7), X])
    seen = layer(50, weight_init=weights, units_see=2).fit(rows, Y).weights_ != 0
    assert (seen[20:].sum(axis=0) == 2).all()
    assert (seen.sum(axis=0) == 2).all()


def test_near_pairs_are_preferred_where_targets_hardly_ever_differ():
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((5000, 2)), np.arange(5000) == 7
    a, b = pairs_of(rows, labels.astype(int), 300)
    distances = np.linalg.norm(rows[a] - rows[b], axis=1)
    apart = np.linalg.norm(rows[:2500] - rows[2500:], axis=1)
    assert np.median(distances) < 0.8 * np.median(apart)


def test_constant_inputs_get_no_weight():
    Z = np.column_stack([X, np.full(60, 3.7)])
    Z[::2, 4] += np.spacing(3.7)
    for scaling in ("minmax", None):
        weights = layer(input_scaling=scaling).fit(Z, Y).weights_
        np.testing.assert_array_equal(weights[4], 0.0)
        assert (weights[:4] != 0).all()


def test_near_pairs_with_different_targets_are_preferred():
    """Four rows, so the chances of the candidates are known: rates ‖Δy‖/‖Δx‖ over ten random pairs."""
    rows, targets = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([0.0, 1.0, 1.0, 5.0])
    rng = np.random.default_rng(1)
    tries = rng.integers(0, 4, size=(20_000, 10, 2))
    near = np.abs(rows[tries[:, :, 0], 0] - rows[tries[:, :, 1], 0])
    rates = np.where(near > 0, np.abs(targets[tries[:, :, 0]] - targets[tries[:, :, 1]]) / np.maximum(near, 1.0), 0.0)
    tries, rates = tries[rates.any(axis=1)], rates[rates.any(axis=1)]  # units without such a pair look again
    expected = np.zeros((4, 4))
    np.add.at(expected, (tries[..., 0], tries[..., 1]), rates / rates.sum(axis=1, keepdims=True))
    a, b = pairs_of(rows, targets, 5000)
    found = np.zeros((4, 4))
    np.add.at(found, (a, b), 1.0)
    possible = expected > 0
    assert found[~possible].sum() == 0
    expected *= 5000 / expected.sum()
    assert stats.chisquare(found[possible], expected[possible]).pvalue > 0.001


def test_labels_differ_or_do_not():
    """Pairs of one class are never taken while others are found, and no class is nearer to another."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((300, 2)), rng.integers(0, 3, 300)
    a, b = pairs_of(rows, labels, 400)
    assert (labels[a] != labels[b]).all()
    np.testing.assert_array_equal(pairs_of(rows, 10 * labels, 400), (a, b))
    np.testing.assert_array_equal(pairs_of(rows, labels.astype(str), 400), (a, b))


def test_each_target_counts_by_its_own_spread():
    targets = np.column_stack([Y, np.roll(Y, 7)])
    one = layer().fit(X, targets).weights_
    np.testing.assert_allclose(layer().fit(X, targets * [1e8, 1e-8] + [3.0, 0.0]).weights_, one, rtol=1e-9)
    alone = layer().fit(X, np.column_stack([Y, np.full(60, 4.0)])).weights_
    np.testing.assert_allclose(alone, layer().fit(X, Y).weights_, rtol=1e-9)


def test_equal_targets_are_as_none():
    without = layer().fit(X).weights_
    for y in (np.full(60, 2.5), np.full(60, 1e200), np.zeros(60), np.full(60, "a")):
        np.testing.assert_array_equal(layer().fit(X, y).weights_, without)


def test_rows_that_differ_are_found_however_few_they_are():
    rows = np.zeros((400, 3))
    rows[:, 0] = np.arange(400)
    rows[7, 1] = rows[9, 2] = 1.0
    seen = layer(60, units_see=1).fit(rows, np.arange(400.0)).weights_
    assert ((seen != 0).sum(axis=0) == 1).all()
    assert ((seen != 0).sum(axis=1) > 5).all()
    binary = np.column_stack([np.r_[np.zeros(2000), 1.0]])
    H = layer(5, activation="relu").fit(binary, np.arange(2001.0)).transform(binary)
    assert np.isin(H[[0, -1]].round(12), [0.0, 1.0]).all()


@pytest.mark.parametrize("rows", [np.ones((1, 2)), np.ones((5, 2)), np.nextafter([[0.1], [0.1]], [[0], [1]])])
@pytest.mark.parametrize("scaling", ["minmax", None])
def test_one_distinct_row_is_not_enough(rows, scaling):
    with pytest.raises(ValueError, match="training rows with different inputs, but only one sample"):
        layer(input_scaling=scaling).fit(rows, np.arange(float(len(rows))))
    with pytest.raises(ValueError, match="one sample"):
        PinvRegressor(5, weight_init="pairs", input_scaling=scaling).fit(rows, np.arange(float(len(rows))))


def test_rows_without_weight_are_not_taken():
    weight = np.r_[np.ones(40), np.zeros(20)]
    for y in (Y, LABELS):
        part = layer().fit(X[:40], y[:40])
        np.testing.assert_array_equal(layer().fit(X, y, sample_weight=weight).weights_, part.weights_)


@pytest.mark.parametrize("weights", ["uniform", "normal", "pairs"])
def test_units_see_some_inputs(weights):
    options = {"weight_init": weights}
    drawn = layer(200, units_see=2, **options).fit(X, Y).weights_
    assert ((drawn != 0).sum(axis=0) == 2).all()
    assert ((drawn != 0).sum(axis=1) > 60).all()
    every = layer(200, **options).fit(X, Y).weights_
    for all_of_them in (4, 9):
        np.testing.assert_array_equal(layer(200, units_see=all_of_them, **options).fit(X, Y).weights_, every)
    if weights != "pairs":
        np.testing.assert_array_equal(drawn[drawn != 0], every[drawn != 0])


def test_units_that_see_some_inputs_take_their_levels_at_two_rows():
    H = layer(40, units_see=2, activation="tanh").fit(X, Y).transform(X)
    for level in LEVELS["tanh"]:
        assert (np.abs(H - level).min(axis=0) < 1e-9).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units_see": 0}, "units_see=0 must be a whole number ≥ 1"),
        ({"units_see": 1.5}, "whole number ≥ 1"),
        ({"units_see": 2, "weight_init": "orthogonal"}, "weight_init='orthogonal' needs all of them"),
        ({"units_see": 2, "activation": "gaussian"}, "activation='gaussian' needs all of them"),
        ({"weight_init": "pair"}, "Did you mean 'pairs'"),
        ({"bias_range": (0.0, 1.0)}, "weight_init='pairs' takes them from the rows"),
    ],
)
def test_bad_parameters_say_what_to_use(options, message):
    models = [layer(**options)]
    if "bias_range" not in options:  # networks have none
        models.append(PinvRegressor(5, **{"weight_init": "pairs", **options}))
    for model in models:
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)


def test_bad_targets_say_what_is_wrong():
    with pytest.raises(ValueError, match="X has 60 rows, but y"):
        layer().fit(X, Y[:50])
    with pytest.raises(ValueError, match="Row 4: the target is NaN"):
        layer().fit(X, np.where(np.arange(60) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="Row 2: the label is missing"):
        layer().fit(X, np.array(["a", None] * 30, dtype=object))


def test_a_layer_alone_in_a_pipeline_is_that_of_the_network():
    network = PinvRegressor(30, weight_init="pairs", gamma=1e-3, direct_link=False, random_state=0).fit(X, Y)
    pipeline = make_pipeline(layer(30), TikhonovRegressor(1e-3)).fit(X, Y)
    np.testing.assert_allclose(pipeline.predict(X), network.predict(X), rtol=1e-9)


def test_class_weights_count_as_weights_of_rows():
    """They enter the standardisation, given one by one or balanced, and a class of weight 0 gives no rows."""
    labels, counts = np.unique(LABELS, return_counts=True)
    balanced = {label: 60 / (3 * count) for label, count in zip(labels.tolist(), counts.tolist(), strict=True)}
    by_row = np.array([balanced[label] for label in LABELS])
    options = {"weight_init": "pairs", "n_hidden": 10, "input_scaling": None, "random_state": 0}
    networks = [PinvClassifier(class_weight=given, **options).fit(X, LABELS) for given in ("balanced", balanced)]
    networks.append(PinvClassifier(**options).fit(X, LABELS, sample_weight=by_row))
    for network in networks[1:]:
        np.testing.assert_allclose(network.layer_.weights_, networks[0].layer_.weights_, rtol=1e-12)
    part = LABELS != "low"
    without = PinvClassifier(class_weight={"low": 0.0}, **options).fit(X, LABELS)
    np.testing.assert_allclose(
        without.layer_.weights_, PinvClassifier(**options).fit(X[part], LABELS[part]).layer_.weights_, rtol=1e-12
    )


@pytest.mark.parametrize("activation", ["tanh", "gaussian"])
def test_single_precision_is_right_to_its_digits(activation):
    network = PinvRegressor(30, weight_init="pairs", activation=activation, gamma=1e-2, random_state=0).fit(X, Y)
    np.testing.assert_allclose(network.as_float32().predict(X), network.predict(X), atol=1e-4)


@some_advice
def test_pairs_find_steps_that_uniform_weights_miss():
    """A narrow bump in one of three inputs: the held-out error falls by far."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(3000, 3))
    target = np.exp(-((rows[:, 0] - 0.3) ** 2) / 0.002)
    options = {"n_hidden": 100, "gamma": "kfold", "random_state": 0, "units_see": 1}
    errors = [
        1 - PinvRegressor(weight_init=w, **options).fit(rows[:2000], target[:2000]).score(rows[2000:], target[2000:])
        for w in ("uniform", "pairs")
    ]
    assert errors[1] < 0.2 * errors[0]
